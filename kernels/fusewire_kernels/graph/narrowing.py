"""Narrows the values of a graph to the slices of them that are read, so that fewer values are read in slices. Pure.

Of `z = h @ w + b` only `z[:, :8]` and `z[:, 8:]` may be read. Narrowed, the graph computes `h @ w[:, :8] + b[:8]` and
`h @ w[:, 8:] + b[8:]` instead. Each element is computed by the same operations.

A value is narrowed if it is pointwise or the product of two matrices, all its readers read few slices of it along one
axis, and these slices have together no more elements than the value. A chain of m values of which n slices are read
becomes m · n values, so a graph that would have many values stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from fusewire_kernels.graph.graph import LEAVES, POINTWISE, PRODUCT, Graph, Operand, Value, needs_and_uses
from fusewire_kernels.graph.views import Layout, Move, dense
from fusewire_protos.ops.shapes import Shape

_MOST_VALUES = 1000  # of a graph, before and after
_MOST_SLICES = 32  # of a value


class _Slice(NamedTuple):
    """The positions `first + k · step` along an axis, for k < `length`. Slice starts move `first` by `moves`."""

    axis: int
    length: int
    step: int
    first: int
    moves: tuple[Move, ...]


_Parts = dict[_Slice | None, None]  # of one value, in the order in which they were found; None is all of it


def narrowed(graph: Graph) -> Graph | None:
    """Returns a graph of the same outputs that narrows what can be narrowed. None if nothing can, or too much."""
    if len(graph.values) > _MOST_VALUES:
        return None
    parts = _parts(graph)
    if all(None in of_one for of_one in parts if of_one) or sum(map(len, parts)) > _MOST_VALUES:
        return None
    return _with_parts(graph, parts)


def _parts(graph: Graph) -> list[_Parts]:
    """Returns which parts of each value are computed. A value that is not needed has none, unless it is a leaf."""
    found: list[_Parts] = [{} for _ in graph.values]
    for number in graph.outputs:
        found[number][None] = None
    needed = zip(graph.values, graph.is_needed, strict=True)
    scratches = {value.scratch for value, is_needed in needed if is_needed}  # which nothing reads
    for number in range(len(graph.values) - 1, -1, -1):
        value = graph.values[number]
        if not graph.is_needed[number] and value.form not in LEAVES and number not in scratches:
            found[number] = {}
        elif not _is_narrow(value, found[number]):
            found[number] = {None: None}
        for part in found[number]:
            for read, part_read in _reads(graph, value, part):
                found[read][part_read] = None
    return found


def _reads(graph: Graph, value: Value, part: _Slice | None) -> Iterator[tuple[int, _Slice | None]]:
    """Yields the values that a part of a value reads or fills, and which part of each."""
    for number, layout in _operands(value, part):
        yield number, _slice(layout, graph.values[number].shape)
    if value.target is not None:
        yield value.target.value, None
    if value.gathered is not None:  # its first operand is where it begins to read
        yield value.operands[0].value, None


def _is_narrow(value: Value, parts: _Parts) -> bool:
    slices = [part for part in parts if part is not None]
    if not slices or len(slices) < len(parts) or len({part.axis for part in slices}) > 1:
        return False
    if len(slices) > _MOST_SLICES or sum(part.length for part in slices) > value.shape[slices[0].axis]:
        return False
    return value.form is POINTWISE or (value.form is PRODUCT and _is_of_matrices(value))


def _is_of_matrices(product: Value) -> bool:
    return all(len(operand.layout.shape) == 2 for operand in product.operands)


def _slice(layout: Layout, shape: Shape) -> _Slice | None:
    """Returns the slice that a layout is of a dense value. None if it is the whole value, or no slice along an axis."""
    whole = dense(shape)
    if layout == whole or len(layout.shape) != len(shape):
        return None
    cut = [axis for axis, (length, extent) in enumerate(zip(layout.shape, shape, strict=True)) if length != extent]
    if len(cut) != 1:
        return None
    (axis,) = cut
    length, stride = layout.shape[axis], whole.strides[axis]
    if not 0 < length < shape[axis]:
        return None
    is_kept = all(layout.strides[other] == whole.strides[other] for other in range(len(shape)) if other != axis)
    distances = (layout.strides[axis], layout.offset, *[move.stride for move in layout.moves])
    is_regular = all(distance % stride == 0 for distance in distances)
    if not is_kept or not is_regular or (length > 1 and layout.strides[axis] == 0):
        return None
    step = layout.strides[axis] // stride if length > 1 else 1
    moves = tuple([Move(move.start, move.stride // stride) for move in layout.moves])
    return _Slice(axis, length, step, layout.offset // stride, moves)


def _sliced(layout: Layout, axis: int, part: _Slice) -> Layout:
    """Returns the layout of a slice of a view, along an axis of the view."""
    stride = layout.strides[axis]
    shape, strides = list(layout.shape), list(layout.strides)
    shape[axis], strides[axis] = part.length, stride * part.step if part.length > 1 else 0
    moves = [Move(move.start, move.stride * stride) for move in part.moves if stride]
    return Layout(tuple(shape), tuple(strides), layout.offset + part.first * stride, (*layout.moves, *moves))


def _operands(value: Value, part: _Slice | None) -> tuple[Operand, ...]:
    """Returns the operands of a value of which only a part is computed."""
    if part is None:
        return value.operands
    if value.form is POINTWISE:
        return tuple([Operand(number, _sliced(layout, part.axis, part)) for number, layout in value.operands])
    left, right = value.operands
    if _is_along_columns(value, part.axis):
        return left, Operand(right.value, _sliced(right.layout, 1, part))
    return Operand(left.value, _sliced(left.layout, 0, part)), right


def _is_along_columns(product: Value, axis: int) -> bool:
    """Returns whether an axis along which a product is cut is that of its columns.

    A product of one row has no other, whatever its shape: that of a matrix by a vector may have the vector as its row.
    """
    left, _ = product.operands
    return axis == 1 or left.layout.shape[0] == 1


def _with_parts(graph: Graph, parts: list[_Parts]) -> Graph:
    """Returns the graph of these parts of its values."""
    values: list[Value] = []
    number_of: dict[tuple[int, _Slice | None], int] = {}

    def renumbered(operand: Operand) -> Operand:
        part = _slice(operand.layout, graph.values[operand.value].shape)
        if part is None or part not in parts[operand.value]:
            return Operand(number_of[operand.value, None], operand.layout)
        return Operand(number_of[operand.value, part], dense(operand.layout.shape))

    for number, value in enumerate(graph.values):
        for part in parts[number]:
            number_of[number, part] = len(values)
            values.append(
                value._replace(
                    shape=_shape(value.shape, part),
                    operands=tuple([renumbered(operand) for operand in _operands(value, part)]),
                    target=None if value.target is None else renumbered(value.target),
                    scratch=None if value.scratch is None else number_of[value.scratch, None],
                    after=tuple([number_of[each, of_it] for each in value.after for of_it in parts[each]]),
                    kind=None,
                )
            )
    outputs = tuple([number_of[number, None] for number in graph.outputs])
    results = tuple([_first(number_of, number, parts) for number in graph.results])
    return Graph(tuple(values), outputs, *needs_and_uses(values, outputs), results)


def _first(number_of: Mapping[tuple[int, _Slice | None], int], number: int | None, parts: list[_Parts]) -> int | None:
    """Returns the first part of a value, or None if it has none."""
    return None if number is None else next((number_of[number, part] for part in parts[number]), None)


def _shape(shape: Shape, part: _Slice | None) -> Shape:
    return shape if part is None else (*shape[: part.axis], part.length, *shape[part.axis + 1 :])
