"""The shapes of results: rules that entries of the catalogue name, each of the operands' shapes and the attributes.

A rule raises ShapeError or ArgumentError for operands or attributes that the op does not take.
"""

from __future__ import annotations

from math import prod

from fusewire_protos.errors import ShapeError
from fusewire_protos.ops import shapes
from fusewire_protos.ops.op import Attributes
from fusewire_protos.ops.shapes import Region, Shape
from fusewire_protos.ops.strided import Strided, check_distinct
from fusewire_protos.ops.strided import check as check_view


def broadcast(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return shapes.broadcast(*operands)


def same(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return operands[0]


def reduce(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    _require_scalars(operands[1:])
    return shapes.reduce(operands[0], attributes[0], keepdims=attributes[1])


def reduce_to_some(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    """Is the rule of reductions without an identity, such as `max`. Raises ShapeError if it would reduce no element."""
    result = shapes.reduce(operands[0], attributes[0], keepdims=attributes[1])
    _require_elements(operands[0], attributes[0])
    return result


def along_axes(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    _require_scalars(operands[1:])
    shapes.reduce(operands[0], attributes[0], keepdims=True)
    return operands[0]


def along_some_axes(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    """Is the rule of ops that need the greatest element along axes. Raises ShapeError if no element lies there."""
    result = along_axes(operands, attributes)
    _require_elements(operands[0], attributes[0])
    return result


def product(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return shapes.product(*operands)


def given(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    _require_scalars(operands)
    shape: Shape = attributes[0]
    return shape


def vector(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    _require_scalars(operands)
    return (attributes[0],)


def matrix(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return (attributes[0], attributes[1])


def reshape(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return shapes.reshape(operands[0], attributes[0])


def transpose(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return shapes.transpose(operands[0], attributes[0])


def broadcast_to(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return shapes.broadcast_to(operands[0], attributes[0])


def part(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return shapes.region(operands[0], Region(*attributes))


def assign_slice(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    target, value = operands
    shapes.broadcast_to(value, shapes.region(target, Region(*attributes)))
    return target


def strided(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    part = Strided(*attributes)
    check_view(operands[0], part)
    return part.shape


def assign_strided(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    target, value = operands
    shapes.broadcast_to(value, strided((target,), attributes))
    check_distinct(Strided(*attributes))
    return target


def concatenate(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return shapes.concatenate(operands, attributes[0])


def take(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return shapes.take(operands[0], operands[1], attributes[0])


def one_hot(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    return (*operands[0], attributes[0])


def along_axis(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    shapes.reduce(operands[0], (attributes[0],), keepdims=True)
    return operands[0]


def take_along(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    data, indices = operands
    (axis,) = attributes
    wanted = shapes.reduce(data, (axis,), keepdims=True)
    if len(indices) != len(data) or shapes.reduce(indices, (axis,), keepdims=True) != wanted:
        raise ShapeError(f"indices of shape {indices} do not lie along axis {axis} of {data}")
    if data[axis] == 0 and 0 not in indices:
        raise ShapeError(f"axis {axis} of {data} has no elements")
    return indices


def segments(operands: tuple[Shape, ...], attributes: Attributes) -> Shape:
    data, places = operands
    axis, segments = attributes
    shapes.reduce(data, (axis,), keepdims=True)
    if places != (data[axis],):
        raise ShapeError(f"places of shape {places} do not lie along axis {axis} of {data}")
    return (*data[:axis], segments, *data[axis + 1 :])


def _require_elements(shape: Shape, axes: Shape) -> None:
    if prod(shape[axis] for axis in axes) == 0:
        raise ShapeError(f"no identity to reduce the empty axes {axes} of {shape}")


def _require_scalars(operands: tuple[Shape, ...]) -> None:
    for shape in operands:
        if shape:
            raise ShapeError(f"a scalar is required, not an array of shape {shape}")
