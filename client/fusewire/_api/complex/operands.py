"""Brings the operands of an op to pairs of parts of one dtype: the parts of complex numbers, or a real number and 0."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusewire._api.array import Array
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.ops import operations
from fusewire._api.ops.filled import filled
from fusewire._api.ops.operands import session_of
from fusewire_protos.ops import dtypes, shapes
from fusewire_protos.ops.dtypes import DType

Pair = tuple[Any, Any]


def pairs_of(operands: Sequence[Any], dtype: DType) -> list[Pair]:
    """Returns the parts of each operand, for a result of the complex `dtype`. Those of a scalar are Python floats.

    The imaginary part of a real array is a 0 of rank 0.
    """
    part = dtypes.part_of(dtype)
    return [_pair(each, part, session_of(operands)) for each in operands]


def array_pairs_of(operands: Sequence[Any], dtype: DType) -> list[Pair]:
    """Returns the parts of each operand as arrays, those of a scalar of rank 0. A scalar is no upload."""
    part, session = dtypes.part_of(dtype), session_of(operands)

    def array(each: Any) -> Array:
        return each if isinstance(each, Array) else filled(session, (), each, part)

    return [(array(real), array(imag)) for real, imag in pairs_of(operands, dtype)]


def _pair(operand: Any, part: DType, session: Any) -> Pair:
    if isinstance(operand, ComplexArray):
        return parts_in(operand, part)
    if isinstance(operand, Array):
        return operations.astype(operand, part, copy=False), filled(session, (), 0.0, part)
    number = complex(operand)
    return number.real, number.imag


def parts_in(x: ComplexArray, part: DType) -> tuple[Array, Array]:
    """Returns the parts of an array in a float dtype."""
    return operations.astype(x.real_part, part, copy=False), operations.astype(x.imag_part, part, copy=False)


def complex_array(real: Any, imag: Any) -> ComplexArray:
    """Returns the array of two computed parts, which broadcast to one shape."""
    shape = shapes.broadcast(real.shape, imag.shape)
    parts = [each if each.shape == shape else operations.broadcast_to(each, shape) for each in (real, imag)]
    return ComplexArray(*parts)


def chosen_number(condition: Array, number: float, other: float, like: Array) -> Array:
    """Returns one of two numbers for each element, in the dtype of `like`."""
    return operations.astype(where(condition, number, other), like.dtype, copy=False)


def is_not_zero(x: Any) -> Any:
    """Returns where numbers are not 0, or a scalar as it is. NaN is not 0."""
    if isinstance(x, ComplexArray):
        return (x.real_part != 0) | (x.imag_part != 0)
    return x != 0 if isinstance(x, Array) else bool(x)
