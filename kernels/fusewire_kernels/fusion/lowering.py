"""Lowers each group to a kernel: finds the kernel's loops, merges dimensions and numbers the values.

A kernel of loops is made from the loop nest of the group. The groups of a repeated loop body have the same loop nest,
so they are lowered only once.
"""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise
from math import prod
from typing import Any, NamedTuple

from fusewire_kernels.fusion.fusion import Fusion
from fusewire_kernels.fusion.loop_nest import (
    PRODUCT_BUFFER,
    LoopNest,
    NestArgument,
    NestNode,
    loop_nest_of,
    outline_of,
)
from fusewire_kernels.fusion.placement import Walk
from fusewire_kernels.graph import views
from fusewire_kernels.graph.graph import LINE, PRODUCT, Operand, Value
from fusewire_kernels.graph.views import Layout
from fusewire_kernels.ir.kernel import (
    Argument,
    ArgumentKind,
    Kernel,
    LineKernel,
    LoopKernel,
    MatrixKernel,
    Node,
    ProductKernel,
    Store,
    Stride,
    are_columns,
)
from fusewire_kernels.ops.small_matrices import operations_of
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Shape

_CLASSES = {0: Stride.ZERO, 1: Stride.UNIT}  # any other stride is Stride.ANY


class Lowered(NamedTuple):
    """A kernel with its sizes.

    `strides[argument]` tells by how many elements the argument moves at one step of each dimension of the kernel.
    `buffers[argument]` is the number of the argument's buffer in the loop nest. `operations`, `moved_elements` and
    `moved_bytes` are counts for one instance: `moved_elements` has a count for each argument, `moved_bytes` is the sum
    over all arguments. `values[node]` is the number, in the kernel's text, of what a node of the loop nest computes.
    """

    kernel: Kernel
    sizes: tuple[int, ...]
    strides: tuple[tuple[int, ...], ...]
    buffers: tuple[int, ...]
    operations: int
    moved_elements: tuple[int, ...]
    moved_bytes: int
    values: tuple[int, ...] = ()


class Instance(NamedTuple):
    """One instance of a launch: a group with its kernel and operands.

    `operands` are in the order of the kernel's arguments. The kernel writes the last `outputs` operands. `computed` are
    the values of the graph that the nodes of the loop nest compute.
    """

    lowered: Lowered
    operands: tuple[Operand, ...]
    outputs: int
    computed: tuple[int, ...] = ()

    def read(self) -> tuple[Operand, ...]:
        return self.operands[: len(self.operands) - self.outputs]

    def written(self) -> tuple[Operand, ...]:
        return self.operands[len(self.operands) - self.outputs :]


def lower(fusion: Fusion) -> list[Instance]:
    """Returns an instance for each group, in the order of the groups."""
    alike: dict[tuple[Any, ...], Instance] = {}  # by outline: the first instance with that outline
    return [
        _lower_buffers(fusion, index) if group.reads_buffers else _lower_loops(fusion, index, alike)
        for index, group in enumerate(fusion.groups)
    ]


def _lower_buffers(fusion: Fusion, index: int) -> Instance:
    group = fusion.groups[index]
    if not group.is_whole:
        return _lower_product(fusion, index)
    (member,) = group.members
    is_line = fusion.graph.values[member.value].form is LINE
    return (_lower_lines if is_line else _lower_matrices)(fusion, member.value)


# ---- whole buffers ----


def _lower_lines(fusion: Fusion, number: int) -> Instance:
    """Returns the instance that computes lines. If they need memory of their own, that is an output, too."""
    value = fusion.graph.values[number]
    assert value.lines is not None
    kernel = LineKernel(value.body, value.operand_dtype, value.dtype, value.scratch is not None)
    written = [number] if value.scratch is None else [number, value.scratch]
    steps = max(value.lines.length.bit_length(), 1) if kernel.sorts else 1
    return _of_whole_buffers(fusion, kernel, value, written, value.lines, steps * prod(value.operands[0].layout.shape))


def _lower_matrices(fusion: Fusion, number: int) -> Instance:
    """Returns the instance that computes small matrices."""
    value = fusion.graph.values[number]
    assert value.matrices is not None
    count, rows, columns, _, _ = value.matrices
    operations = count * operations_of(value.body, rows, columns)
    return _of_whole_buffers(fusion, MatrixKernel(value.body, value.dtype), value, [number], value.matrices, operations)


def _of_whole_buffers(
    fusion: Fusion,
    kernel: LineKernel | MatrixKernel,
    value: Value,
    written: list[int],
    sizes: tuple[int, ...],
    operations: int,
) -> Instance:
    buffers = [(number, fusion.graph.values[number]) for number in written]
    operands = (*value.operands, *[Operand(number, views.dense(each.shape)) for number, each in buffers])
    moved = tuple([prod(operand.layout.shape) for operand in operands])
    moved_bytes = sum([count * each.itemsize_bytes for count, each in zip(moved, kernel.argument_dtypes, strict=True)])
    places = tuple(range(len(operands)))
    lowered = Lowered(kernel, sizes, ((),) * len(operands), places, operations, moved, moved_bytes)
    return Instance(lowered, operands, len(written))


# ---- products ----


def _lower_product(fusion: Fusion, index: int) -> Instance:
    """Returns the instance of a group that computes a product, with or without an epilogue."""
    group, values = fusion.groups[index], fusion.graph.values
    number = next(member.value for member in group.members if values[member.value].form is PRODUCT)
    a, b = values[number].operands
    right = _right(b.layout, len(a.layout.shape) - 2, values[number].inner_axes)
    if len(group.members) == 1:
        lowered = _lowered_product(a.layout, right, values[number].dtype, None)
        return Instance(lowered, (a, b, Operand(number, views.dense(values[number].shape))), 1)
    nest, buffers, computed = loop_nest_of(fusion, index)
    lowered = _lowered_product(a.layout, right, values[number].dtype, nest)
    return Instance(lowered, (a, b, *[buffers[buffer] for buffer in lowered.buffers[2:]]), len(nest.stores), computed)


class _Right(NamedTuple):
    """The right operand of a product as matrices. `walks` are the axes along k and along columns if these are several.

    Then the strides of the matrices along k and along columns are 0.
    """

    matrices: Layout
    walks: tuple[Layout, Layout] | None


def _right(layout: Layout, batch_rank: int, inner_axes: int) -> _Right:
    """Returns an operand whose axes are those of a batch, so many along k, and those along columns."""
    if not inner_axes:
        return _Right(layout, None)
    first, second = slice(batch_rank, batch_rank + inner_axes), slice(batch_rank + inner_axes, None)
    inner, columns = (Layout(layout.shape[part], layout.strides[part], 0, ()) for part in (first, second))
    shape = (*layout.shape[:batch_rank], prod(inner.shape), prod(columns.shape))
    matrices = Layout(shape, (*layout.strides[:batch_rank], 0, 0), layout.offset, layout.moves)
    return _Right(matrices, (inner, columns))


def _is_wide(inner: Layout, columns: Layout) -> bool:
    """Returns whether a longer run of elements lies close together along columns than along k."""
    apart_inner, apart_columns = (abs(each.strides[-1]) for each in (inner, columns))
    return columns.shape[-1] * apart_inner >= inner.shape[-1] * apart_columns


@lru_cache(4096)
def _lowered_product(a: Layout, right: _Right, dtype: DType, nest: LoopNest | None) -> Lowered:
    """Returns a product of two matrices or stacks of matrices, with the epilogue `nest`."""
    b, walks = right
    inner, columns = a.shape[-1], b.shape[-1]
    results = prod(a.shape[:-1]) * columns
    arguments = [] if nest is None else _epilogue_arguments(nest)
    arrays = [argument for argument in arguments if not argument.is_slot]
    batch, down = _product_loops(a, b, arrays)
    across = _Loop(columns, 1 if columns > 1 else 0, is_inner=False)
    outer = [each.loop for each in batch]
    epilogue, entries, numbers = (None, (), ()) if nest is None else _epilogue(nest, down.loop, across, outer)
    is_unit = b.strides[-1] == 1 or columns == 1 if walks is None else _is_wide(*walks)
    is_transposed = down.of_a == 1 and a.strides[-1] != 1 and min(down.loop.extent, inner) > 1
    is_in_fours = _is_in_fours(a, -2 if is_transposed else -1)
    is_in_fours = is_in_fours and (walks is not None or _is_in_fours(b, -1 if is_unit else -2))
    digits = None if walks is None else (len(walks[0].shape), len(walks[1].shape))
    kernel = ProductKernel(dtype, len(batch), is_unit, is_transposed, is_in_fours, epilogue, digits)
    b_column = 1 if columns == 1 and walks is None else b.strides[-1]
    b_steps = (
        (b.strides[-2], b_column) if walks is None else [n for each in walks for n in (*each.shape, *each.strides)]
    )
    sizes = (
        *(each.loop.extent for each in batch),
        *(down.loop.extent, columns, inner),
        *(each.of_a for each in batch),
        *(down.of_a, a.strides[-1]),
        *(each.of_b for each in batch),
        *b_steps,
        *entries,
    )
    loops = [*outer, down.loop, across]
    out = NestArgument(0, dtype, False, (results,), (1,), (1,))
    strides = (
        (*(each.of_a for each in batch), down.of_a, 0),
        (*(each.of_b for each in batch), 0, b_column),
        *[() if argument.is_slot else tuple(_strides(argument, loops)) for argument in arguments or [out]],
    )
    moved = (
        _distinct_elements(a.shape, a.strides),
        _distinct_elements(b.shape, b.strides) if walks is None else _spanned(b, walks),
        *[_distinct_elements(argument.shape, argument.strides) for argument in arguments or [out]],
    )
    moved_bytes = sum([count * each.itemsize_bytes for count, each in zip(moved, kernel.argument_dtypes, strict=True)])
    operations = results * (2 * inner + (0 if nest is None else len(nest.nodes)))
    buffers = (0, 1, *[argument.buffer for argument in arguments or [out]])
    return Lowered(kernel, sizes, strides, buffers, operations, moved, moved_bytes, numbers)


def _is_in_fours(layout: Layout, axis: int) -> bool:
    """Returns whether an operand can be loaded by four neighbours along an axis at once. Every buffer is aligned."""
    strides = list(layout.strides)
    along = strides.pop(axis)
    distances = (layout.shape[axis], layout.offset, *strides, *(move.stride for move in layout.moves))
    return along == 1 and all(distance % 4 == 0 for distance in distances)


class _ProductLoop(NamedTuple):
    """A loop over matrices or rows of a product, and by how many elements one step moves a and b."""

    loop: _Loop
    of_a: int
    of_b: int


def _product_loops(a: Layout, b: Layout, arrays: list[NestArgument]) -> tuple[list[_ProductLoop], _ProductLoop]:
    """Returns the loops over the batch and the loop over the rows.

    Merges neighbouring loops where a, b and all arrays of the epilogue allow it. So if all matrices a share one matrix
    b, their rows are the rows of one product.
    """
    dims = a.shape[:-1]
    places = views.dense_strides((*dims, b.shape[-1]))
    of_b = (*b.strides[:-2], 0)
    loops = [_Loop(dim, place, is_inner=False) for dim, place in zip(dims, places, strict=False) if dim != 1]
    moving = [axis for axis, dim in enumerate(dims) if dim != 1]
    strides = [[a.strides[axis] for axis in moving], [of_b[axis] for axis in moving]]
    merged = _merged(loops, strides + [_strides(argument, loops) for argument in arrays], set())
    found = [_ProductLoop(*each) for each in zip(merged.loops, *merged.strides[:2], strict=True)]
    if found and found[-1].of_b == 0:
        return found[:-1], found[-1]
    return found, _ProductLoop(_Loop(1, 0, is_inner=False), 0, 0)


def _epilogue_arguments(nest: LoopNest) -> list[NestArgument]:
    """Returns the arguments of an epilogue but the product: first the inputs, then the outputs."""
    inputs = [argument for argument in _inputs_of(nest) if argument.buffer != PRODUCT_BUFFER]
    return [*inputs, *(target for _, target in nest.stores)]


class _Epilogue(NamedTuple):
    """The kernel of an epilogue, its entries in the sizes of the product, and the numbers of its values."""

    kernel: LoopKernel
    entries: tuple[int, ...]
    values: tuple[int, ...]


def _epilogue(nest: LoopNest, down: _Loop, across: _Loop, batch: list[_Loop]) -> _Epilogue:
    lowered = _KernelWriter(nest, [down, across]).written()
    assert isinstance(lowered.kernel, LoopKernel)
    arrays = [argument for argument in _epilogue_arguments(nest) if not argument.is_slot]
    moves = [stride for argument in arrays for stride in _strides(argument, [*batch, down, across])]
    product = lowered.kernel.inputs[0]
    entries = (*moves, *lowered.sizes[2 + product.strides.count(Stride.ANY) :])
    return _Epilogue(lowered.kernel, entries, lowered.values)


def _spanned(matrices: Layout, walks: tuple[Layout, Layout]) -> int:
    """Returns about how many elements walked matrices show: as many as there are between the first and the last."""
    return _distinct_elements(matrices.shape, matrices.strides) * (sum([views.reach(walk) for walk in walks]) - 1)


def _distinct_elements(shape: Shape, strides: Shape) -> int:
    """Returns the number of elements that a view shows. A repeated element counts once."""
    return prod(dim for dim, stride in zip(shape, strides, strict=True) if stride)


# ---- loops ----


def _lower_loops(fusion: Fusion, index: int, alike: dict[tuple[Any, ...], Instance]) -> Instance:
    """Returns the instance of a group that runs as loops.

    Groups with equal outlines share a kernel, because such groups differ only in their buffers.
    """
    outlined = outline_of(fusion, fusion.groups[index])
    if outlined is None:
        return _lowered_by_loop_nest(fusion, index)
    outline, buffers = outlined
    first = alike.get(outline)
    if first is None:
        first = alike[outline] = _lowered_by_loop_nest(fusion, index)
    lowered, _, outputs, _ = first
    values = fusion.graph.values
    computed = tuple([number for number, _ in fusion.groups[index].members if values[number].target is None])
    return Instance(lowered, tuple([buffers[buffer] for buffer in lowered.buffers]), outputs, computed)


def _lowered_by_loop_nest(fusion: Fusion, index: int) -> Instance:
    nest, buffers, computed = loop_nest_of(fusion, index)
    lowered = _lowered_loops(nest)
    return Instance(lowered, tuple([buffers[buffer] for buffer in lowered.buffers]), len(nest.stores), computed)


class _Loop(NamedTuple):
    """A loop over `extent` points of a group's space, `stride` apart.

    `is_inner` tells whether the loop runs along the walk, which is the points that a reduction reduces to one.
    """

    extent: int
    stride: int
    is_inner: bool


@lru_cache(4096)
def _lowered_loops(nest: LoopNest) -> Lowered:
    return _KernelWriter(nest).written()


class _KernelWriter:
    """Makes the kernel of a loop nest: merges loops where every argument allows it, and numbers arguments and nodes."""

    def __init__(self, nest: LoopNest, epilogue_loops: list[_Loop] | None = None) -> None:
        """`epilogue_loops` are the loops of a product's epilogue, which stay as they are."""
        self._nest = nest
        self._inputs = _inputs_of(nest)
        self._outputs = [target for _, target in nest.stores]
        axes = {node.axis for node in nest.nodes if node.axis is not None}
        arrays = [argument for argument in (*self._inputs, *self._outputs) if not argument.is_slot]
        loops = epilogue_loops or _loops(nest)
        strides = [_strides(argument, loops) for argument in arrays]
        merged = _Merged(loops, strides) if epilogue_loops else _merged(loops, strides, axes)
        self._outer = [loop for loop in merged.loops if not loop.is_inner]
        self._inner = [loop for loop in merged.loops if loop.is_inner]
        assert len(self._inner) <= 1, "every argument moves by one stride along the walk"
        self._moves = {argument: tuple(moves) for argument, moves in zip(arrays, merged.strides, strict=True)}
        # From this dimension on the kernel distinguishes the strides 0 and 1 from other strides.
        self._first_classed = max(len(self._outer) - 1, 0)
        if nest.walk is not None and self._outer and not are_columns(map(self._argument, self._inputs)):
            self._first_classed = len(self._outer)
        self._nodes: list[Node] = []
        self._number: dict[int | NestArgument, int] = {argument: i for i, argument in enumerate(self._inputs)}
        self._is_inner: list[bool] = [self._moves_inside(argument) for argument in self._inputs]

    def written(self) -> Lowered:
        for index, node in enumerate(self._nest.nodes):
            self._number[index] = self._add_node(node)
        stores = tuple([self._store(source, target) for source, target in self._nest.stores])
        inputs = tuple([self._argument(argument) for argument in self._inputs])
        has_inner = self._nest.walk is not None
        kernel = LoopKernel(len(self._outer), has_inner, inputs, tuple(self._nodes), stores)
        arguments = [*self._inputs, *self._outputs]
        moved = tuple([_distinct_elements(argument.shape, argument.strides) for argument in arguments])
        return Lowered(
            kernel,
            self._sizes(),
            tuple([self._moves.get(argument, ()) for argument in arguments]),
            tuple([argument.buffer for argument in arguments]),
            max(len(self._nodes), 1) * self._nest.elements,
            moved,
            sum([count * argument.dtype.itemsize_bytes for count, argument in zip(moved, arguments, strict=True)]),
            tuple([self._number[index] for index in range(len(self._nest.nodes))]),
        )

    def _add_node(self, node: NestNode) -> int:
        if node.axis is not None:
            dimension = self._dimension(node.axis)
            is_inner = dimension == len(self._outer)
            return self._node("index", (), node, is_inner=is_inner, detail=dimension)
        operands = tuple([self._number[operand] for operand in node.operands])
        if node.body == "gather":
            data, position = operands
            is_inner = self._is_inner[data] or self._is_inner[position]
            return self._node("gather", (position,), node, is_inner=is_inner, detail=data)
        if node.is_reduction:
            inner = self._as_inner(operands[0], node.operand_dtype)
            return self._node("reduce", (inner,), node, is_inner=False, detail=node.body)
        return self._node(node.body, operands, node, is_inner=any(self._is_inner[number] for number in operands))

    def _node(
        self, op: str, operands: tuple[int, ...], node: NestNode, *, is_inner: bool, detail: str | int | None = None
    ) -> int:
        self._nodes.append(Node(op, operands, node.operand_dtype, node.dtype, is_inner, detail))
        self._is_inner.append(is_inner)
        return len(self._is_inner) - 1

    def _as_inner(self, number: int, dtype: DType) -> int:
        """Returns the number of an inner value, which has an element for each inner point.

        An inner value keeps its number. Any other value is the same at all inner points: a new node repeats the value.
        """
        if self._is_inner[number]:
            return number
        self._nodes.append(Node("cast", (number,), dtype, dtype, True))
        self._is_inner.append(True)
        return len(self._is_inner) - 1

    def _store(self, source: int | NestArgument, target: NestArgument) -> Store:
        number = self._number[source]
        if self._moves_inside(target):
            number = self._as_inner(number, target.dtype)
        return Store(number, self._argument(target))

    def _moves_inside(self, argument: NestArgument) -> bool:
        if not self._inner or argument.is_slot:
            return False
        return self._moves[argument][-1] != 0

    def _dimension(self, axis: Walk) -> int:
        for dimension, loop in enumerate((*self._outer, *self._inner)):
            if _axis(loop) == axis:
                return dimension
        raise AssertionError("the axis of an INDEX value is one loop")

    def _argument(self, argument: NestArgument) -> Argument:
        if argument.is_slot:
            return Argument(ArgumentKind.SCALAR, argument.dtype, ())
        kind = ArgumentKind.ARRAY if argument.gathered is None else ArgumentKind.GATHERED
        return Argument(kind, argument.dtype, self._classes(argument))

    def _classes(self, argument: NestArgument) -> tuple[Stride, ...]:
        first = self._first_classed
        moves = self._moves[argument]
        classes = [Stride.ANY] * min(first, len(moves)) + [_CLASSES.get(stride, Stride.ANY) for stride in moves[first:]]
        if self._nest.walk is not None and not self._inner:
            classes.append(Stride.ZERO)  # the reduction is over one element
        return tuple(classes)

    def _sizes(self) -> tuple[int, ...]:
        sizes = [loop.extent for loop in (*self._outer, *self._inner)]
        if self._nest.walk is not None and not self._inner:
            sizes.append(1)
        for argument in (*self._inputs, *self._outputs):
            if argument.is_slot:
                continue
            classes = self._classes(argument)
            moves = self._moves[argument]
            sizes += [stride for stride, kind in zip(moves, classes, strict=False) if kind is Stride.ANY]
            sizes += argument.gathered or ()
        return tuple(sizes)


class _Merged(NamedTuple):
    loops: list[_Loop]
    strides: list[list[int]]  # [array][loop]


def _inputs_of(nest: LoopNest) -> list[NestArgument]:
    """Returns the arguments that the loop nest reads, once each: the product, then the others in order of first use."""
    found: dict[NestArgument, None] = {}
    for node in nest.nodes:
        for operand in node.operands:
            if isinstance(operand, NestArgument):
                found[operand] = None
    for source, _ in nest.stores:
        if isinstance(source, NestArgument):
            found[source] = None
    return sorted(found, key=lambda argument: argument.buffer != PRODUCT_BUFFER)


def _loops(nest: LoopNest) -> list[_Loop]:
    """Returns one loop for each two neighbouring breaks, outermost first."""
    cuts = sorted(nest.breaks | {1, nest.elements})
    walk = nest.walk or Walk(1, 0)
    loops = [_Loop(high // low, low, walk.stride <= low < walk.stride * walk.extent) for low, high in pairwise(cuts)]
    return loops[::-1]


def _strides(argument: NestArgument, loops: list[_Loop]) -> list[int]:
    """Returns for each loop the number of elements by which an argument moves at one step."""
    axes = [axis for axis in zip(argument.shape, argument.placement, argument.strides, strict=True) if axis[0] != 1]
    found = []
    for loop in loops:
        around = [axis for axis in axes if loop.extent != 1 and axis[1] <= loop.stride < axis[1] * axis[0]]
        found.append(around[0][2] * (loop.stride // around[0][1]) if around else 0)
    return found


def _merged(loops: list[_Loop], strides: list[list[int]], axes: set[Walk]) -> _Merged:
    """Merges two neighbouring loops if every array moves through both with one stride. Merges no loop of `axes`."""
    kept: list[_Loop] = []
    columns: list[list[int]] = []
    for loop, column in sorted(
        ((loop, [moves[i] for moves in strides]) for i, loop in enumerate(loops)),
        key=lambda entry: entry[0].is_inner,
    ):
        is_free = not kept or (_axis(loop) not in axes and _axis(kept[-1]) not in axes)
        if kept and is_free and kept[-1].is_inner == loop.is_inner and _is_continued(columns[-1], column, loop.extent):
            kept[-1] = _Loop(kept[-1].extent * loop.extent, loop.stride, loop.is_inner)
            columns[-1] = column
        else:
            kept.append(loop)
            columns.append(column)
    return _Merged(kept, [list(moves) for moves in zip(*columns, strict=True)] if kept else [[] for _ in strides])


def _axis(loop: _Loop) -> Walk:
    return Walk(loop.extent, loop.stride)


def _is_continued(outer: list[int], inner: list[int], extent: int) -> bool:
    return all(far == near * extent for far, near in zip(outer, inner, strict=True))
