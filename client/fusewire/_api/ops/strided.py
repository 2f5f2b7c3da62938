"""Records views by strides, to read or write the elements of an array that strides lead to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from fusewire._recording.record_op import Recorded, apply
from fusewire._recording.recorded_ops import known_call
from fusewire_protos.ops import inference, shapes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.op import Attributes, Op
from fusewire_protos.ops.shapes import Shape

R = TypeVar("R", bound=Recorded)

_READ, _WRITE = BY_NAME["strided"], BY_NAME["assign_strided"]


def strides_of(shape: Shape) -> Shape:
    """Returns how many elements neighbours along each axis of an array in row-major order are apart."""
    strides, stride = [], 1
    for dim in reversed(shape):
        strides.append(stride)
        stride *= dim
    return tuple(reversed(strides))


@known_call
def view_of(x: R, shape: Sequence[int], strides: Sequence[int], start: int) -> R:
    """Returns the view of `x` whose element (i, j, …) is number start + i·strides[0] + j·strides[1] + … of `x`.

    Raises ShapeError or ArgumentError if it does not lie in `x`.
    """
    result: R = apply(_READ, (x,), _attributes(_READ, x, shape, strides, start), (start,))
    return result


@known_call
def with_view(x: R, value: Any, shape: Sequence[int], strides: Sequence[int], start: int) -> R:
    """Returns `x` with the elements of `view_of` replaced by `value`, which broadcasts to the view.

    Raises ShapeError also if the view may show an element twice.
    """
    result: R = apply(_WRITE, (x, value), _attributes(_WRITE, x, shape, strides, start), (start,))
    return result


def _attributes(op: Op, x: Recorded, shape: Sequence[int], strides: Sequence[int], start: int) -> Attributes:
    """Returns the attributes of a view, of which equal views have equal ones: axes of one element have the stride 0."""
    dims = shapes.check(shape)
    attributes = dims, tuple([stride if dim > 1 else 0 for dim, stride in zip(dims, strides, strict=True)])
    inference.check_starts(op, x._spec.shape, attributes, (start,))
    return attributes
