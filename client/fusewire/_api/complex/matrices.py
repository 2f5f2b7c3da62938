"""Products of complex matrices and linear equations as those of real ones, and decompositions by ops of both parts."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusewire._api.catalogue.catalogued import exp
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.complex.operands import Pair, parts_in
from fusewire._api.functions.arrangement.joining import concat
from fusewire._api.functions.arrangement.matrices import tril, triu
from fusewire._api.functions.arrangement.shapes import broadcast_to
from fusewire._api.functions.dtypes import result_type
from fusewire._api.ops import operations
from fusewire._api.ops.filled import counted, filled
from fusewire._api.ops.several_results import apply_for_several
from fusewire._errors import ShapeError
from fusewire._recording.record_op import apply
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.op import Attributes, Op


def matmul(op: Op, operands: Sequence[Any], _attributes: Attributes, _starts: Sequence[int]) -> Any:
    """Records four products of real matrices, or two if one operand is real."""
    part = dtypes.part_of(result_type(*operands))
    x, y = operands
    (a, b), (c, d) = (_parts_or_real(each, part) for each in operands)
    if not isinstance(x, ComplexArray):
        return ComplexArray(apply(op, (a, c)), apply(op, (a, d)))
    if not isinstance(y, ComplexArray):
        return ComplexArray(apply(op, (a, c)), apply(op, (b, c)))
    real = apply(op, (a, c)) - apply(op, (b, d))
    return ComplexArray(real, apply(op, (a, d)) + apply(op, (b, c)))


def _parts_or_real(x: Any, part: Any) -> Pair:
    if isinstance(x, ComplexArray):
        return parts_in(x, part)
    return operations.astype(x, part, copy=False), None


def solve(op: Op, operands: Sequence[Any], _attributes: Attributes, _starts: Sequence[int]) -> Any:
    """Records the solution of the real equations [[A, −B], [B, A]] [X; Y] = [C; D], of parts of twice the size."""
    part = dtypes.part_of(result_type(*operands))
    (a, b), (c, d) = (_both_parts(each, part) for each in operands)
    solution = apply(op, (_as_real(a, b), concat([c, d], axis=-2)))
    half = a.shape[-1]
    return ComplexArray(solution[..., :half, :], solution[..., half:, :])


def svdvals(op: Op, operands: Sequence[Any], attributes: Attributes, _starts: Sequence[int]) -> Any:
    """Records the singular values of the real matrix [[A, −B], [B, A]], which has each of them twice."""
    (x,) = operands
    if x.ndim < 2:
        raise ShapeError(f"svdvals takes matrices, not the shape {x.shape}")
    return apply(op, (_as_real(*x.parts),), attributes)[..., ::2]


def eigvalsh(op: Op, operands: Sequence[Any], attributes: Attributes, _starts: Sequence[int]) -> Any:
    """Records the eigenvalues of the real matrix [[A, −B], [B, A]], which has each of them twice."""
    a, b = _square("eigvalsh", operands).parts
    (upper,) = attributes
    half = (triu if upper else tril)(b, 1 if upper else -1)
    return apply(op, (_as_real(a, half - half.mT),), attributes)[..., ::2]


def decomposed(op: Op, operands: Sequence[Any], attributes: Attributes, _starts: Sequence[int]) -> Any:
    """Records the op of complex matrices that `op` is of real ones. Its result has the form of that of `op`."""
    (x,) = operands
    return ComplexArray(*apply_for_several(BY_NAME[f"complex_{op.name}"], x.parts, attributes))


def det(_op: Op, operands: Sequence[Any], _attributes: Attributes, _starts: Sequence[int]) -> Any:
    """Records the product of the sign and the size, as NumPy computes it."""
    found = decomposed(BY_NAME["slogdet"], operands, (), ())
    return found[..., 0] * exp(found.real_part[..., 1])


def _as_real(a: Any, b: Any) -> Any:
    """Returns the real matrix that does to both parts of a vector, one below the other, what A + Bi does to it."""
    return concat([concat([a, -b], axis=-1), concat([b, a], axis=-1)], axis=-2)


def inv(_op: Op, operands: Sequence[Any], _attributes: Attributes, _starts: Sequence[int]) -> Any:
    """Records the solution for the identity. Raises ShapeError unless the matrices are square."""
    x = _square("inv", operands)
    return apply(BY_NAME["solve"], (x, broadcast_to(_identity(x), x.shape)))


def _square(name: str, operands: Sequence[Any]) -> ComplexArray:
    x: ComplexArray = operands[0]
    if x.ndim < 2 or x.shape[-2] != x.shape[-1]:
        raise ShapeError(f"{name} takes square matrices, not the shape {x.shape}")
    return x


def _identity(x: ComplexArray) -> Any:
    size = x.shape[-1]
    numbers = counted(x.session, size)
    return operations.astype(numbers == numbers.reshape(-1, 1), x.dtype)


def _both_parts(x: Any, part: Any) -> Pair:
    real, imag = _parts_or_real(x, part)
    return real, filled(x.session, x.shape, 0.0, part) if imag is None else imag
