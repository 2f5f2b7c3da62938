"""Writes the expressions of generated text: scalar bodies, conversions, loads and stores of values. Pure.

A variable of type `uint8_t` holds a boolean, as 0 or 1. A variable of type float holds a float16 or bfloat16, as the
equal float.
"""

from __future__ import annotations

from math import isinf
from typing import NamedTuple

import numpy as np

from fusewire_kernels.ops.bodies import body_of
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType


class TextType(NamedTuple):
    """The names of a dtype in generated text.

    `value` is the type of a variable, and `stored` the type in memory. `suffix` names the dtype in the names of
    functions, and `compute_suffix` names the type in which ops on the dtype compute.
    """

    suffix: str
    compute_suffix: str
    value: str
    stored: str


TYPES: dict[DType, TextType] = {
    dtypes.bool_: TextType("b8", "b8", "uint8_t", "uint8_t"),
    dtypes.int8: TextType("i8", "i8", "int8_t", "int8_t"),
    dtypes.int16: TextType("i16", "i16", "int16_t", "int16_t"),
    dtypes.int32: TextType("i32", "i32", "int32_t", "int32_t"),
    dtypes.int64: TextType("i64", "i64", "int64_t", "int64_t"),
    dtypes.uint8: TextType("u8", "u8", "uint8_t", "uint8_t"),
    dtypes.uint16: TextType("u16", "u16", "uint16_t", "uint16_t"),
    dtypes.uint32: TextType("u32", "u32", "uint32_t", "uint32_t"),
    dtypes.uint64: TextType("u64", "u64", "uint64_t", "uint64_t"),
    dtypes.float16: TextType("f16", "f32", "float", "uint16_t"),
    dtypes.bfloat16: TextType("bf16", "f32", "float", "uint16_t"),
    dtypes.float32: TextType("f32", "f32", "float", "float"),
    dtypes.float64: TextType("f64", "f64", "double", "double"),
}


def expression(op: str, operand_dtype: DType, dtype: DType, operands: tuple[str, ...]) -> str:
    """Returns the text of an op's scalar body for operands with these names. The result is rounded to `dtype`.

    Raises LookupError if the op has no scalar body for `operand_dtype`.
    """
    body = body_of(op)
    template = body.template(operand_dtype)
    if template is None:
        raise LookupError(f"{op} has no body for {operand_dtype.name}")
    text = template.format(*operands, t=TYPES[operand_dtype].compute_suffix)
    return text if body.only_selects else rounded(text, dtype)


def rounded(text: str, dtype: DType) -> str:
    """Returns the expression rounded to the values of `dtype`."""
    return f"fw_round_{TYPES[dtype].suffix}({text})" if dtype.is_half else text


def conversion(operand: str, source: DType, target: DType) -> str:
    """Returns the expression that converts a value to `target`.

    A float out of the range of an integer dtype becomes the nearest integer of the dtype, and NaN becomes 0. The
    conversion to boolean is true if the value is not 0.
    """
    if source is target:
        return operand
    if target.is_boolean:
        return f"{operand} != 0"
    if TYPES[source].compute_suffix == TYPES[target].compute_suffix and not target.is_half:
        return operand
    return f"fw_cast_{TYPES[source].compute_suffix}_{TYPES[target].suffix}({operand})"


def literal(number: int | float, dtype: DType) -> str:
    """Returns the text of a number of `dtype`, which is no half: a whole number, or an extreme value of the dtype."""
    if dtype.is_floating:
        infinity = f"FW_INFINITY_{TYPES[dtype].suffix.upper()}"
        if isinf(number):
            return infinity if number > 0 else f"-{infinity}"
        return f"{float(number)}{'f' if dtype is dtypes.float32 else ''}"
    if dtype.is_integer and number in (bounds := _bounds(dtype)):
        return bounds[number]
    return str(number)


def _bounds(dtype: DType) -> dict[int | float, str]:
    """Returns the names of the bounds of an integer dtype, but of 0."""
    bounds, name = np.iinfo(dtype.name), dtype.name.upper()
    return {bounds.max: f"{name}_MAX", **({bounds.min: f"{name}_MIN"} if dtype.is_signed else {})}


def loaded(location: str, dtype: DType) -> str:
    """Returns the expression that reads a value from the memory location `location`."""
    if dtype.is_half:
        return f"fw_load_{TYPES[dtype].suffix}({location})"
    return f"{location} != 0" if dtype.is_boolean else location


def canonical(value: str, dtype: DType) -> str:
    """Returns the expression of a computed float, in which every NaN is replaced by the canonical NaN."""
    return f"fw_canonical_{TYPES[dtype].compute_suffix}({value})"


def storable(value: str, dtype: DType) -> str:
    """Returns the expression that turns a value into the form that is written to memory."""
    return f"fw_store_{TYPES[dtype].suffix}({value})" if dtype.is_half else value
