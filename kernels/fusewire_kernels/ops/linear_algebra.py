"""Computes the ops of linear algebra by an array library: by LAPACK through NumPy, by cuSOLVER through CuPy.

A matrix for which an algorithm fails, because it is singular or not positive definite, gives NaN alone; the other
matrices of its batch do not. So does a matrix that holds NaN or an infinity: what an algorithm makes of these depends
on where the matrix lies in memory.

A complex matrix is two operands, its real and its imaginary parts, and so is each result.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from fusewire_kernels.ops.written_parts import Twin
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.op import Attributes
from fusewire_protos.ops.shapes import Shape

_Compute = Callable[..., Any]  # (array library, *matrices, *attributes) -> the result, or a tuple of several


def _cholesky(library: Any, a: Any, upper: bool) -> Any:  # noqa: FBT001 - attributes come in their order
    if not upper:
        return library.linalg.cholesky(a)
    return _turned(library, library.linalg.cholesky(_turned(library, a)))


def _qr(library: Any, a: Any, complete: bool) -> Any:  # noqa: FBT001
    return tuple(library.linalg.qr(a, mode="complete" if complete else "reduced"))


def _eigh(library: Any, a: Any, upper: bool) -> Any:  # noqa: FBT001
    return tuple(library.linalg.eigh(a, UPLO=_half(upper=upper)))


def _eigvalsh(library: Any, a: Any, upper: bool) -> Any:  # noqa: FBT001
    return library.linalg.eigvalsh(a, UPLO=_half(upper=upper))


def _eig(library: Any, a: Any) -> Any:
    values, vectors = library.linalg.eig(a)  # NumPy's are real if all of them are
    return values.real, values.imag, vectors.real, vectors.imag


def _eigvals(library: Any, a: Any) -> Any:
    values = library.linalg.eigvals(a)
    return values.real, values.imag


def _svd(library: Any, a: Any, full: bool) -> Any:  # noqa: FBT001
    return tuple(library.linalg.svd(a, full_matrices=full))


def _svdvals(library: Any, a: Any) -> Any:
    return library.linalg.svd(a, compute_uv=False)


def _half(*, upper: bool) -> str:
    return "U" if upper else "L"


def _turned(library: Any, a: Any) -> Any:
    """Returns the conjugate transposed matrices."""
    return library.ascontiguousarray(library.swapaxes(a, -1, -2).conj())


def _complex_eig(library: Any, a: Any) -> Any:
    return tuple(library.linalg.eig(a))


def _slogdet(library: Any, a: Any) -> Any:
    return tuple(library.linalg.slogdet(a))


def _of_complex(compute: _Compute) -> _Compute:
    """Returns what takes both parts of complex matrices, and returns first all real parts, then all imaginary ones."""

    def of_parts(library: Any, real: Any, imaginary: Any, *attributes: Any) -> Any:
        matrices = library.empty(real.shape, np.result_type(real.dtype, np.complex64))
        matrices.real, matrices.imag = real, imaginary
        computed = compute(library, matrices, *attributes)
        arrays = [library.asarray(each) for each in (computed if isinstance(computed, tuple) else (computed,))]
        return (*[each.real for each in arrays], *[_imaginary(library, each) for each in arrays])

    return of_parts


def _imaginary(library: Any, array: Any) -> Any:
    return array.imag if array.dtype.kind == "c" else library.zeros_like(array)


_COMPUTED: dict[str, _Compute] = {
    "cholesky": _cholesky,
    "solve": lambda library, a, b: library.linalg.solve(a, b),
    "inv": lambda library, a: library.linalg.inv(a),
    "det": lambda library, a: library.linalg.det(a),
    "slogdet": _slogdet,
    "qr": _qr,
    "eigh": _eigh,
    "eigvalsh": _eigvalsh,
    "eig": _eig,
    "eigvals": _eigvals,
    "svd": _svd,
    "svdvals": _svdvals,
    "complex_cholesky": _of_complex(_cholesky),
    "complex_slogdet": _of_complex(_slogdet),
    "complex_qr": _of_complex(_qr),
    "complex_eigh": _of_complex(_eigh),
    "complex_svd": _of_complex(_svd),
    "complex_eig": _of_complex(_complex_eig),
}


def _twin(name: str, compute: _Compute) -> Twin:
    op = BY_NAME[name]

    def run(library: Any, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
        shape = op.shape_rule(tuple([each.shape for each in operands]), attributes)
        if 0 in shape:
            return library.empty(shape, operands[0].dtype)
        if 0 in operands[0].shape:  # which CuPy does not take
            nothing = [np.empty(each.shape, each.dtype) for each in operands]
            return library.asarray(_packed(np, compute(np, *nothing, *attributes), shape))
        is_finite = _are_finite(library, operands)
        matrices = [_where_finite(library, is_finite, each) for each in operands]
        try:
            result = _packed(library, compute(library, *matrices, *attributes), shape)
        except np.linalg.LinAlgError:  # CuPy's is the same class
            result = _one_by_one(library, compute, matrices, attributes, shape)
        is_result = is_finite.reshape((*is_finite.shape, *[1] * (len(shape) - is_finite.ndim)))
        return library.where(is_result, result, result.dtype.type("nan"))

    return run


def _are_finite(library: Any, operands: Sequence[Any]) -> Any:
    """Returns for each place of the batch whether all elements of its matrices are finite."""
    is_finite, *others = [library.isfinite(each).all(axis=(-2, -1)) for each in operands]
    for each in others:
        is_finite = is_finite & each
    return library.asarray(is_finite)


def _where_finite(library: Any, is_finite: Any, matrices: Any) -> Any:
    """Returns the matrices, with ones on a diagonal in place of those that are not finite."""
    return library.where(is_finite[..., None, None], matrices, library.eye(*matrices.shape[-2:], dtype=matrices.dtype))


def _one_by_one(library: Any, compute: _Compute, operands: Sequence[Any], attributes: Attributes, shape: Shape) -> Any:
    """Returns the result of a batch in which some matrix fails."""
    batch = operands[0].shape[:-2]
    matrices = [each.reshape(-1, *each.shape[-2:]) for each in operands]
    results = library.full((matrices[0].shape[0], *shape[len(batch) :]), np.nan, operands[0].dtype)
    for index in range(len(results)):
        try:
            computed = compute(library, *[each[index] for each in matrices], *attributes)
        except np.linalg.LinAlgError:
            continue
        results[index] = _packed(library, computed, results.shape[1:])
    return results.reshape(shape)


def _packed(library: Any, computed: Any, shape: Shape) -> Any:
    """Returns several results of a batch as one (see `fusewire_protos.ops.results`), and a single one as it is."""
    if not isinstance(computed, tuple):
        return computed
    batch = shape[:-1]
    arrays = map(library.asarray, computed)
    return library.concatenate([each.reshape(*batch, prod(each.shape[len(batch) :])) for each in arrays], axis=-1)


TWINS: dict[str, Twin] = {name: _twin(name, compute) for name, compute in _COMPUTED.items()}
