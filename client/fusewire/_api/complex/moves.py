"""Ops that move elements, or are linear with real factors: they apply to each part by itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from fusewire._api.array import Array
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.complex.operands import complex_array, is_not_zero, pairs_of, parts_in
from fusewire._api.functions.dtypes import result_type
from fusewire._api.ops import operations
from fusewire._api.ops.filled import filled
from fusewire._errors import DtypeError
from fusewire._recording.record_op import apply
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.op import Attributes, Op

# Those that take arrays alone, and give back elements of all of them, sums, or elements rounded or negated.
OF_ALL = (
    *("reshape", "transpose", "broadcast_to", "slice", "strided", "concat"),
    *("negative", "round", "sum", "mean", "cumulative_sum"),
)
# Those whose first operand has the elements, and whose others say where they are or go.
OF_FIRST = ("take", "take_along_axis", "segment_sum")
ASSIGNING = ("assign_slice", "assign_strided")


def move_all(op: Op, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    """Applies an op to the parts of all operands, which are arrays."""
    part = dtypes.part_of(result_type(*operands))
    pairs = [_whole_parts(each, part) for each in operands]
    return ComplexArray(*[apply(op, each, attributes, starts) for each in zip(*pairs, strict=True)])


def _whole_parts(x: Array, part: Any) -> tuple[Array, Array]:
    """Returns the parts of an array in its shape."""
    if isinstance(x, ComplexArray):
        return parts_in(x, part)
    return operations.astype(x, part, copy=False), filled(x.session, x.shape, 0.0, part)


def move_first(op: Op, operands: Sequence[Any], attributes: Attributes, _starts: Sequence[int]) -> Any:
    """Applies an op to the parts of the first operand, with the others as they are."""
    x, *places = operands
    if not isinstance(x, ComplexArray):
        raise DtypeError(f"{op.name} takes indices that are integers, no complex numbers")
    return ComplexArray(*[apply(op, (part, *places), attributes) for part in x.parts])


def assign(op: Op, operands: Sequence[Any], attributes: Attributes, starts: Sequence[int]) -> Any:
    """Assigns the parts of a value to those of the array. Raises DtypeError for complex values in a real array."""
    x, value = operands
    if not isinstance(x, ComplexArray):
        raise DtypeError(f"{x.dtype.name} cannot hold complex numbers; assign their .real, or cast the array by astype")
    ((real, imag),) = pairs_of([value], x.dtype) if isinstance(value, Array) else [_of_scalar(value)]
    pairs = zip(x.parts, (real, imag), strict=True)
    return ComplexArray(*[apply(op, pair, attributes, starts) for pair in pairs])


def _of_scalar(value: Any) -> tuple[float, float]:
    number = complex(value)
    return number.real, number.imag


def where(op: Op, operands: Sequence[Any], attributes: Attributes, _starts: Sequence[int]) -> Any:
    """Chooses both parts by one condition. A number as condition holds where it is not 0."""
    condition, *choices = operands
    holds = is_not_zero(condition) if isinstance(condition, ComplexArray | complex) else condition
    dtype = result_type(*choices)
    if not dtype.is_complex:
        return apply(op, (holds, *choices), attributes)
    part, session = dtypes.part_of(dtype), next(each for each in operands if isinstance(each, Array)).session
    pairs = [_floats_or_parts(each, dtype) for each in choices]
    zero = filled(session, (), 0.0, part)
    chosen = [
        apply(op, (holds, *[zero if each is None else each for each in parts]), attributes)
        for parts in zip(*pairs, strict=True)
    ]
    return complex_array(*[operations.astype(each, part, copy=False) for each in chosen])


def _floats_or_parts(choice: Any, dtype: Any) -> tuple[Any, Any]:
    """Returns the parts of a choice: arrays, or Python floats; None for the imaginary part of a real array."""
    if isinstance(choice, ComplexArray):
        return choice.parts
    return (choice, None) if isinstance(choice, Array) else _of_scalar(choice)


def astype(_op: Op, operands: Sequence[Any], attributes: Attributes, _starts: Sequence[int]) -> Any:
    """Casts to a complex dtype, or complex numbers to booleans. Raises DtypeError for complex numbers to real ones."""
    (x,), (code,) = operands, attributes
    wanted = next((each for each in dtypes.COMPLEX if each.code == code), None)
    if wanted is not None:
        part = dtypes.part_of(wanted)
        if isinstance(x, ComplexArray):
            return ComplexArray(*[operations.astype(each, part) for each in x.parts])
        return ComplexArray(operations.astype(x, part), filled(x.session, x.shape, 0.0, part))
    if dtypes.from_code(code).is_boolean:
        return is_not_zero(x)
    raise DtypeError(f"{x.dtype.name} is not cast to {dtypes.from_code(code).name}; cast its part x.real, or abs(x)")
