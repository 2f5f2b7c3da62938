"""Generates the CUDA texts of persistent kernels, which run all iterations of a loop in one launch. Pure.

`blockIdx.z` is the number of the row. Rows may have different numbers of iterations. A value that is carried to the
next iteration stays in a register of the thread that has computed it. The left operand of a product is needed by all
threads: its elements are sent to the shared memory of the blocks that multiply by them (see `cluster_shape`).

In the texts, `t` is the number of the iteration in this launch. `e0` holds what input 0 has in memory at the point of
the thread, and `c0` what store 0 wrote in this iteration.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.resources import files
from math import prod
from typing import NamedTuple

from fusewire_kernels.codegen import templates
from fusewire_kernels.codegen.bodies import TYPES, loaded, weight
from fusewire_kernels.codegen.cluster_shape import DEPTH_STEP, THREADS, ClusterShape, cluster_shape, most_in_turn
from fusewire_kernels.codegen.kernel import (
    ArgumentKind,
    CarriedInput,
    LoopKernel,
    PersistentKernel,
    PersistentPoints,
    PersistentProduct,
)
from fusewire_kernels.codegen.loops_cuda import product_of, write_positions
from fusewire_kernels.codegen.product import finished
from fusewire_kernels.codegen.statements import AnalysedKernel, analyse, argument_lines
from fusewire_kernels.codegen.text import Lines
from fusewire_kernels.plan.plan import KernelSource
from fusewire_protos.ops import dtypes

_PARAMETERS = "const int64_t *sizes, const fw_operand *operands, const __grid_constant__ fw_loop loop"
_POINT_THREADS = 256
_UNROLLED_WEIGHT = 200  # of the iterations that are written one after another. Much longer code runs slower.
_MOST_UNROLLED = 16
_MOST_POINT_BLOCKS = 1 << 16
_MOST_WRITTEN_OUT = 512  # multiply-adds of a thread in an iteration that are written one after another
_BLOCKS_AT_ONCE = 4  # on a multiprocessor. With more registers for each, the assembler's order takes a third longer.


def persistent_source(kernel: PersistentKernel) -> KernelSource:
    """Returns the source of a persistent kernel, in CUDA."""
    text = _points_text(kernel) if isinstance(kernel, PersistentPoints) else _product_text(kernel)
    return KernelSource(kernel.key, text)


# ---- pointwise bodies ----


def _points_text(kernel: PersistentPoints) -> str:
    body, lines = analyse(kernel.body), Lines()
    with lines.block(f'extern "C" __global__ void __launch_bounds__({_POINT_THREADS}) {kernel.key}({_PARAMETERS})'):
        lines.add(
            "const int64_t count = loop.counts[blockIdx.z];", "const int64_t *slots = fw_slots_of(loop, count, 0);"
        )
        lines.add(*argument_lines(body))
        lines.add("/* Of the first iterations nothing is stored, and nothing is read again. */")
        lines.add("const int64_t still = loop.moving | loop.each ? 0 : count - loop.tail;")
        lines.add(f"const int64_t points = {product_of(range(body.dims))};")
        first = "blockIdx.x * (int64_t)blockDim.x + threadIdx.x"
        lines.add("#pragma unroll 1")
        with lines.block(f"for (int64_t point = {first}; point < points; point += gridDim.x * (int64_t)blockDim.x)"):
            write_positions(lines, range(body.dims), "point")
            _write_iterations(lines, body, kernel.carried)
    return _template("persistent.cu") + lines.text()


def _write_iterations(lines: Lines, body: AnalysedKernel, carried: Sequence[CarriedInput]) -> None:
    inputs = range(len(body.kernel.inputs))
    lines.add(*(f"{_stored_type(body, number)} e{number} = {_place(body, number)};" for number in inputs))
    lines.add("int64_t t = 0;")
    lines.add(f"#pragma unroll {_unrolled(body)}")
    with lines.block("for (; t < still; t++)"):
        _write_values(lines, body)
        lines.add(*_carrying(carried))
    lines.add("#pragma unroll 1")
    with lines.block("for (; t < count; t++)"):
        lines.add("slots = fw_slots_of(loop, count, t);")
        for number in sorted(set(inputs) - {each.input for each in carried}):
            with lines.block(f"if (loop.moving >> {number} & 1)"):
                lines.add(_pointer(body, number), f"e{number} = {_place(body, number)};")
        _write_values(lines, body)
        for output in range(len(body.stored)):
            with lines.block(f"if (t >= count - loop.tail || loop.each >> {output} & 1)"):
                lines.add(_output_pointer(body, output, output + len(inputs)))
                lines.add(f"{body.output_place(output)} = c{output};")
        lines.add(*_carrying(carried))


def _write_values(lines: Lines, body: AnalysedKernel) -> None:
    """Writes the statements that compute the values of an iteration, and what its stores write."""
    for value in body.all_needed:
        lines.add(body.declaration(value, f"e{value}"))
    for output in range(len(body.stored)):
        stored = TYPES[body.kernel.stores[output].argument.dtype].stored
        lines.add(body.storing(output, f"const {stored} c{output}"))


def _carrying(carried: Sequence[CarriedInput]) -> list[str]:
    return [f"e{number} = c{store};" for number, store in carried]


def _unrolled(body: AnalysedKernel) -> int:
    """Returns how many iterations are written one after another."""
    nodes = [body.node(value) for value in body.all_needed]
    total = sum(1 if node.op in ("cast", "index") else weight(node.op, node.dtype) for node in nodes if node)
    return min(max(_UNROLLED_WEIGHT // max(total, 1), 1), _MOST_UNROLLED)


def _stored_type(body: AnalysedKernel, number: int) -> str:
    return TYPES[body.kernel.inputs[number].dtype].stored


def _place(body: AnalysedKernel, number: int) -> str:
    return f"*a{number}" if _is_scalar(body.kernel, number) else body.input_place(number)


def _is_scalar(kernel: LoopKernel, number: int) -> bool:
    return kernel.inputs[number].kind is ArgumentKind.SCALAR


def _pointer(body: AnalysedKernel, number: int, operand: int | None = None, slots: str = "slots") -> str:
    """Returns the statement that lets `a<number>` point to the input that an iteration's slots name."""
    operand = number if operand is None else operand
    stored = _stored_type(body, number)
    if _is_scalar(body.kernel, number):
        return f"a{number} = (const {stored} *)({slots} + operands[{operand}].column);"
    return f"a{number} = (const {stored} *)({_address(operand, slots)});"


def _output_pointer(body: AnalysedKernel, output: int, operand: int) -> str:
    stored = TYPES[body.kernel.stores[output].argument.dtype].stored
    return f"o{output} = ({stored} *)({_address(operand, 'slots')});"


def _address(operand: int, slots: str) -> str:
    return f"{slots}[operands[{operand}].column] + operands[{operand}].byte_offset"


# ---- products ----


def _product_text(kernel: PersistentProduct) -> str:
    shape = cluster_shape(kernel.rows, kernel.inner)
    assert shape is not None, "a persistent product fits a cluster"
    writer = _ProductWriter(kernel, shape)
    writer.write()
    parts = (
        _template("persistent.cu"),
        "#if __CUDA_ARCH__ >= 900\n",
        _template("cluster.cu"),
        writer.text(),
        "#endif\n",
    )
    return "".join(parts)


class _ProductWriter:
    """Writes the kernel of a product. A thread has one column of its block, and a few rows of its cluster.

    The arguments of the epilogue but the product have the operands from number 2 on: its inputs, then its stores.
    """

    def __init__(self, kernel: PersistentProduct, shape: ClusterShape) -> None:
        self._kernel = kernel
        self._shape = shape
        self._body = analyse(kernel.epilogue)
        self._lines = Lines()
        self._inputs = range(1, len(kernel.epilogue.inputs))
        carried = {each.input for each in kernel.carried}
        self._read = [number for number in self._inputs if number not in carried]

    def text(self) -> str:
        return self._lines.text()

    def write(self) -> None:
        lines, shape = self._lines, self._shape
        head = f"__cluster_dims__({shape.blocks}, 1, 1) __launch_bounds__({THREADS}, {_BLOCKS_AT_ONCE})"
        with lines.block(f'extern "C" __global__ void {head} {self._kernel.key}({_PARAMETERS})'):
            self._write_places()
            self._write_bringing_in()
            self._write_epilogue_inputs()
            lines.add("__syncwarp();", "fw_meet_in_cluster();")
            self._write_exit()
            with lines.block("for (int t = 0; t < count; t++)"):
                self._write_iteration()
            lines.add("/* No block ends while others may send to it. */", "__syncwarp();", "fw_meet_in_cluster();")

    def _write_exit(self) -> None:
        """Writes the end of the warps without elements.

        Nobody waits for an element of such a warp, so it could fall behind by two turns, and would wait for ever.
        """
        shape, lines = self._shape, self._lines
        lines.add("const int warp_place = place / 32 * 32;")
        lines.add(f"if (threadIdx.x >= {shape.groups * shape.threads_a_group} || own_row >= rows) return;")
        lines.add(f"if (warp_place >= {shape.width} || first_column + warp_place >= {self._kernel.inner}) return;")

    def _write_places(self) -> None:
        kernel, shape = self._kernel, self._shape
        self._lines.add(
            "extern __shared__ float4 fw_shared_memory[];",
            f"float *columns = (float *)fw_shared_memory, *state = columns + {shape.width * shape.pitch};",
            "const uint32_t state_at = fw_shared_address(state);",
            f"const uint32_t barriers_at = state_at + {2 * shape.state_bytes};",
            "const uint32_t rank = fw_rank_in_cluster();",
            f"const int first_column = rank * {shape.width};",
            f"const int64_t first_row = blockIdx.x / {shape.blocks} * {shape.height};",
            f"const int rows = (int)fw_lesser({kernel.rows} - first_row, {shape.height});",
            f"const int place = threadIdx.x % {shape.threads_a_group};",
            f"const int own_row = threadIdx.x / {shape.threads_a_group} * {shape.rows_a_thread};",
            f"const bool has_column = place < {shape.width} && first_column + place < {kernel.inner};",
            "const int column = has_column ? place : 0;",
            "const int64_t i1 = has_column ? first_column + column : 0;",
            "const int count = (int)loop.counts[blockIdx.z];",
            "const int64_t *slots = fw_slots_of(loop, count, 0);",
            f"const float *left = (const float *)({_address(0, 'slots')});",
            f"const float *right = (const float *)({_address(1, 'slots')});",
        )

    def _write_bringing_in(self) -> None:
        """Writes the loops that fill the shared memory. Beyond the last k, a is -0 and b is 0, as in every product."""
        lines, kernel, shape = self._lines, self._kernel, self._shape
        along, across = kernel.right_strides
        lines.add("#pragma unroll 16")
        with lines.block(f"for (int i = threadIdx.x; i < {shape.width * shape.depth}; i += {THREADS})"):
            lines.add(f"const int c = i % {shape.width}, k = i / {shape.width};")
            lines.add(f"const bool is_inside = k < {kernel.inner} && first_column + c < {kernel.inner};")
            element = f"right[k * (int64_t){along} + (first_column + c) * (int64_t){across}]"
            lines.add(f"columns[c * {shape.pitch} + k] = is_inside ? {element} : 0.0f;")
        with lines.block(f"for (int i = threadIdx.x; i < {shape.height * shape.depth}; i += {THREADS})"):
            lines.add(f"const int r = i / {shape.depth}, k = i % {shape.depth};")
            lines.add(f"const bool is_inside = r < rows && k < {kernel.inner};")
            lines.add(f"const float element = is_inside ? left[(first_row + r) * {kernel.inner} + k] : -0.0f;")
            lines.add(f"state[r * {shape.pitch} + k] = element;")
            lines.add(f"state[({shape.height} + r) * {shape.pitch} + k] = element;")
        with lines.block("if (threadIdx.x == 0)"):
            for barrier in ("barriers_at", "barriers_at + 8"):
                lines.add(f"fw_make_barrier({barrier});")
            lines.add("fw_show_barriers();")
            for barrier in ("barriers_at", "barriers_at + 8"):
                lines.add(f"fw_expect_bytes({barrier}, rows * {kernel.inner * 4});")
        lines.add(f"uint32_t state_in_block[{shape.blocks}];")
        lines.add("#pragma unroll")
        next_rank = f"(rank + b) % {shape.blocks}"
        lines.add(f"for (int b = 0; b < {shape.blocks}; b++)")
        lines.add(f"    state_in_block[b] = fw_address_in_block(state_at, {next_rank});")

    def _write_epilogue_inputs(self) -> None:
        """Writes the first values of the epilogue's inputs, and the addresses of the second ones."""
        lines, body = self._lines, self._body
        lines.add(*self._strides())
        for number in self._inputs:
            stored = _stored_type(body, number)
            lines.add(f"const {stored} *a{number};", _pointer(body, number, number + 1))
            lines.add(f"{stored} e{number}[{self._shape.rows_a_thread}] = {{}};")
            self._write_reading(number, f"e{number}")
        lines.add("const bool is_moving = fw_in_register(loop.moving != 0), is_kept = fw_in_register(loop.each != 0);")
        with lines.block("if (is_moving)"):
            self._write_pointers("1 < count ? 1 : 0")

    def _write_pointers(self, iteration: str) -> None:
        """Writes the statements that let the inputs' pointers point to those of an iteration."""
        self._lines.add(f"const int64_t *next_slots = fw_slots_of(loop, count, {iteration});")
        self._lines.add(*(_pointer(self._body, number, number + 1, "next_slots") for number in self._read))

    def _strides(self) -> list[str]:
        """Returns the declarations of those strides that the places of arguments name."""
        inputs = len(self._inputs)
        named = []
        for index, strides in enumerate(self._kernel.strides):
            is_input = index < inputs
            name = f"a{index + 1}" if is_input else f"o{index - inputs}"
            named += [f"const int64_t {name}s{dim} = {stride};" for dim, stride in enumerate(strides)]
        return named

    def _write_reading(self, number: int, target: str) -> None:
        with self._rows():
            self._lines.add(f"{target}[r] = {_place(self._body, number)};")

    @contextmanager
    def _rows(self) -> Iterator[None]:
        with self._all_rows():
            self._lines.add("if (own_row + r >= rows) break;")
            yield

    @contextmanager
    def _all_rows(self) -> Iterator[None]:
        self._lines.add("#pragma unroll")
        with self._lines.block(f"for (int r = 0; r < {self._shape.rows_a_thread}; r++)"):
            self._lines.add("const int64_t i0 = first_row + own_row + r;")
            yield

    def _write_iteration(self) -> None:
        lines, shape = self._lines, self._shape
        lines.add("const int turn = t & 1;")
        self._write_prefetch()
        with lines.block("if (t > 0)"):
            lines.add("fw_wait_for_bytes(barriers_at + turn * 8, (t - 1) / 2 & 1);")
            barrier = "barriers_at + turn * 8"
            lines.add(f"if (threadIdx.x == 0) fw_expect_bytes({barrier}, rows * {self._kernel.inner * 4});")
        lines.add(f"float sums[{shape.rows_a_thread}];")
        fours = _fours(shape.rows_a_thread)
        pairs = _unrolled_pairs(shape, fours)
        numbers = f"{shape.depth}, {shape.rows_a_thread}, {shape.pitch}, {fours}, {pairs}"
        left = f"state + (turn * {shape.height} + own_row) * {shape.pitch}"
        lines.add(f"fw_chains<{numbers}>({left}, columns + column * {shape.pitch}, sums);")
        self._write_values()
        with lines.block("if (has_column && t + 1 < count)"), self._rows():
            self._write_sending()
        with lines.block("if (has_column && (is_kept || t >= count - (int)loop.tail))"):
            self._write_storing()
        if self._kernel.carried:
            with self._all_rows():
                lines.add(*(f"e{number}[r] = c{store}[r];" for number, store in self._kernel.carried))
        with lines.block("if (is_moving)"), self._all_rows():
            lines.add(*(f"e{number}[r] = n{number}[r];" for number in self._read))

    def _write_values(self) -> None:
        """Writes the values of all rows, also of those beyond the last, so that the rows are computed side by side."""
        lines, body = self._lines, self._body
        stored = [TYPES[store.argument.dtype].stored for store in body.kernel.stores]
        lines.add(*(f"{each} c{output}[{self._shape.rows_a_thread}];" for output, each in enumerate(stored)))
        with self._all_rows():
            lines.add(f"const float v0 = {loaded(finished('sums[r]', dtypes.float32), dtypes.float32)};")
            lines.add(*(body.declaration(value, f"e{value}[r]") for value in body.all_needed if value != 0))
            lines.add(*(body.storing(output, f"c{output}[r]") for output in range(len(stored))))

    def _write_prefetch(self) -> None:
        """Writes the reads of the next iteration's inputs, and of the slots of the one after it."""
        lines, shape = self._lines, self._shape
        lines.add(*(f"{_stored_type(self._body, number)} n{number}[{shape.rows_a_thread}];" for number in self._read))
        with lines.block("if (is_moving)"):
            for number in self._read:
                self._write_reading(number, f"n{number}")
            self._write_pointers("t + 2 < count ? t + 2 : count - 1")

    def _write_sending(self) -> None:
        shape = self._shape
        place = f"((turn ^ 1) * {shape.height} + own_row + r) * {shape.pitch} + (int)i1"
        self._lines.add("#pragma unroll")
        with self._lines.block(f"for (int b = 0; b < {shape.blocks}; b++)"):
            barrier = f"state_in_block[b] + {2 * shape.state_bytes} + (turn ^ 1) * 8"
            self._lines.add(f"fw_send(state_in_block[b] + ({place}) * 4, c{self._kernel.state}[r], {barrier});")

    def _write_storing(self) -> None:
        lines, body, first = self._lines, self._body, len(self._inputs) + 2
        lines.add("const int64_t *slots = fw_slots_of(loop, count, t);")
        for output in range(len(body.stored)):
            stored = TYPES[body.kernel.stores[output].argument.dtype].stored
            with lines.block(f"if (loop.each >> {output} & 1 || t >= count - (int)loop.tail)"):
                lines.add(f"{stored} *o{output};", _output_pointer(body, output, first + output))
                with self._rows():
                    lines.add(f"{body.output_place(output)} = c{output}[r];")


def _fours(rows: int) -> int:
    """Returns how many packs of four elements a thread of some rows reads ahead, of each row and of its column."""
    return 4 if rows == 1 else 2


def _unrolled_pairs(shape: ClusterShape, fours: int) -> int:
    """Returns how many pairs of batches of a chain are written one after another: all of them, if they are short."""
    all_pairs = shape.depth // (8 * fours)
    return all_pairs if shape.depth * shape.rows_a_thread <= _MOST_WRITTEN_OUT else max(DEPTH_STEP // (8 * fours), 1)


def _template(name: str) -> str:
    return files(templates).joinpath(name).read_text(encoding="utf-8")


class PersistentGrid(NamedTuple):
    """The blocks of a row, the threads and the shared memory of a block, and the clusters (see `PersistentLaunch`)."""

    blocks: int
    threads: int
    shared_bytes: int
    clusters: int
    most_in_turn: int


def persistent_grid(kernel: PersistentKernel, sizes: Sequence[int]) -> PersistentGrid:
    """Returns the grid of a persistent kernel for the sizes of its body."""
    if isinstance(kernel, PersistentPoints):
        blocks = -(-prod(sizes[: kernel.body.rank]) // _POINT_THREADS)
        return PersistentGrid(max(1, min(blocks, _MOST_POINT_BLOCKS)), _POINT_THREADS, 0, clusters=0, most_in_turn=0)
    shape = cluster_shape(kernel.rows, kernel.inner)
    assert shape is not None, "a persistent product fits a cluster"
    in_turn = most_in_turn(shape, kernel.rows, kernel.inner)
    return PersistentGrid(shape.clusters * shape.blocks, THREADS, shape.shared_bytes, shape.clusters, in_turn)
