"""Attributes of any op for tests that try all ops."""

from __future__ import annotations

from typing import Any

from fusewire_protos.ops import dtypes
from fusewire_protos.ops.op import AttributeKind, Attributes, Op
from fusewire_protos.ops.shapes import Shape


def sample_attributes(op: Op, axes: Shape = (0,), *, keepdims: bool = False) -> Attributes:
    """One value for each attribute of an op that has axes, flags, numbers and dtypes alone."""
    samples: dict[AttributeKind, Any] = {
        AttributeKind.AXIS: axes[0] if axes else 0,
        AttributeKind.AXES: axes,
        AttributeKind.FLAG: keepdims,
        AttributeKind.FLOAT: 0.3,
        AttributeKind.INTEGER: 3,
        AttributeKind.DTYPE: dtypes.float32.code,
    }
    return tuple(samples[attribute.kind] for attribute in op.attributes)
