"""Checks attributes of ops that arrive over the wire: each kind of attribute has its own legal values."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from fusewire_protos.ops import dtypes, shapes
from fusewire_protos.ops.op import AttributeKind


def is_legal(kind: AttributeKind, value: Any) -> bool:
    return _LEGAL[kind](value)


def _is_dim(value: Any) -> bool:
    return type(value) is int and 0 <= value <= shapes.MAX_DIM


def _is_axis(value: Any) -> bool:
    return type(value) is int and 0 <= value < shapes.MAX_RANK


def _is_list_of(check: Callable[[Any], bool], value: Any) -> bool:
    return type(value) is tuple and len(value) <= shapes.MAX_RANK and all(check(item) for item in value)


def _is_bounded(value: Any) -> bool:
    return type(value) is int and abs(value) <= shapes.MAX_DIM


def _is_stride(value: Any) -> bool:
    return type(value) is int and abs(value) <= shapes.MAX_ELEMENTS


def _is_number(value: Any) -> bool:
    return type(value) is float and math.isfinite(value) and (value != 0 or math.copysign(1, value) > 0)


_LEGAL: dict[AttributeKind, Callable[[Any], bool]] = {
    AttributeKind.AXIS: _is_axis,
    AttributeKind.AXES: lambda value: _is_list_of(_is_axis, value) and list(value) == sorted(set(value)),
    AttributeKind.DIM: _is_dim,
    AttributeKind.DIMS: lambda value: _is_list_of(_is_dim, value),
    AttributeKind.PERMUTATION: lambda value: _is_list_of(_is_axis, value),
    AttributeKind.STEPS: lambda value: _is_list_of(lambda step: _is_bounded(step) and step != 0, value),
    AttributeKind.STRIDES: lambda value: _is_list_of(_is_stride, value),
    AttributeKind.INTEGER: _is_bounded,
    AttributeKind.FLOAT: _is_number,
    AttributeKind.FLAG: lambda value: type(value) is bool,
    AttributeKind.DTYPE: lambda value: type(value) is int and value in dtypes.BY_CODE,
}
