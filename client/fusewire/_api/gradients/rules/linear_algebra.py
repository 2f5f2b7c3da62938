"""Derivatives of linear algebra.

Sources: Giles, An extended collection of matrix derivative results (2008), for solve, inv, det and eigh; Murray,
Differentiation of the Cholesky decomposition (2016); Seeger, Hetzel, Dai and Lawrence, Auto-differentiating linear
algebra (2017), and Roberts and Roberts, QR and LQ decomposition matrix backpropagation (2020), for qr; Townsend,
Differentiating the singular value decomposition (2016); Boeddeker, Hanebrink, Drude, Heymann and Haeb-Umbach, On the
computation of complex-valued gradients with application to statistically optimum beamforming (2017), for complex
matrices; Wan and Zhang, Automatic differentiation for complex valued SVD (2019).

A function serves real and complex matrices, of which a transpose is the conjugate one. The cotangent of a symmetric
matrix is symmetric, and of a Hermitian one Hermitian, also where the op reads one triangle. The vectors of equal
eigenvalues or singular values have no derivatives; the terms that would divide by the difference are 0, as if the
vectors did not depend on each other. Nor has the phase of a complex vector: what a function makes of vectors must not
depend on it. `det` and `slogdet` divide by the matrix, so that their derivatives at a singular one are NaN.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.functions.arrangement.matrices import tril
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.gradients.rules.parts import joined
from fusewire._api.gradients.rules.rule import Rule
from fusewire._api.gradients.use import Use
from fusewire._api.linalg.decompositions import eig, eigh, real_of, svd
from fusewire._api.linalg.equations import inv, solve
from fusewire._api.linalg.matrices import diagonal
from fusewire._errors import ArgumentError
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Spec


class _OfBoth:
    """A use of an op of complex matrices, which are its two operands, as a use of the op that it is of real ones."""

    def __init__(self, use: Use) -> None:
        self._use = use
        self.op = BY_NAME[use.op.name.removeprefix("complex_")]
        self.attributes = use.attributes

    def spec(self, _place: int) -> Spec:
        return self._use.spec(0)

    def operand(self, _place: int) -> Any:
        return ComplexArray(self._use.operand(0), self._use.operand(1))

    @property
    def result(self) -> Any:
        return _both(self._use.result)


_AnyUse = Use | _OfBoth


def _both(packed: Any) -> ComplexArray:
    """Returns complex numbers of their real parts and the imaginary ones behind them."""
    half = packed.shape[-1] // 2
    return ComplexArray(packed[..., :half], packed[..., half:])


def _parts(packed: Any, use: _AnyUse) -> list[Any]:
    """Returns the arrays that the result of an op of several arrays holds, or their cotangents."""
    shape = use.spec(0).shape
    if use.op.results is None:  # one array of the shape of the matrices
        return [packed if packed.shape == shape else packed.reshape(shape)]
    parts = use.op.results((shape,), use.attributes).parts()
    return [packed[..., part.start : part.start + part.length].reshape(part.shape) for part in parts]


def _symmetric(x: Any) -> Any:
    return (x + x.mH) * 0.5


def _lower_half(x: Any) -> Any:
    """Returns the lower triangle, with half of the diagonal."""
    return (tril(x) + tril(x, -1)) * 0.5


def _divided_by(x: Any, matrix: Any) -> Any:
    """Returns x · matrix⁻¹."""
    return solve(matrix.mH, x.mH).mH


def _of_cholesky(g: Any, use: _AnyUse) -> Any:
    (is_upper,) = use.attributes
    (lower,), (of_lower,) = _parts(use.result, use), _parts(g, use)
    if is_upper:
        lower, of_lower = lower.mH, of_lower.mH
    return _symmetric(_divided_by(solve(lower.mH, _lower_half(lower.mH @ of_lower)), lower))


def _of_right_sides(g: Any, use: Use) -> Any:
    return solve(use.operand(0).mT, g)


def _of_equations(g: Any, use: Use) -> Any:
    return -solve(use.operand(0).mT, g) @ use.result.mT


def _of_inv(g: Any, use: Use) -> Any:
    turned = use.result.mT
    return -turned @ g @ turned


def _of_det(g: Any, use: Use) -> Any:
    return (g * use.result)[..., None, None] * inv(use.operand(0)).mT


def _of_slogdet(g: Any, use: _AnyUse) -> Any:
    of_sign, of_logarithm = _parts(g, use)
    if isinstance(use, _OfBoth):  # then the sign is a phase: the logarithm of the determinant has both as its parts
        sign, _ = _parts(use.result, use)
        of_logarithm = ComplexArray(of_logarithm.real_part, (of_sign * sign.conj()).imag_part)
    return of_logarithm[..., None, None] * inv(use.operand(0)).mH


def _of_qr(g: Any, use: _AnyUse) -> Any:
    rows, columns = use.spec(0).shape[-2:]
    if use.attributes[0] and rows > columns:
        raise ArgumentError('qr has a gradient in the mode "reduced": the other columns of a complete Q are any')
    q, r = _parts(use.result, use)
    of_q, of_r = _parts(g, use)
    if rows >= columns:
        return _of_tall_qr(q, r, of_q, of_r)
    behind = use.operand(0)[..., rows:]
    of_first = _of_tall_qr(q, r[..., :rows], of_q + behind @ of_r[..., rows:].mH, of_r[..., :rows])
    return joined([of_first, q @ of_r[..., rows:]], of_first.ndim - 1)


def _of_tall_qr(q: Any, r: Any, of_q: Any, of_r: Any) -> Any:
    """The diagonal of r is real, whatever the matrix is."""
    half = _lower_half(r @ of_r.mH - of_q.mH @ q)
    return _divided_by(of_q + q @ (half + half.mH), r.mH)


def _of_eigh(g: Any, use: _AnyUse) -> Any:
    values, vectors = _parts(use.result, use)
    of_values, of_vectors = _parts(g, use)
    values, of_values = real_of(values), real_of(of_values)
    turned = _inverse(values[..., None, :] - values[..., :, None]) * (vectors.mH @ of_vectors)
    return _symmetric(vectors @ turned @ vectors.mH + _composed(vectors, of_values, vectors.mH))


def _of_eigvalsh(g: Any, use: Use) -> Any:
    _, vectors = eigh(use.operand(0), "U" if use.attributes[0] else "L")
    return _composed(vectors, g, vectors.mT)


def _of_eig(g: Any, use: _AnyUse) -> Any:
    values, vectors = _values_and_vectors(use.result, use)
    of_values, of_vectors = _values_and_vectors(g, use)
    turned = vectors.mH
    inner = turned @ of_vectors
    along = diagonal(inner.real)[..., None, :]  # which changes the lengths of the vectors, and they are 1
    inner = inner - turned @ (vectors * along)
    pairs = _inverse((values[..., None, :] - values[..., :, None]).conj())
    found = solve(turned, (pairs * inner) @ turned + of_values[..., :, None] * turned)
    return found if isinstance(use, _OfBoth) else found.real


def _of_eigvals(g: Any, use: Use) -> Any:
    (of_values,) = _complex(_parts(g, use))
    turned = eig(use.operand(0)).eigenvectors.mH
    return solve(turned, of_values[..., :, None] * turned).real


def _values_and_vectors(packed: Any, use: _AnyUse) -> list[Any]:
    """Returns the eigenvalues and eigenvectors of an `eig`, or their cotangents."""
    if not isinstance(use, _OfBoth):
        return _complex(_parts(packed, use))
    shape = use.spec(0).shape
    return [packed[..., : shape[-1]], packed[..., shape[-1] :].reshape(shape)]


def _complex(parts: list[Any]) -> list[Any]:
    """Returns complex numbers of their parts, which follow each other."""
    return [ComplexArray(real, imag) for real, imag in zip(parts[::2], parts[1::2], strict=True)]


def _of_svd(g: Any, use: _AnyUse) -> Any:
    rows, columns = use.spec(0).shape[-2:]
    if use.attributes[0] and rows != columns:
        raise ArgumentError("svd has a gradient with full_matrices=False: the other vectors of full matrices are any")
    u, s, vh = _parts(use.result, use)
    of_u, of_s, of_vh = _parts(g, use)
    s, v, of_v = real_of(s), vh.mH, of_vh.mH
    squares = s * s
    pairs = _inverse(squares[..., None, :] - squares[..., :, None])
    left, right = u.mH @ of_u, v.mH @ of_v
    inner = (pairs * (left - left.mH)) * s[..., None, :] + s[..., :, None] * (pairs * (right - right.mH))
    along = real_of(of_s)
    if isinstance(use, _OfBoth):  # a phase of the vectors, which one of u and v may have alone
        along = ComplexArray(along, diagonal(left.imag_part) / s)
    found = u @ inner @ vh + _composed(u, along, vh)
    if rows > columns:
        found = found + ((of_u - u @ left) / s[..., None, :]) @ vh
    if columns > rows:
        found = found + (u / s[..., None, :]) @ (of_v - v @ right).mH
    return found


def _of_svdvals(g: Any, use: Use) -> Any:
    u, _, vh = svd(use.operand(0), full_matrices=False)
    return _composed(u, g, vh)


def _composed(left: Any, diagonal: Any, right: Any) -> Any:
    """Returns left · diag(diagonal) · right."""
    return (left * diagonal[..., None, :]) @ right


def _inverse(differences: Any) -> Any:
    return where(differences == 0, 0.0, 1 / where(differences == 0, 1.0, differences))


def _of_part(pull: Callable[[Any, _OfBoth], Any], part: int, g: Any, use: Use) -> Any:
    """Returns the cotangent of the real or of the imaginary part of complex matrices."""
    return use.shared(lambda: pull(_both(g), _OfBoth(use))).parts[part]


def _of_both(pull: Callable[[Any, Any], Any], *, operands: bool = False) -> Rule:
    """Returns the rule of an op of complex matrices, for the function that pulls back through that of real ones."""
    return Rule((partial(_of_part, pull, 0), partial(_of_part, pull, 1)), operands=operands, result=True)


LINEAR_ALGEBRA = {
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
    "complex_cholesky": _of_both(_of_cholesky),
    "complex_slogdet": _of_both(_of_slogdet, operands=True),
    "complex_qr": _of_both(_of_qr, operands=True),
    "complex_eigh": _of_both(_of_eigh),
    "complex_eig": _of_both(_of_eig),
    "complex_svd": _of_both(_of_svd),
}
