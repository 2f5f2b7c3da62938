"""Turns each op of a program into primitive values.

pointwise      a POINTWISE value, its operands cast as the catalogue says and broadcast to its shape; the numbers
               among its attributes are CONSTANT operands behind these
composite      its expansion
reduction      a REDUCTION that keeps its axes at length 1; operands whose reduced axes are not one strided
               dimension are first copied, so the order of elements is row-major whatever the view; a long reduction
               is a REDUCTION of the results of others (see `long_reductions`)
product        a PRODUCT over [batch…, rows, inner] and [batch…, inner, columns]; of two vectors of floats, a REDUCTION;
               on a GPU a matrix by a vector is the vector by the transposed matrix, because there are kernels for
               one row; a right operand that is a copy of a view with repeated elements, as windows, is read in the view
line           a LINE over a dense buffer; on a GPU, long lines are sorted in runs, which further LINEs merge
library        MATRICES over dense buffers, if the matrices are small; no other one is planned
view           no value: a layout over another value's buffer, copied only where no strides express it
concat, assignments, copies   an ASSEMBLY, a buffer without a computation, and STORE values that fill its regions;
               but an assignment to all elements in order is a view of what is assigned; on a GPU, parts that are
               in memory may be read where they are instead (see `selected_parts`)
take, take_along_axis   a GATHER;   one_hot, arange, eye, random_bits …: pointwise work on INDEX values
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property, lru_cache
from math import prod

from fusewire_kernels.graph import views
from fusewire_kernels.graph.graph import (
    ASSEMBLY,
    LINE,
    MATRICES,
    PRODUCT,
    REDUCTION,
    Gathered,
    Lines,
    Matrices,
    Operand,
    Value,
)
from fusewire_kernels.graph.long_reductions import Chunks, chunks
from fusewire_kernels.graph.selected_parts import Readers, may_be_selected, selected
from fusewire_kernels.graph.value_builder import ValueBuilder
from fusewire_kernels.graph.views import Layout
from fusewire_kernels.ir.kernel import MOST_DIGITS
from fusewire_kernels.ops.composites import expand
from fusewire_kernels.ops.order import CHUNK, SORTED_RUN
from fusewire_kernels.ops.small_matrices import others_of
from fusewire_kernels.ops.written_parts import part_of
from fusewire_protos.ops import dtypes, shapes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Category, DtypeSignature, Op
from fusewire_protos.ops.reductions import MIN, SUM, Reduction
from fusewire_protos.ops.shapes import Region, Shape, Spec
from fusewire_protos.ops.strided import Strided
from fusewire_protos.programs.program import Program, ProgramOp

# Of a matrix that is multiplied by a vector. With more rows there is work for the whole device anyway.
_MOST_ROWS_BY_A_VECTOR = 1 << 14
_FARTHEST = 1 << 30  # of the elements of a view that a product reads in place: kernels count them in 32 bits
_PART_IN_PLACE = 4  # a carried array of which at most one in so many elements changes is changed in place


class OpBuilder(ValueBuilder):
    """Adds the values of one op of a program.

    `first_start` is the number of the present op's first slice start. `for_gpu` tells whether a GPU runs the program:
    there, joined arrays are read where they are, if that is possible (see `selected_parts`), and a matrix is multiplied
    by a vector as the vector by the transposed matrix.
    """

    def __init__(self, program: Program, needed: list[bool], *, for_gpu: bool) -> None:
        super().__init__()
        self.first_start = 0
        self._for_gpu = for_gpu
        self._readers = Readers(program, needed)
        self._program, self._needed = program, needed
        self._owner: dict[int, int] = {}  # of an assembly that may be changed: its one name among operand numbers

    def result(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        """What an op becomes that gives an array of this dtype and shape."""
        if 0 in spec.shape:
            return self.add(Value(ASSEMBLY, spec.dtype, spec.shape, self.origin))
        return _maker_of(op.op)(self, op, operands, spec)

    def pointwise(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        wanted, result = self._dtype_signature(op, operands)
        name, shape = op.op.name, spec.shape
        if name == "astype":
            return self.cast(operands[0], result)
        values = self.values
        for position, (number, layout) in enumerate(operands):
            if layout.shape != shape or values[number].dtype is not wanted[position]:
                operands[position] = self.fit(operands[position], wanted[position], shape)
        if op.attributes:
            constants = [self.constant(number, wanted[-1]) for number in op.op.numbers(op.attributes)]
            operands = operands + [self.fit(constant, wanted[-1], shape) for constant in constants]
        return self.point(name, tuple(operands), wanted[-1], result, shape)

    def composite(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        specs = tuple([Spec(self.values[operand.value].dtype, operand.layout.shape) for operand in operands])
        part, constants = expand(op.op, specs, op.attributes)
        numbered = list(operands)
        for value, dtype in zip(constants, part.scalars, strict=True):
            numbered.append(self.constant(value, dtype))
        for index, inner in enumerate(part.ops):
            numbered.append(self.result(inner, [numbered[n] for n in inner.operands], part.result_spec(index)))
        return numbered[-1]

    def reduction(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        axes: Shape = op.attributes[0]
        reduction = _reduction_of(op.op)
        wanted, result = self._dtype_signature(op, operands)
        operand = self.cast(operands[0], wanted[0])
        shape = operand.layout.shape
        if prod(shape) == 0:
            return self.fit(self.constant(reduction.of_nothing, result), result, spec.shape)
        if not _reduces_one_walk(operand.layout, axes):
            kept = tuple([axis for axis in range(len(shape)) if axis not in axes])
            operand = self.copy(Operand(operand.value, views.transpose(operand.layout, kept + axes)))
            axes = tuple(range(len(kept), len(shape)))
        return self.viewed(self._reduced(reduction, operand, axes, result), spec.shape)

    def _reduced(self, reduction: Reduction, operand: Operand, axes: Shape, dtype: DType) -> Operand:
        """An operand reduced along axes that are one strided dimension, in two steps if they are long."""
        parts = chunks(operand.layout, axes)
        if parts is None:
            return self._reduced_in_one_step(reduction, operand, axes, dtype)
        given = self.values[operand.value].dtype
        if reduction.position_of is not None:
            best = self._results_of_chunks(reduction.position_of, operand.value, parts, given)
            places = self._results_of_chunks(reduction, operand.value, parts, dtype)
            return self._first_of_best(reduction.position_of, best, places, parts.axis)
        results = self._results_of_chunks(reduction, operand.value, parts, given.accumulator)
        return self._reduced(reduction, results, (parts.axis,), dtype)

    def _first_of_best(self, reduction: Reduction, best: Operand, places: Operand, axis: int) -> Operand:
        """The position of the best of all elements, from the best of each chunk and its place in the chunk.

        If the best is NaN, it is in the chunks whose best is NaN; else no chunk's best is.
        """
        given, shape, of_all = self.values[best.value].dtype, best.layout.shape, dtypes.int64
        best_of_all = self.fit(self._reduced(reduction, best, (axis,), given), given, shape)
        is_best = self.point("equal", (best, best_of_all), given, dtypes.bool_, shape)
        is_nan = self.point("not_equal", (best, best), given, dtypes.bool_, shape)
        is_first = self.point("logical_or", (is_best, is_nan), dtypes.bool_, dtypes.bool_, shape)
        length, beyond = (self.fit(self.constant(n, of_all), of_all, shape) for n in (CHUNK, CHUNK * shape[axis]))
        begin = self.point("multiply", (self.index(shape, axis), length), of_all, of_all, shape)
        position = self.point("add", (begin, places), of_all, of_all, shape)
        candidates = self.point("where", (is_first, position, beyond), of_all, of_all, shape)
        return self._reduced(MIN, candidates, (axis,), of_all)

    def _results_of_chunks(self, reduction: Reduction, value: int, parts: Chunks, dtype: DType) -> Operand:
        """The result of each chunk of a reduction. The axis `parts.axis` counts the chunks."""
        operands = [Operand(value, part) for part in (parts.whole, parts.rest) if part is not None]
        results = []
        for operand in operands:
            reduced = self._reduced_in_one_step(reduction, operand, (parts.axis + 1,), dtype)
            shape = reduced.layout.shape
            results.append(self.viewed(reduced, (*shape[: parts.axis + 1], *shape[parts.axis + 2 :])))
        return results[0] if len(results) == 1 else self._joined(results, parts.axis, dtype)

    def _reduced_in_one_step(self, reduction: Reduction, operand: Operand, axes: Shape, dtype: DType) -> Operand:
        shape = shapes.reduce(operand.layout.shape, axes, keepdims=True)
        given = self.values[operand.value].dtype
        return self.add(Value(REDUCTION, dtype, shape, self.origin, (operand,), reduction.name, given, axes=axes))

    def product(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        wanted, result = self._dtype_signature(op, operands)
        if result.is_floating and all(len(operand.layout.shape) == 1 for operand in operands):
            return self._product_of_vectors(operands, result)
        a, b = [self.in_memory(self.cast(operand, wanted[i])) for i, operand in enumerate(operands)]
        walked_a, walked_b = _as_matrices(a.layout, b.layout)
        if walked_a.shape[-1] == 0:
            return self.fit(self.constant(0, result), result, spec.shape)
        walked = self._windows(Operand(b.value, walked_b))
        if walked is not None:
            read, inner_axes = walked
            matrices = (Operand(a.value, walked_a), read)
            product = Value(PRODUCT, result, spec.shape, self.origin, matrices, "matmul", result, inner_axes=inner_axes)
            return self.add(product)
        matrices = (Operand(a.value, walked_a), Operand(b.value, walked_b))
        if self._for_gpu and a.value != b.value and _is_by_a_vector(walked_a, walked_b):
            matrices = (Operand(b.value, _transposed(walked_b)), Operand(a.value, _transposed(walked_a)))
        return self.add(Value(PRODUCT, result, spec.shape, self.origin, matrices, "matmul", result))

    def _windows(self, matrices: Operand) -> tuple[Operand, int] | None:
        """The view that matrices are a copy of, with its axes along k and along the columns, and how many lie along k.

        None if they are no copy, one that is not larger than what it copies, or one whose rows and columns are not
        whole axes of the view.
        """
        source = self.copied.get(matrices.value)
        if source is None or prod(source.layout.shape) <= prod(self.values[source.value].shape):
            return None
        walks = views.behind_copy(source.layout, matrices.layout)
        if walks is None or any(len(walk) != 1 for walk in walks[:-2]):
            return None
        *_, inner, columns = walks
        layout = views.of_axes(source.layout, [axis for walk in walks for axis in walk])
        if max(len(inner), len(columns)) > MOST_DIGITS or views.reach(layout) > _FARTHEST:
            return None
        return Operand(source.value, layout), len(inner)

    def _product_of_vectors(self, operands: list[Operand], dtype: DType) -> Operand:
        """The sum of the products of elements. As one chain it would be slow and far from exact for long vectors."""
        wide, shape = dtype.accumulator, operands[0].layout.shape
        if shape[0] == 0:
            return self.fit(self.constant(0, dtype), dtype, ())
        given = tuple([self.fit(self.cast(operand, dtype), wide, shape) for operand in operands])
        products = self.point("multiply", given, wide, wide, shape)
        return self.cast(self.viewed(self._reduced(SUM, products, (0,), wide), ()), dtype)

    def line(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        if op.op.reduction is None:
            return self._argsort(op, operands, spec)
        return self._scan(op, operands, spec) if len(operands) == 1 else self._segments(op, operands, spec)

    def _scan(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        wanted, result = self._dtype_signature(op, operands)
        operand = self._whole(self.cast(operands[0], wanted[0]))
        lines = _lines_of(spec.shape, op.attributes[0])
        return self._line(_reduction_of(op.op).name, (operand,), lines, result)

    def _argsort(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        axis, is_descending = op.attributes
        operand, lines = self._whole(operands[0]), _lines_of(spec.shape, axis)
        suffix = "_descending" if is_descending else ""
        if not self._for_gpu:
            scratch = self.assembly(dtypes.int64, (2 * lines.length,))
            return self._line(f"argsort{suffix}", (operand,), lines, spec.dtype, scratch.value)
        run = min(lines.length, SORTED_RUN)
        order = self._line(f"argsort{suffix}", (operand,), lines._replace(run=run), spec.dtype)
        while run < lines.length:
            order = self._line(f"merge{suffix}", (operand, order), lines._replace(run=run), spec.dtype)
            run *= 2
        return order

    def _segments(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        axis, segments = op.attributes
        reduction = _reduction_of(op.op)
        wanted, result = self._dtype_signature(op, operands)
        if 0 in (*spec.shape, *operands[1].layout.shape):
            return self.fit(self.constant(reduction.of_nothing, result), result, spec.shape)
        data, places = [self._whole(self.cast(operand, wanted[i])) for i, operand in enumerate(operands)]
        lines = _lines_of(data.layout.shape, axis)._replace(segments=segments)
        return self._line(f"segment_{reduction.name}", (data, places), lines, result, shape=spec.shape)

    def _line(
        self,
        body: str,
        operands: tuple[Operand, ...],
        lines: Lines,
        dtype: DType,
        scratch: int | None = None,
        shape: Shape | None = None,
    ) -> Operand:
        """Appends a LINE. Its operands are whole buffers, of its shape unless a shape is given."""
        given = self.values[operands[0].value].dtype
        shape = operands[0].layout.shape if shape is None else shape
        return self.add(Value(LINE, dtype, shape, self.origin, operands, body, given, lines=lines, scratch=scratch))

    def matrices(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        wanted, result = self._dtype_signature(op, operands)
        sizes = _matrices_of(op.op, tuple([operand.layout.shape for operand in operands]), op.attributes)
        whole = tuple([self._whole_or_any(self.cast(operand, wanted[i])) for i, operand in enumerate(operands)])
        return self.add(Value(MATRICES, result, spec.shape, self.origin, whole, op.op.name, result, matrices=sizes))

    def _whole_or_any(self, operand: Operand) -> Operand:
        """The operand as a whole buffer. In place of one without elements, which no kernel reads, any buffer."""
        if 0 in operand.layout.shape:
            return self.copy(self.constant(0, self.values[operand.value].dtype))
        return self._whole(operand)

    def _whole(self, operand: Operand) -> Operand:
        """The operand as a whole buffer in C order. Copies it if it is none."""
        is_whole = operand.layout.is_dense and prod(self.values[operand.value].shape) == prod(operand.layout.shape)
        return operand if is_whole and not self.is_slot(operand) else self.copy(operand)

    def reshape(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        return self.viewed(operands[0], spec.shape)

    def view(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        layout = part_of(op.op.name, views.VIEWS, "layout: add it to VIEWS in graph/views.py")
        return Operand(operands[0].value, layout(operands[0].layout, *op.attributes))

    def slice(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        part = Region(*op.attributes)
        return Operand(operands[0].value, views.region(operands[0].layout, part, self.first_start))

    def strided(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        line = self.viewed(operands[0], (prod(operands[0].layout.shape),))
        return Operand(line.value, views.strided(line.layout, Strided(*op.attributes), self.first_start))

    def concat(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        parts, axis = [self.cast(operand, spec.dtype) for operand in operands], op.attributes[0]
        if self._for_gpu and may_be_selected(self, parts) and self._readers.read_at_points(self.origin):
            return selected(self, parts, axis, spec)
        result = self._joined(parts, axis, spec.dtype)
        self._owner[result.value] = self._program.first_result + self.origin
        return result

    def _joined(self, operands: list[Operand], axis: int, dtype: DType) -> Operand:
        """Operands of one dtype, one behind another along an axis, in a new buffer."""
        shape = operands[0].layout.shape
        length = sum([operand.layout.shape[axis] for operand in operands])
        result = self.assembly(dtype, (*shape[:axis], length, *shape[axis + 1 :]))
        position = 0
        for operand in operands:
            region = views.region_along_axis(result.layout, axis, position, operand.layout.shape)
            self.store(operand, result.value, region)
            position += operand.layout.shape[axis]
        return result

    def assign_slice(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        part = Region(*op.attributes)
        return self._assigned(op, operands, spec, views.region(views.dense(spec.shape), part, self.first_start))

    def assign_strided(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        line = views.dense((prod(spec.shape),))
        region = views.strided(line, Strided(*op.attributes), self.first_start)
        return self._assigned(op, operands, spec, region)

    def _assigned(self, op: ProgramOp, operands: list[Operand], spec: Spec, region: Layout) -> Operand:
        """The first operand with a region of it replaced by the second."""
        target, value = operands
        if region.is_dense and prod(region.shape) == prod(spec.shape):
            return self.viewed(self.fit(value, spec.dtype, region.shape), spec.shape)
        result = target if self._may_write_in_place(target, op.operands[0]) else self.copy(target)
        source = self.fit(value, spec.dtype, region.shape)
        stores = self.stores_of[result.value]
        readers = [number for number in self._to_be_ahead(target, region) if number not in stores]
        self.store(source, result.value, region, after=(*stores, *readers))
        self._owner[result.value] = self._program.first_result + self.origin
        return result

    def take(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        (data, indices), axis = operands, op.attributes[0]
        shape, strides, offset, moves = data.layout
        still = (0,) * len(indices.layout.shape)
        walked = Operand(data.value, Layout(spec.shape, strides[:axis] + still + strides[axis + 1 :], offset, moves))
        if self.is_slot(data):
            return walked
        position = Operand(indices.value, views.before_axes(indices.layout, spec.shape, len(shape) - axis - 1))
        return self.gather(walked, self.cast(position, dtypes.int64), Gathered(shape[axis], strides[axis]))

    def take_along_axis(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        (data, indices), axis = operands, op.attributes[0]
        shape, strides, offset, moves = data.layout
        walked = Operand(data.value, Layout(spec.shape, (*strides[:axis], 0, *strides[axis + 1 :]), offset, moves))
        if self.is_slot(data):
            return walked
        position = self.cast(indices, dtypes.int64)
        return self.gather(walked, position, Gathered(shape[axis], strides[axis]))

    def one_hot(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        (indices,) = operands
        wanted = Operand(indices.value, views.before_axes(indices.layout, spec.shape, 1))
        return self._matches(self.cast(wanted, dtypes.int64), self.index(spec.shape, len(spec.shape) - 1), spec)

    def full(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        return self.fit(operands[0], spec.dtype, spec.shape)

    def arange(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        return self._progression(operands, spec, spec.dtype)

    def linspace(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        return self._progression(operands, spec, dtypes.float64)

    def eye(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        diagonal = self.fit(self.constant(op.attributes[2], dtypes.int64), dtypes.int64, spec.shape)
        row = self.index(spec.shape, 0)
        shifted = self.point("add", (row, diagonal), dtypes.int64, dtypes.int64, spec.shape)
        return self._matches(shifted, self.index(spec.shape, 1), spec)

    def random_bits(self, op: ProgramOp, operands: list[Operand], spec: Spec) -> Operand:
        """The bits at the counters start + i, where i is the position in row-major order."""
        shape, dtype = spec.shape, dtypes.uint64
        counter, stream, key = [self.fit(self.cast(each, dtype), dtype, shape) for each in operands]
        for axis, stride in enumerate(views.dense_strides(shape)):
            if shape[axis] > 1:
                moved = self.cast(self.index(shape, axis), dtype)
                if stride > 1:
                    steps = self.fit(self.constant(stride, dtype), dtype, shape)
                    moved = self.point("multiply", (moved, steps), dtype, dtype, shape)
                counter = self.point("add", (counter, moved), dtype, dtype, shape)
        return self.point("random_bits", (counter, stream, key), dtype, dtype, shape)

    def _matches(self, a: Operand, b: Operand, spec: Spec) -> Operand:
        hits = self.point("equal", (a, b), dtypes.int64, dtypes.bool_, spec.shape)
        return self.cast(hits, spec.dtype)

    def _progression(self, scalars: list[Operand], spec: Spec, given: DType) -> Operand:
        """start + position · step. The scalars are cast to `given`; the sum is computed in its accumulator dtype."""
        computed = given.accumulator
        start, step = [self.fit(self.cast(scalar, given), computed, spec.shape) for scalar in scalars]
        position = self.cast(self.index(spec.shape, 0), computed)
        ramp = self.point("multiply", (position, step), computed, computed, spec.shape)
        return self.cast(self.point("add", (start, ramp), computed, computed, spec.shape), spec.dtype)

    def _dtype_signature(self, op: ProgramOp, operands: list[Operand]) -> DtypeSignature:
        values = self.values
        return _dtype_signature(op.op, tuple([values[number].dtype for number, _ in operands]), op.attributes)

    def _to_be_ahead(self, array: Operand, region: Layout) -> list[int]:
        """Returns the values to be computed before a region of an array changes, because they read the array.

        If a loop carries the array, it can then be changed in place. That takes one more kernel, and saves that the
        array is copied in each iteration. It pays unless most elements change.
        """
        is_small = prod(region.shape) * _PART_IN_PLACE <= prod(array.layout.shape)
        if array.value not in self._program.origins or not is_small:
            return []
        return [
            number
            for number, value in enumerate(self.values)
            if any(operand.value == array.value for operand in value.operands)
        ]

    def _may_write_in_place(self, target: Operand, number: int) -> bool:
        """Whether an assembly may be written in place: operand `number` is all of it, and only this op reads it."""
        return self._owner.get(target.value) == number and self._uses[number] == 1

    @cached_property
    def _uses(self) -> list[int]:
        return _count_uses(self._program, self._needed)


def _reduction_of(op: Op) -> Reduction:
    assert op.reduction is not None, "the op combines elements"
    return op.reduction


@lru_cache(1024)
def _lines_of(shape: Shape, axis: int) -> Lines:
    return Lines(prod(shape[:axis]), shape[axis], prod(shape[axis + 1 :]), shape[axis])


@lru_cache(1024)
def _matrices_of(op: Op, shapes_: tuple[Shape, ...], attributes: Attributes) -> Matrices:
    *batch, rows, columns = shapes_[0]
    is_upper = int(any(each.name == "upper" and attributes[i] for i, each in enumerate(op.attributes)))
    return Matrices(prod(batch), rows, columns, others_of(op, shapes_, attributes), is_upper)


def _count_uses(program: Program, needed: list[bool]) -> list[int]:
    """For each operand number, how often needed ops read the operand, plus one if the operand is live."""
    uses = [0] * len(program.specs)
    for op, is_needed in zip(program.ops, needed, strict=True):
        if is_needed:
            for number in op.operands:
                uses[number] += 1
    for index in program.live:
        uses[program.first_result + index] += 1
    return uses


@lru_cache(1024)
def _dtype_signature(op: Op, operands: tuple[DType, ...], attributes: Attributes) -> DtypeSignature:
    return op.dtype_rule(operands, attributes)


@lru_cache(1024)
def _reduces_one_walk(layout: Layout, axes: Shape) -> bool:
    """Whether the reduced axes are one strided dimension, both in memory and in the row-major order of all axes."""
    shape = tuple([layout.shape[axis] for axis in axes])
    return all(
        views.is_one_walk(shape, tuple([strides[axis] for axis in axes]))
        for strides in (layout.strides, views.dense_strides(layout.shape))
    )


@lru_cache(1024)
def _as_matrices(a: Layout, b: Layout) -> tuple[Layout, Layout]:
    """The operands of a product as batches of matrices: a vector a becomes one row, a vector b one column."""
    rows = a if len(a.shape) > 1 else Layout((1, *a.shape), (0, *a.strides), a.offset, a.moves)
    columns = b if len(b.shape) > 1 else Layout((*b.shape, 1), (*b.strides, 0), b.offset, b.moves)
    batch = shapes.broadcast(rows.shape[:-2], columns.shape[:-2])
    return views.broadcast_to(rows, batch + rows.shape[-2:]), views.broadcast_to(columns, batch + columns.shape[-2:])


def _is_by_a_vector(rows: Layout, columns: Layout) -> bool:
    """Whether a product is that of one matrix of several rows, but not very many, by one column."""
    return len(rows.shape) == 2 and columns.shape[1] == 1 < rows.shape[0] <= _MOST_ROWS_BY_A_VECTOR


def _transposed(matrix: Layout) -> Layout:
    return views.transpose(matrix, (1, 0))


_Maker = Callable[[OpBuilder, ProgramOp, list[Operand], Spec], Operand]

_MAKER_OF_CATEGORY: dict[Category, _Maker] = {
    Category.POINTWISE: OpBuilder.pointwise,
    Category.COMPOSITE: OpBuilder.composite,
    Category.REDUCTION: OpBuilder.reduction,
    Category.PRODUCT: OpBuilder.product,
    Category.LINE: OpBuilder.line,
    Category.LIBRARY: OpBuilder.matrices,
    Category.VIEW: OpBuilder.view,
}

_MAKER_OF_OP: dict[str, _Maker] = {
    "reshape": OpBuilder.reshape,
    "slice": OpBuilder.slice,
    "strided": OpBuilder.strided,
    "concat": OpBuilder.concat,
    "assign_slice": OpBuilder.assign_slice,
    "assign_strided": OpBuilder.assign_strided,
    "take": OpBuilder.take,
    "take_along_axis": OpBuilder.take_along_axis,
    "one_hot": OpBuilder.one_hot,
    "full": OpBuilder.full,
    "arange": OpBuilder.arange,
    "linspace": OpBuilder.linspace,
    "eye": OpBuilder.eye,
    "random_bits": OpBuilder.random_bits,
}


@lru_cache(1024)
def _maker_of(op: Op) -> _Maker:
    usual = _MAKER_OF_CATEGORY.get(op.category)
    if usual is not None:
        return _MAKER_OF_OP.get(op.name, usual)
    return part_of(op.name, _MAKER_OF_OP, "maker: add it to _MAKER_OF_OP in graph/op_builder.py")
