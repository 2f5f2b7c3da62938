"""Generates the CUDA text of a persistent kernel of a body of products with epilogues. Pure.

A thread has one column of its block, the same in all products, and a few rows of its cluster. All threads need the left
operand of a product: its elements are sent to the shared memory of the blocks that multiply by them (see
`cluster_shape`). All else that is carried, or that one stage takes from another, stays in a register of the thread that
has computed it.

In the text, `t` is the number of the iteration in this launch, and `turn` is 0 or 1 in turns. `p3` points to operand 3
of the kernel, `e3` holds what it has at the points of the thread, and `n3` what it has in the next iteration. `s1` has
the sums of the products of step 1, and `c2_0` what store 0 of stage 2 wrote in this iteration. There are two copies of
each left operand: an iteration takes what the one before has sent from copy `turn`, and sends to the other.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from fusewire_kernels.codegen.bodies import TYPES, loaded
from fusewire_kernels.codegen.cluster_shape import DEPTH_STEP, THREADS, ClusterShape, cluster_shape
from fusewire_kernels.codegen.kernel import PersistentProducts, Source, Stage, Step
from fusewire_kernels.codegen.persistent_text import (
    PARAMETERS,
    address,
    input_address,
    output_address,
    place,
    stored_type,
    template,
)
from fusewire_kernels.codegen.product import finished
from fusewire_kernels.codegen.statements import AnalysedKernel, analyse
from fusewire_kernels.codegen.text import Lines
from fusewire_protos.ops import dtypes

_MOST_WRITTEN_OUT = 512  # multiply-adds of a thread in an iteration that are written one after another
_BLOCKS_AT_ONCE = 4  # on a multiprocessor. With more registers for each, the assembler's order takes a third longer.
_MOST_READ_AHEAD = 80  # registers of a thread for elements that it has read and not yet multiplied
_THIS, _OTHER = "turn", "(turn ^ 1)"


def products_text(kernel: PersistentProducts) -> str:
    """Returns the text of a persistent kernel of products."""
    writer = _Writer(kernel, shape_of(kernel))
    writer.write()
    parts = (template("persistent.cu"), "#if __CUDA_ARCH__ >= 900\n", template("cluster.cu"), writer.text(), "#endif\n")
    return "".join(parts)


def shape_of(kernel: PersistentProducts) -> ClusterShape:
    """Returns the shape of the kernel's clusters."""
    shape = cluster_shape(kernel.rows, kernel.inner, len(kernel.stages), len(kernel.exchanged))
    assert shape is not None, "persistent products fit a cluster"
    return shape


class _Writer:
    def __init__(self, kernel: PersistentProducts, shape: ClusterShape) -> None:
        self._kernel = kernel
        self._shape = shape
        self._bodies = [analyse(stage.epilogue) for stage in kernel.stages]
        self._lines = Lines()
        # The products of a step lie side by side in shared memory.
        order = [number for step in kernel.steps for number in step.products]
        self._column_place = {number: index for index, number in enumerate(order)}
        self._first_use: dict[int, tuple[int, int]] = {}  # by operand, the stage and the number of an input that has it
        self._source_of: dict[int, Source] = {}  # of the operands that are carried
        for number, stage in enumerate(kernel.stages):
            for index, (operand, source) in enumerate(stage.inputs, 1):
                if operand is not None:
                    self._first_use.setdefault(operand, (number, index))
                    if source is not None:
                        self._source_of[operand] = source
        self._read = [operand for operand in self._first_use if operand not in self._source_of]

    def text(self) -> str:
        return self._lines.text()

    def write(self) -> None:
        lines, shape = self._lines, self._shape
        head = f"__cluster_dims__({shape.blocks}, 1, 1) __launch_bounds__({THREADS}, {_BLOCKS_AT_ONCE})"
        with lines.block(f'extern "C" __global__ void {head} {self._kernel.key}({PARAMETERS})'):
            self._write_places()
            for number, stage in enumerate(self._kernel.stages):
                self._write_bringing_in_columns(number, stage)
            self._write_bringing_in_rows()
            self._write_barriers()
            self._write_epilogue_inputs()
            lines.add("__syncwarp();", "fw_meet_in_cluster();")
            self._write_exit()
            with lines.block("for (int t = 0; t < count; t++)"):
                self._write_iteration()
            lines.add("/* No block ends while others may send to it. */", "__syncwarp();", "fw_meet_in_cluster();")

    # ---- before the first iteration ----

    def _write_places(self) -> None:
        kernel, shape = self._kernel, self._shape
        self._lines.add(
            "extern __shared__ float4 fw_shared_memory[];",
            f"float *columns = (float *)fw_shared_memory, *lefts = columns + {shape.columns_bytes // 4};",
            "const uint32_t lefts_at = fw_shared_address(lefts);",
            f"const uint32_t barriers_at = lefts_at + {shape.barriers_at_bytes};",
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
        )

    def _write_bringing_in_columns(self, number: int, stage: Stage) -> None:
        """Writes the loop that fills the shared memory with columns. Beyond the last k they are 0, in every product."""
        lines, inner, shape = self._lines, self._kernel.inner, self._shape
        along, across = stage.right_strides
        lines.add("#pragma unroll 16")
        with lines.block(f"for (int i = threadIdx.x; i < {shape.width * shape.depth}; i += {THREADS})"):
            lines.add(f"const float *right = (const float *)({address(stage.right, 'slots')});")
            lines.add(f"const int c = i % {shape.width}, k = i / {shape.width};")
            lines.add(f"const bool is_inside = k < {inner} && first_column + c < {inner};")
            element = f"right[k * (int64_t){along} + (first_column + c) * (int64_t){across}]"
            first = self._column_place[number] * shape.width * shape.pitch
            lines.add(f"columns[{first} + c * {shape.pitch} + k] = is_inside ? {element} : 0.0f;")

    def _write_bringing_in_rows(self) -> None:
        """Writes the loop that fills the shared memory with rows. Beyond the last k they are -0, in every product."""
        lines, inner, shape = self._lines, self._kernel.inner, self._shape
        with lines.block(f"for (int i = threadIdx.x; i < {shape.height * shape.depth}; i += {THREADS})"):
            lines.add(f"const int r = i / {shape.depth}, k = i % {shape.depth};")
            for number, each in enumerate(self._kernel.exchanged):
                element = "-0.0f"
                if each.initial is not None:
                    lines.add(f"const float *left{number} = (const float *)({address(each.initial, 'slots')});")
                    there = f"left{number}[(first_row + r) * {inner} + k]"
                    element = f"r < rows && k < {inner} ? {there} : -0.0f"
                lines.add(f"const float element{number} = {element};")
                for copy in ("0", "1"):
                    lines.add(f"lefts[{self._rows_of(number, copy)} + r * {shape.pitch} + k] = element{number};")

    def _write_barriers(self) -> None:
        lines, shape = self._lines, self._shape
        with lines.block("if (threadIdx.x == 0)"):
            for barrier in range(2 * shape.exchanged):
                lines.add(f"fw_make_barrier(barriers_at + {8 * barrier});")
            lines.add("fw_show_barriers();")
            for barrier in range(2 * shape.exchanged):
                lines.add(f"fw_expect_bytes(barriers_at + {8 * barrier}, rows * {self._kernel.inner * 4});")
        lines.add(f"uint32_t lefts_in_block[{shape.blocks}];")
        lines.add("#pragma unroll")
        lines.add(f"for (int b = 0; b < {shape.blocks}; b++)")
        lines.add(f"    lefts_in_block[b] = fw_address_in_block(lefts_at, (rank + b) % {shape.blocks});")

    def _write_epilogue_inputs(self) -> None:
        """Writes the first values of the operands that epilogues read, and the addresses of the second ones."""
        lines = self._lines
        for operand, (stage, number) in self._first_use.items():
            stored = stored_type(self._bodies[stage], number)
            lines.add(f"const {stored} *p{operand} = {input_address(self._bodies[stage], number, operand)};")
            lines.add(f"{stored} e{operand}[{self._shape.rows_a_thread}] = {{}};")
            self._write_reading(operand, f"e{operand}")
        lines.add("const bool is_moving = fw_in_register(loop.moving != 0), is_kept = fw_in_register(loop.each != 0);")
        with lines.block("if (is_moving)"):
            self._write_pointers("1 < count ? 1 : 0")

    def _write_exit(self) -> None:
        """Writes the end of the warps without elements.

        Nobody waits for an element of such a warp, so it could fall behind by two turns, and would wait for ever.
        """
        shape, lines = self._shape, self._lines
        lines.add("const int warp_place = place / 32 * 32;")
        lines.add(f"if (threadIdx.x >= {shape.groups * shape.threads_a_group} || own_row >= rows) return;")
        lines.add(f"if (warp_place >= {shape.width} || first_column + warp_place >= {self._kernel.inner}) return;")

    # ---- in each iteration ----

    def _write_iteration(self) -> None:
        lines = self._lines
        lines.add("const int turn = t & 1;")
        self._write_prefetch()
        for number, step in enumerate(self._kernel.steps):
            self._write_waits(step)
            if step.products:
                self._write_products(number, step)
            for stage in step.first:
                self._write_values(stage)
            self._write_sends(step)
            for stage in step.others:
                self._write_values(stage)
        with lines.block("if (has_column && (is_kept || t >= count - (int)loop.tail))"):
            lines.add("const int64_t *slots = fw_slots_of(loop, count, t);")
            for stage, body in enumerate(self._bodies):
                self._write_storing(stage, body)
        if self._source_of:
            with self._all_rows():
                lines.add(*(f"e{operand}[r] = {_written(source)};" for operand, source in self._source_of.items()))
        with lines.block("if (is_moving)"), self._all_rows():
            lines.add(*(f"e{operand}[r] = n{operand}[r];" for operand in self._read))

    def _write_prefetch(self) -> None:
        """Writes the reads of the next iteration's operands, and of the slots of the one after it."""
        lines = self._lines
        for operand in self._read:
            stage, number = self._first_use[operand]
            lines.add(f"{stored_type(self._bodies[stage], number)} n{operand}[{self._shape.rows_a_thread}];")
        with lines.block("if (is_moving)"):
            for operand in self._read:
                self._write_reading(operand, f"n{operand}")
            self._write_pointers("t + 2 < count ? t + 2 : count - 1")

    def _write_pointers(self, iteration: str) -> None:
        """Writes the statements that let the pointers point to the operands of an iteration."""
        self._lines.add(f"const int64_t *next_slots = fw_slots_of(loop, count, {iteration});")
        for operand in self._read:
            stage, number = self._first_use[operand]
            self._lines.add(f"p{operand} = {input_address(self._bodies[stage], number, operand, 'next_slots')};")

    def _write_reading(self, operand: int, target: str) -> None:
        stage, number = self._first_use[operand]
        lines, body = self._lines, self._bodies[stage]
        with self._rows():
            lines.add(f"const {stored_type(body, number)} *a{number} = p{operand};")
            lines.add(*_stride_lines(f"a{number}", self._kernel.stages[stage].strides[number - 1]))
            lines.add(f"{target}[r] = {place(body, number)};")

    def _write_waits(self, step: Step) -> None:
        """Writes the waits for those left operands that a step is the first to need."""
        for number in sorted({self._kernel.stages[stage].left for stage in step.products}):
            new = self._is_needed_at_once(number)
            stages = [self._kernel.stages[stage] for stage in step.products]
            if not new:
                with self._lines.block("if (t > 0)"):
                    self._write_wait(number, _THIS, "(t - 1) / 2 & 1")
            elif any(stage.left == number and stage.is_new for stage in stages):
                self._write_wait(number, _OTHER, "t / 2 & 1")

    def _write_wait(self, number: int, turn: str, parity: str) -> None:
        barrier = f"barriers_at + {self._barrier_of(number, turn)}"
        self._lines.add(f"fw_wait_for_bytes({barrier}, {parity});")
        self._lines.add(f"if (threadIdx.x == 0) fw_expect_bytes({barrier}, rows * {self._kernel.inner * 4});")

    def _is_needed_at_once(self, number: int) -> bool:
        """Returns whether a stage multiplies an exchanged value in the iteration that sends it."""
        return any(stage.left == number and stage.is_new for stage in self._kernel.stages)

    def _write_products(self, number: int, step: Step) -> None:
        lines, shape = self._lines, self._shape
        stages = [self._kernel.stages[stage] for stage in step.products]
        lefts = sorted({(stage.left, stage.is_new) for stage in stages})
        rows, products = shape.rows_a_thread, len(stages)
        fours = _fours((len(lefts) * rows + products) * 8)
        pairs = _unrolled_pairs(shape, fours, rows * shape.products)
        left_of = sum(lefts.index((stage.left, stage.is_new)) << 4 * index for index, stage in enumerate(stages))
        next_product = shape.width * shape.pitch
        numbers = (shape.depth, rows, len(lefts), products, f"{left_of}u", shape.pitch, next_product, fours, pairs)
        places = [f"lefts + {self._rows_of(left, _OTHER if is_new else _THIS)}" for left, is_new in lefts]
        lines.add(f"float s{number}[{products}][{rows}];")
        with lines.block(""):
            of_thread = ", ".join([f"{each} + own_row * {shape.pitch}" for each in places])
            lines.add(f"const float *const of_rows[{len(lefts)}] = {{{of_thread}}};")
            first = self._column_place[step.products[0]] * next_product
            right = f"columns + {first} + column * {shape.pitch}"
            lines.add(f"fw_chains<{', '.join(map(str, numbers))}>(of_rows, {right}, s{number});")

    def _write_values(self, number: int) -> None:
        """Writes the values of all rows, also of those beyond the last, so that the rows are computed side by side."""
        lines, body, stage = self._lines, self._bodies[number], self._kernel.stages[number]
        stored = [TYPES[store.argument.dtype].stored for store in body.kernel.stores]
        lines.add(*(f"{each} c{number}_{store}[{self._shape.rows_a_thread}];" for store, each in enumerate(stored)))
        at = next(index for index, step in enumerate(self._kernel.steps) if number in step.products)
        total = f"s{at}[{self._kernel.steps[at].products.index(number)}][r]"
        with self._all_rows():
            lines.add(f"const float v0 = {loaded(finished(total, dtypes.float32), dtypes.float32)};")
            for value in body.all_needed:
                if value != 0:
                    lines.add(body.declaration(value, self._at_hand(stage, value)))
            lines.add(*(body.storing(store, f"c{number}_{store}[r]") for store in range(len(stored))))

    def _at_hand(self, stage: Stage, value: int) -> str:
        """Returns the register that has an input of an epilogue; of another value it is never used."""
        if value > len(stage.inputs):
            return ""
        operand, source = stage.inputs[value - 1]
        if operand is not None:
            return f"e{operand}[r]"
        assert source is not None, "an input is in memory or computed"
        return _written(source)

    def _write_sends(self, step: Step) -> None:
        shape, lines = self._shape, self._lines
        for number, (source, _) in enumerate(self._kernel.exchanged):
            if source.stage not in step.first:
                continue
            is_needed = "" if self._is_needed_at_once(number) else " && t + 1 < count"
            with lines.block(f"if (has_column{is_needed})"), self._rows():
                lines.add("#pragma unroll")
                with lines.block(f"for (int b = 0; b < {shape.blocks}; b++)"):
                    there = f"{self._rows_of(number, _OTHER)} + (own_row + r) * {shape.pitch} + (int)i1"
                    barrier = f"{shape.barriers_at_bytes} + {self._barrier_of(number, _OTHER)}"
                    to, at = f"lefts_in_block[b] + ({there}) * 4", f"lefts_in_block[b] + {barrier}"
                    lines.add(f"fw_send({to}, {_written(source)}, {at});")

    def _write_storing(self, number: int, body: AnalysedKernel) -> None:
        lines, stage = self._lines, self._kernel.stages[number]
        for store, output in enumerate(stage.outputs):
            if output is None:
                continue
            stored = TYPES[body.kernel.stores[store].argument.dtype].stored
            with lines.block(f"if (loop.each >> {output} & 1 || t >= count - (int)loop.tail)"):
                operand = self._kernel.reads + output
                lines.add(f"{stored} *o{store} = {output_address(body, store, operand)};")
                lines.add(*_stride_lines(f"o{store}", stage.strides[len(stage.inputs) + store]))
                with self._rows():
                    lines.add(f"{body.output_place(store)} = c{number}_{store}[r];")

    # ---- parts ----

    def _rows_of(self, number: int, copy: str) -> str:
        """Returns where a copy of an exchanged value begins, in elements."""
        elements = self._shape.rows_bytes // 4
        return f"({2 * number} + {copy}) * {elements}"

    def _barrier_of(self, number: int, copy: str) -> str:
        """Returns where the barrier of a copy lies behind the first barrier, in bytes."""
        return f"({2 * number} + {copy}) * 8"

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


def _written(source: Source) -> str:
    return f"c{source.stage}_{source.store}[r]"


def _stride_lines(name: str, strides: tuple[int, ...]) -> list[str]:
    """Returns the declarations of those strides that the place of an argument may name."""
    return [f"const int64_t {name}s{dim} = {stride};" for dim, stride in enumerate(strides)]


def _fours(registers_a_four: int) -> int:
    """Returns how many packs of four elements a thread reads ahead, of each row and of each column."""
    return next((fours for fours in (4, 2) if fours * registers_a_four <= _MOST_READ_AHEAD), 1)


def _unrolled_pairs(shape: ClusterShape, fours: int, chains: int) -> int:
    """Returns how many pairs of batches of a chain are written one after another: all of them, if they are short."""
    all_pairs = shape.depth // (8 * fours)
    return all_pairs if shape.depth * chains <= _MOST_WRITTEN_OUT else max(DEPTH_STEP // (8 * fours), 1)
