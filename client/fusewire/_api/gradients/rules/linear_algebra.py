"""Derivatives of linear algebra.

Sources: Giles, An extended collection of matrix derivative results (2008), for solve, inv, det and eigh; Murray,
Differentiation of the Cholesky decomposition (2016); Seeger, Hetzel, Dai and Lawrence, Auto-differentiating linear
algebra (2017), and Roberts and Roberts, QR and LQ decomposition matrix backpropagation (2020), for qr; Townsend,
Differentiating the singular value decomposition (2016); Boeddeker, Hanebrink, Drude, Heymann and Haeb-Umbach, On the
computation of complex-valued gradients with application to statistically optimum beamforming (2017), for eig.

The cotangent of a symmetric matrix is symmetric, also where the op reads one triangle. The vectors of equal eigenvalues
or singular values have no derivatives; the terms that would divide by the difference are 0, as if the vectors did not
depend on each other. `det` and `slogdet` divide by the matrix, so that their derivatives at a singular one are NaN.
"""

from __future__ import annotations

from typing import Any

from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.functions.arrangement.matrices import tril
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.gradients.rules.parts import joined
from fusewire._api.gradients.rules.rule import Rule
from fusewire._api.gradients.use import Use
from fusewire._api.linalg.decompositions import eig, eigh, svd
from fusewire._api.linalg.equations import inv, solve
from fusewire._api.linalg.matrices import diagonal
from fusewire._errors import ArgumentError


def _parts(packed: Any, use: Use) -> list[Any]:
    """Returns the arrays that the result of an op of several arrays holds, or their cotangents."""
    results = use.signature.op.results
    assert results is not None, f"{use.signature.op.name} computes one array"
    parts = results((use.spec(0).shape,), use.attributes).parts()
    return [packed[..., part.start : part.start + part.length].reshape(part.shape) for part in parts]


def _symmetric(x: Any) -> Any:
    return (x + x.mT) * 0.5


def _divided_by(x: Any, matrix: Any) -> Any:
    """Returns x · matrix⁻¹."""
    return solve(matrix.mT, x.mT).mT


def _of_cholesky(g: Any, use: Use) -> Any:
    (is_upper,) = use.attributes
    lower, g = (use.result.mT, g.mT) if is_upper else (use.result, g)
    inner = lower.mT @ g
    halved = (tril(inner) + tril(inner, -1)) * 0.5
    return _symmetric(_divided_by(solve(lower.mT, halved), lower))


def _of_right_sides(g: Any, use: Use) -> Any:
    return solve(use.operand(0).mT, g)


def _of_equations(g: Any, use: Use) -> Any:
    return -solve(use.operand(0).mT, g) @ use.result.mT


def _of_inv(g: Any, use: Use) -> Any:
    turned = use.result.mT
    return -turned @ g @ turned


def _of_det(g: Any, use: Use) -> Any:
    return (g * use.result)[..., None, None] * inv(use.operand(0)).mT


def _of_slogdet(g: Any, use: Use) -> Any:
    _, of_logarithm = _parts(g, use)
    return of_logarithm[..., None, None] * inv(use.operand(0)).mT


def _of_qr(g: Any, use: Use) -> Any:
    rows, columns = use.spec(0).shape[-2:]
    if use.attributes[0] and rows > columns:
        raise ArgumentError('qr has a gradient in the mode "reduced": the other columns of a complete Q are any')
    q, r = _parts(use.result, use)
    of_q, of_r = _parts(g, use)
    if rows >= columns:
        return _of_tall_qr(q, r, of_q, of_r)
    behind = use.operand(0)[..., rows:]
    of_first = _of_tall_qr(q, r[..., :rows], of_q + behind @ of_r[..., rows:].mT, of_r[..., :rows])
    return joined([of_first, q @ of_r[..., rows:]], of_first.ndim - 1)


def _of_tall_qr(q: Any, r: Any, of_q: Any, of_r: Any) -> Any:
    inner = r @ of_r.mT - of_q.mT @ q
    return _divided_by(of_q + q @ (tril(inner) + tril(inner, -1).mT), r.mT)


def _of_eigh(g: Any, use: Use) -> Any:
    values, vectors = _parts(use.result, use)
    of_values, of_vectors = _parts(g, use)
    turned = _inverse(values[..., None, :] - values[..., :, None]) * (vectors.mT @ of_vectors)
    return _symmetric(vectors @ turned @ vectors.mT + _composed(vectors, of_values, vectors.mT))


def _of_eigvalsh(g: Any, use: Use) -> Any:
    _, vectors = eigh(use.operand(0), "U" if use.attributes[0] else "L")
    return _composed(vectors, g, vectors.mT)


def _of_eig(g: Any, use: Use) -> Any:
    values, vectors = _complex(_parts(use.result, use))
    of_values, of_vectors = _complex(_parts(g, use))
    turned = vectors.conj().mT
    inner = turned @ of_vectors
    along = diagonal(inner.real)[..., None, :]  # which changes the lengths of the vectors, and they are 1
    inner = inner - turned @ (vectors * along)
    pairs = _inverse((values[..., None, :] - values[..., :, None]).conj())
    return solve(turned, (pairs * inner) @ turned + of_values[..., :, None] * turned).real


def _of_eigvals(g: Any, use: Use) -> Any:
    (of_values,) = _complex(_parts(g, use))
    turned = eig(use.operand(0)).eigenvectors.conj().mT
    return solve(turned, of_values[..., :, None] * turned).real


def _complex(parts: list[Any]) -> list[Any]:
    """Returns complex numbers of their parts, which follow each other."""
    return [ComplexArray(real, imag) for real, imag in zip(parts[::2], parts[1::2], strict=True)]


def _of_svd(g: Any, use: Use) -> Any:
    rows, columns = use.spec(0).shape[-2:]
    if use.attributes[0] and rows != columns:
        raise ArgumentError("svd has a gradient with full_matrices=False: the other vectors of full matrices are any")
    u, s, vh = _parts(use.result, use)
    of_u, of_s, of_vh = _parts(g, use)
    v, of_v = vh.mT, of_vh.mT
    squares = s * s
    pairs = _inverse(squares[..., None, :] - squares[..., :, None])
    left, right = u.mT @ of_u, v.mT @ of_v
    inner = (pairs * (left - left.mT)) * s[..., None, :] + s[..., :, None] * (pairs * (right - right.mT))
    found = u @ inner @ vh + _composed(u, of_s, vh)
    if rows > columns:
        found = found + ((of_u - u @ left) / s[..., None, :]) @ vh
    if columns > rows:
        found = found + (u / s[..., None, :]) @ (of_v - v @ right).mT
    return found


def _of_svdvals(g: Any, use: Use) -> Any:
    u, _, vh = svd(use.operand(0), full_matrices=False)
    return _composed(u, g, vh)


def _composed(left: Any, diagonal: Any, right: Any) -> Any:
    """Returns left · diag(diagonal) · right."""
    return (left * diagonal[..., None, :]) @ right


def _inverse(differences: Any) -> Any:
    return where(differences == 0, 0.0, 1 / where(differences == 0, 1.0, differences))


def _refused(g: Any, use: Use) -> Any:
    name = use.signature.op.name.removeprefix("complex_")
    raise ArgumentError(f"{name} of complex matrices has no gradient here; solve, inv, svdvals and eigvalsh have one")


REFUSED = frozenset(("complex_cholesky", "complex_slogdet", "complex_qr", "complex_eigh", "complex_svd", "complex_eig"))
LINEAR_ALGEBRA = {
    **dict.fromkeys(REFUSED, Rule((_refused, _refused))),
    "cholesky": Rule((_of_cholesky,), result=True),
    "solve": Rule((_of_equations, _of_right_sides), ((0,), (0,)), result=True),
    "inv": Rule((_of_inv,), result=True),
    "det": Rule((_of_det,), operands=True, result=True),
    "slogdet": Rule((_of_slogdet,), operands=True),
    "qr": Rule((_of_qr,), operands=True, result=True),
    "eigh": Rule((_of_eigh,), result=True),
    "eigvalsh": Rule((_of_eigvalsh,), operands=True),
    "eig": Rule((_of_eig,), result=True),
    "eigvals": Rule((_of_eigvals,), operands=True),
    "svd": Rule((_of_svd,), result=True),
    "svdvals": Rule((_of_svdvals,), operands=True),
}
