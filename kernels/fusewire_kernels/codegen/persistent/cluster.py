"""Generates the CUDA text of a persistent kernel that runs in clusters of blocks. Pure.

A thread has a few rows of its cluster, and one column of its block: the same in all stages of the same number of
columns. All threads need the left operand of a product, and what is reduced: these elements are sent to the shared
memory of all blocks of the cluster (see `cluster_shape`). All else that is carried, or that one stage takes from
another, stays in a register of the thread that has computed it. What has one element for each row is computed by all
threads of the row.

In the text, `t` is the number of the iteration in this launch, and `turn` is 0 or 1 in turns. `p3` points to operand 3
of the kernel, `e3` holds what it has at the points of the thread, and `n3` what it has in the next iteration. `s1` has
the sum of the product of stage 1, `c2_0` what store 0 of stage 2 wrote in this iteration, `x2_5` and `r2_6` what is
reduced and a result of a reduction: values 5 and 6 of stage 2. There are two copies of all that is exchanged: an
iteration finds in copy `turn` what the one before has sent, and sends to the other. `column_64` is the thread's column
of 64.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import accumulate

from fusewire_kernels.codegen.dialect import CUDA
from fusewire_kernels.codegen.expressions import TYPES, loaded
from fusewire_kernels.codegen.persistent.cluster_steps import Phase, Step, phase_of, steps_of
from fusewire_kernels.codegen.persistent.common_text import (
    PARAMETERS,
    address,
    input_address,
    output_address,
    place,
    stored_type,
)
from fusewire_kernels.codegen.product import finished
from fusewire_kernels.codegen.reductions import reduction_definitions, reduction_name, result_of_reduction
from fusewire_kernels.codegen.statements import AnalysedKernel, analyse
from fusewire_kernels.codegen.templates import template
from fusewire_kernels.codegen.text import Lines
from fusewire_kernels.ir.cluster_shape import (
    DEPTH_STEP,
    THREADS,
    depth,
    pitch,
)
from fusewire_kernels.ir.persistent import PersistentCluster, Place, ReducedValue, Source, Stage, StageProduct
from fusewire_protos.ops import dtypes

_MOST_WRITTEN_OUT = 512  # multiply-adds of a thread in an iteration that are written one after another
_BLOCKS_AT_ONCE = 4  # on a multiprocessor. With more registers for each, the assembler's order takes a third longer.
_MOST_READ_AHEAD = 80  # registers of a thread for elements that it has read and not yet multiplied
_THIS, _OTHER = "turn", "(turn ^ 1)"
_ALONG_COLUMNS = (Place.COLUMN, Place.POINT)


def cluster_text(kernel: PersistentCluster) -> str:
    """Returns the text of a persistent kernel that runs in clusters."""
    writer = _Writer(kernel)
    writer.write()
    templates = (template("copies.cu"), template("cluster.cu"))
    parts = (template("persistent.cu"), "#if __CUDA_ARCH__ >= 900\n", *templates, writer.text(), "#endif\n")
    return "".join(parts)


class _Writer:
    def __init__(self, kernel: PersistentCluster) -> None:
        self._kernel = kernel
        self._shape = kernel.shape
        self._bodies = [analyse(stage.body) for stage in kernel.stages]
        self._steps = steps_of(kernel, self._bodies)
        self._lines = Lines()
        # The products that are computed together, and where their columns begin in shared memory, in elements.
        self._together = [group for step in self._steps for group in self._alike(step)]
        sizes = [self._columns_of(stage) for group in self._together for stage in group]
        order = [stage for group in self._together for stage in group]
        self._columns_at = dict(zip(order, accumulate(sizes, initial=0), strict=False))
        self._first_use: dict[int, tuple[int, int]] = {}  # by operand, the stage and the number of an input that has it
        self._source_of: dict[int, Source] = {}  # of the operands that are carried
        for number, stage in enumerate(kernel.stages):
            for index, (operand, source) in enumerate(stage.inputs, _first_input(stage)):
                if operand is not None:
                    self._first_use.setdefault(operand, (number, index))
                    if source is not None:
                        self._source_of[operand] = source
        self._read = [operand for operand in self._first_use if operand not in self._source_of]
        # Of left operands in memory, by operand. Their elements for the next iteration are read and sent in each.
        self._ahead = {
            each.initial: number
            for number, each in enumerate(kernel.exchanged)
            if not each.parts and each.initial is not None
        }

    def text(self) -> str:
        return self._lines.text()

    def write(self) -> None:
        lines, shape = self._lines, self._shape
        lines.add(*reduction_definitions(self._bodies))
        bounds = (THREADS, _BLOCKS_AT_ONCE)
        head = CUDA.head_of(self._kernel.key, *bounds, parameters=PARAMETERS, cluster_blocks=shape.blocks)
        with lines.block(head):
            self._write_places()
            for number, stage in enumerate(self._kernel.stages):
                if stage.product is not None:
                    self._write_bringing_in_columns(number, stage.product)
            self._write_bringing_in_rows()
            self._write_barriers()
            self._write_inputs()
            lines.add("fw_end_copies();", "fw_wait_for_copies<0>();", "__syncwarp();", "fw_meet_in_cluster();")
            self._write_exit()
            with lines.block("for (int t = 0; t < count; t++)"):
                self._write_iteration()
            lines.add("/* No block ends while others may send to it. */", "__syncwarp();", "fw_meet_in_cluster();")

    # ---- before the first iteration ----

    def _write_places(self) -> None:
        kernel, shape = self._kernel, self._shape
        self._lines.add(
            "extern __shared__ float4 fw_shared_memory[];",
            f"float *columns = (float *)fw_shared_memory, *exchanged = columns + {shape.exchanged_at_bytes // 4};",
            "const uint32_t shared_at = fw_shared_address(columns);",
            f"const uint32_t barriers_at = shared_at + {shape.barriers_at_bytes};",
            "const uint32_t rank = fw_rank_in_cluster();",
            f"const int64_t first_row = blockIdx.x / {shape.blocks} * {shape.height};",
            f"const int rows = (int)fw_lesser({kernel.rows} - first_row, {shape.height});",
            f"const int place = threadIdx.x % {shape.threads_a_group};",
            f"const int own_row = threadIdx.x / {shape.threads_a_group} * {shape.rows_a_thread};",
            *[line for columns in kernel.shape.widths for line in self._column_lines(columns)],
            "const int count = (int)loop.counts[blockIdx.z];",
            "const int64_t *slots = fw_slots_of(loop, count, 0);",
        )

    def _column_lines(self, columns: int) -> list[str]:
        """Returns the declarations of a thread's column of so many columns."""
        width = self._shape.width(columns)
        first = f"(int)rank * {width}"
        has = f"has_column_{columns}"
        return [
            f"const bool {has} = place < {width} && {first} + place < {columns};",
            f"const int64_t column_{columns} = {has} ? {first} + place : 0;",
        ]

    def _write_bringing_in_columns(self, number: int, product: StageProduct) -> None:
        """Writes the loop that fills the shared memory with columns. Beyond the last k they are 0, in every product."""
        lines, columns, inner = self._lines, self._kernel.stages[number].columns, self._inner_of(product)
        along, across = product.right_strides
        width = self._shape.width(columns)
        right = f"right_{number}"
        lines.add(f"const float *{right} = (const float *)({address(product.right, 'slots')});")
        with self._filling(width * depth(inner)):
            lines.add(f"const int c = i % {width}, k = i / {width};")
            lines.add(f"const int of_all = (int)rank * {width} + c;")
            lines.add(f"float *to = columns + {self._columns_at[number]} + c * {pitch(inner)} + k;")
            element = f"{right} + k * (int64_t){along} + of_all * (int64_t){across}"
            lines.add(f"if (k < {inner} && of_all < {columns}) fw_begin_copy<4>(to, {element});")
            lines.add("else *to = 0.0f;")

    def _write_bringing_in_rows(self) -> None:
        """Writes the loops that fill the shared memory with rows. Beyond the last k they are -0, in every product."""
        lines, height = self._lines, self._shape.height
        for number, (_, columns, initial, (along_rows, along_columns)) in enumerate(self._kernel.exchanged):
            steps = depth(columns)
            if initial is not None:
                lines.add(f"const float *left_{number} = (const float *)({address(initial, 'slots')});")
            with self._filling(height * steps):
                lines.add(f"const int r = i / {steps}, k = i % {steps};")
                for copy in ("0", "1"):
                    to = f"exchanged + {self._rows_of(number, copy)} + r * {pitch(columns)} + k"
                    lines.add(f"float *to_{copy} = {to};")
                if initial is not None:
                    element = f"left_{number} + (first_row + r) * {along_rows} + k * {along_columns}"
                    with lines.block(f"if (r < rows && k < {columns})"):
                        lines.add(f"fw_begin_copy<4>(to_0, {element});", f"fw_begin_copy<4>(to_1, {element});")
                        lines.add("continue;")
                lines.add("*to_0 = *to_1 = -0.0f;")

    @contextmanager
    def _filling(self, elements: int) -> Iterator[None]:
        """Writes a loop over elements of shared memory around the lines that bring element `i`.

        The loop is not unrolled, because the copies of all elements are under way at once anyway.
        """
        self._lines.add("#pragma unroll 1")
        with self._lines.block(f"for (int i = threadIdx.x; i < {elements}; i += {THREADS})"):
            yield

    def _write_barriers(self) -> None:
        lines, shape = self._lines, self._shape
        with lines.block("if (threadIdx.x == 0)"):
            for barrier in range(2 * len(shape.exchanged)):
                lines.add(f"fw_make_barrier(barriers_at + {8 * barrier});")
            lines.add("fw_show_barriers();")
            for barrier in range(2 * len(shape.exchanged)):
                lines.add(f"fw_expect_bytes(barriers_at + {8 * barrier}, {self._bytes_of(barrier // 2)});")
        lines.add(f"uint32_t shared_in_block[{shape.blocks}];")
        lines.add("#pragma unroll")
        lines.add(f"for (int b = 0; b < {shape.blocks}; b++)")
        lines.add(f"    shared_in_block[b] = fw_address_in_block(shared_at, (rank + b) % {shape.blocks});")

    def _write_inputs(self) -> None:
        """Writes the first values of the operands that stages read, and the addresses of the second ones."""
        lines = self._lines
        for operand, (stage, number) in self._first_use.items():
            stored = stored_type(self._bodies[stage], number)
            lines.add(f"const {stored} *p{operand} = {input_address(self._bodies[stage], number, operand)};")
            lines.add(f"{stored} e{operand}[{self._shape.rows_a_thread}] = {{}};")
            self._write_reading(operand, f"e{operand}")
        lines.add(*(f"const float *p{operand} = nullptr;" for operand in self._ahead))
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
        has = [
            f"warp_place < {width} && (int)rank * {width} + warp_place < {columns}"
            for columns in self._kernel.shape.widths
            for width in (shape.width(columns),)
        ]
        lines.add(f"if (!({' || '.join(has)})) return;")

    # ---- in each iteration ----

    def _write_iteration(self) -> None:
        lines = self._lines
        lines.add("const int turn = t & 1;")
        self._write_prefetch()
        for number, step in enumerate(self._steps):
            self._write_step(number, step)
        if self._meets:
            lines.add("if (t + 1 < count) fw_arrive_in_cluster();")
        with lines.block("if (is_kept || t >= count - (int)loop.tail)"):
            lines.add("const int64_t *slots = fw_slots_of(loop, count, t);")
            for stage, body in enumerate(self._bodies):
                self._write_storing(stage, body)
        if self._source_of:
            with self._all_rows():
                lines.add(*(f"e{operand}[r] = {_written(source)};" for operand, source in self._source_of.items()))
        with lines.block("if (is_moving)"), self._all_rows():
            lines.add(*(f"e{operand}[r] = n{operand}[r];" for operand in self._read))

    def _write_step(self, number: int, step: Step) -> None:
        self._write_waits(step)
        for stages in self._alike(step):
            self._write_products(stages)
        for phase in step.first:
            self._write_phase(phase)
        if number == 0 and self._meets:
            self._lines.add("if (t > 0) fw_await_cluster();")
        self._write_sends(number, step)
        for phase in step.others:
            self._write_phase(phase)

    @property
    def _meets(self) -> bool:
        """Whether all threads meet between two iterations.

        If all stages have the same columns, each warp sends in each iteration. Who has got what a warp has sent knows
        that it has read what was there before. Else there may be warps that send nothing of what a thread waits for.
        """
        return len(self._kernel.shape.widths) > 1

    def _write_prefetch(self) -> None:
        """Writes the reads of the next iteration's operands, and of the slots of the one after it."""
        lines = self._lines
        for operand in self._read:
            stage, number = self._first_use[operand]
            lines.add(f"{stored_type(self._bodies[stage], number)} n{operand}[{self._shape.rows_a_thread}];")
        lines.add(*(f"float n{operand}[{self._shape.rows_a_thread}];" for operand in self._ahead))
        with lines.block("if (is_moving)"):
            for operand in self._read:
                self._write_reading(operand, f"n{operand}")
            for operand, number in self._ahead.items():
                _, columns, _, (along_rows, along_columns) = self._kernel.exchanged[number]
                with self._rows():
                    there = f"row * {along_rows} + column_{columns} * {along_columns}"
                    lines.add(f"n{operand}[r] = p{operand}[{there}];")
            self._write_pointers("t + 2 < count ? t + 2 : count - 1")

    def _write_pointers(self, iteration: str) -> None:
        """Writes the statements that let the pointers point to the operands of an iteration."""
        self._lines.add(f"const int64_t *next_slots = fw_slots_of(loop, count, {iteration});")
        for operand in self._read:
            stage, number = self._first_use[operand]
            self._lines.add(f"p{operand} = {input_address(self._bodies[stage], number, operand, 'next_slots')};")
        for operand in self._ahead:
            self._lines.add(f"p{operand} = (const float *)({address(operand, 'next_slots')});")

    def _write_reading(self, operand: int, target: str) -> None:
        number, index = self._first_use[operand]
        lines, body, stage = self._lines, self._bodies[number], self._kernel.stages[number]
        with self._rows():
            self._write_positions(stage)
            lines.add(f"const {stored_type(body, index)} *a{index} = p{operand};")
            lines.add(*_stride_lines(f"a{index}", stage.strides[index - _first_input(stage)]))
            lines.add(f"{target}[r] = {place(body, index)};")

    def _write_waits(self, step: Step) -> None:
        """Writes the waits for all that a step is the first to need of what is exchanged."""
        products = [product for stage in step.products if (product := self._kernel.stages[stage].product)]
        reduced = [self._exchanged_before(phase) for phase in (*step.first, *step.others)]
        of_this = {each.left for each in products if each.is_new}.union(*reduced)
        for number in sorted({each.left for each in products} | of_this):
            if number in of_this:
                self._write_wait(number, _OTHER, "t / 2 & 1")
            elif not self._is_needed_at_once(number):
                is_sent = "t > 0" if self._kernel.exchanged[number].parts else "is_moving && t > 0"
                with self._lines.block(f"if ({is_sent})"):
                    self._write_wait(number, _THIS, "(t - 1) / 2 & 1")

    def _write_wait(self, number: int, turn: str, parity: str) -> None:
        barrier = f"barriers_at + {self._barrier_of(number, turn)}"
        self._lines.add(f"fw_wait_for_bytes({barrier}, {parity});")
        self._lines.add(f"if (threadIdx.x == 0) fw_expect_bytes({barrier}, {self._bytes_of(number)});")

    def _is_needed_at_once(self, number: int) -> bool:
        """Returns whether an exchanged value is needed in the iteration that sends it."""
        return any(
            (stage.product is not None and stage.product.is_new and stage.product.left == number)
            or number in dict(stage.reduced).values()
            for stage in self._kernel.stages
        )

    def _exchanged_before(self, phase: Phase) -> set[int]:
        """Returns what is exchanged for the reductions with which a phase begins."""
        reduced = dict(self._kernel.stages[phase.stage].reduced)
        body = self._bodies[phase.stage]
        nodes = [body.node(value) for value in body.reductions(phase.number - 1)]
        return {reduced[node.operands[0]] for node in nodes if node is not None}

    def _alike(self, step: Step) -> list[list[int]]:
        """Returns the products of a step, by stage: together those with the same k and columns."""
        alike: dict[tuple[int, int], list[int]] = {}
        for number in step.products:
            stage = self._kernel.stages[number]
            assert stage.product is not None
            alike.setdefault((self._inner_of(stage.product), stage.columns), []).append(number)
        return [*alike.values()]

    def _write_products(self, stages: list[int]) -> None:
        """Writes products with the same k and columns, which are computed together."""
        lines, shape, columns = self._lines, self._shape, self._kernel.stages[stages[0]].columns
        found = [product for stage in stages if (product := self._kernel.stages[stage].product)]
        inner = self._inner_of(found[0])
        lefts = sorted({(product.left, product.is_new) for product in found})
        rows, products = shape.rows_a_thread, len(found)
        fours = _fours((len(lefts) * rows + products) * 8)
        pairs = _unrolled_pairs(depth(inner), fours, rows * sum(map(depth, (inner for inner, _ in shape.products))))
        left_of = sum(lefts.index((product.left, product.is_new)) << 4 * index for index, product in enumerate(found))
        next_product = self._columns_of(stages[0])
        numbers = (depth(inner), rows, len(lefts), products, f"{left_of}u", pitch(inner), next_product, fours, pairs)
        places = [f"exchanged + {self._rows_of(left, _OTHER if is_new else _THIS)}" for left, is_new in lefts]
        lines.add(*(f"float s{stage}[{rows}];" for stage in stages))
        with lines.block(""):
            of_thread = ", ".join([f"{each} + own_row * {pitch(inner)}" for each in places])
            lines.add(f"const float *const of_rows[{len(lefts)}] = {{{of_thread}}};")
            right = f"columns + {self._columns_at[stages[0]]} + (has_column_{columns} ? place : 0) * {pitch(inner)}"
            lines.add(f"float sums[{products}][{rows}];")
            lines.add(f"fw_chains<{', '.join(map(str, numbers))}>(of_rows, {right}, sums);")
            lines.add("#pragma unroll")
            with lines.block(f"for (int r = 0; r < {rows}; r++)"):
                lines.add(*(f"s{stage}[r] = sums[{index}][r];" for index, stage in enumerate(stages)))

    def _write_phase(self, phase: Phase) -> None:
        """Writes the values of all rows, also of those beyond the last, so that the rows are computed side by side."""
        lines, body, stage = self._lines, self._bodies[phase.stage], self._kernel.stages[phase.stage]
        for value in body.reductions(phase.number - 1):
            self._write_reduction(phase.stage, value)
        stores = [store for store, value in enumerate(body.stored) if body.stages[value] == phase.number]
        reduced = sorted(
            {
                part.source.value
                for each in self._kernel.exchanged
                for part in each.parts
                if isinstance(part.source, ReducedValue) and phase_of(part.source, self._bodies) == phase
            }
        )
        for store in stores:
            stored = TYPES[body.kernel.stores[store].argument.dtype].stored
            lines.add(f"{stored} c{phase.stage}_{store}[{self._shape.rows_a_thread}];")
        lines.add(*(f"float x{phase.stage}_{value}[{self._shape.rows_a_thread}];" for value in reduced))
        with self._all_rows():
            self._write_positions(stage)
            self._write_values(phase.stage, [*reduced, *[body.stored[store] for store in stores]])
            lines.add(*(f"x{phase.stage}_{value}[r] = v{value};" for value in reduced))
            lines.add(*(body.storing(store, f"c{phase.stage}_{store}[r]") for store in stores))

    def _write_values(self, number: int, targets: list[int]) -> None:
        """Writes the statements that compute values of a stage from its inputs and from results of reductions."""
        lines, body, stage = self._lines, self._bodies[number], self._kernel.stages[number]
        needed = body.needed(targets, is_at_hand=body.is_reduction)
        at_hand = {each for value in needed if (node := body.node(value)) for each in node.operands}.union(targets)
        for value in sorted({*needed, *filter(body.is_reduction, at_hand)}):
            if body.is_reduction(value):
                lines.add(f"const {TYPES[body.dtype(value)].value} v{value} = r{number}_{value}[r];")
            elif stage.product is not None and value == 0:
                lines.add(f"const float v0 = {loaded(finished(f's{number}[r]', dtypes.float32), dtypes.float32)};")
            else:
                lines.add(body.declaration(value, self._at_hand(stage, value)))

    def _at_hand(self, stage: Stage, value: int) -> str:
        """Returns the register that has an input of a body; of another value it is never used."""
        index = value - _first_input(stage)
        if index >= len(stage.inputs):
            return ""
        operand, source = stage.inputs[index]
        if operand is not None:
            return f"e{operand}[r]"
        assert source is not None, "an input is in memory or computed"
        return _written(source)

    def _write_reduction(self, number: int, value: int) -> None:
        """Writes a reduction, by each warp for itself: a thread computes one lane of each of its rows."""
        lines, body, shape = self._lines, self._bodies[number], self._shape
        node = body.node(value)
        assert node is not None
        name = reduction_name(node)
        exchanged = dict(self._kernel.stages[number].reduced)[node.operands[0]]
        columns = self._kernel.exchanged[exchanged].columns
        lines.add(f"{TYPES[node.dtype].value} r{number}_{value}[{shape.rows_a_thread}];")
        with self._all_rows():
            rows = f"{self._rows_of(exchanged, _OTHER)} + (own_row + r) * {pitch(columns)}"
            lines.add(f"const float *of_row = exchanged + {rows};")
            lines.add(f"fw_partial_{name} partial = fw_start_{name}();")
            lines.add("#pragma unroll")
            with lines.block(f"for (int k = 0; k < {columns}; k += FW_LANES)"):
                lines.add("const int i = k + threadIdx.x % FW_LANES;")
                lines.add(f"if (i < {columns}) fw_take_{name}(&partial, of_row[i]);")
            lines.add(f"partial = fw_tree_in_warp_{name}(partial);")
            lines.add(f"r{number}_{value}[r] = {result_of_reduction(node, 'partial.value', '')};")

    def _write_sends(self, index: int, step: Step) -> None:
        """Writes what is sent in a step. What is in memory is sent in the first, for the next iteration."""
        for number, each in enumerate(self._kernel.exchanged):
            if not each.parts and index == 0:
                self._write_sending(number, 0, each.columns, f"n{each.initial}[r]", "is_moving && t + 1 < count")
            needed = "" if self._is_needed_at_once(number) else "t + 1 < count"
            for source, first, columns in each.parts:
                if phase_of(source, self._bodies) in step.first:
                    self._write_sending(number, first, columns, _written(source), needed)

    def _write_sending(self, number: int, first: int, columns: int, element: str, needed: str) -> None:
        """Writes that elements are sent. They are those of so many columns, which begin at `first` where they go."""
        shape, lines = self._shape, self._lines
        has_column, row_pitch = f"has_column_{columns}", pitch(self._kernel.exchanged[number].columns)
        with lines.block(f"if ({has_column} && {needed})" if needed else f"if ({has_column})"), self._rows():
            lines.add("#pragma unroll")
            with lines.block(f"for (int b = 0; b < {shape.blocks}; b++)"):
                column = f"{first} + (int)column_{columns}" if first else f"(int)column_{columns}"
                there = f"{self._rows_of(number, _OTHER)} + (own_row + r) * {row_pitch} + {column}"
                to = f"shared_in_block[b] + {shape.exchanged_at_bytes} + ({there}) * 4"
                at = f"shared_in_block[b] + {shape.barriers_at_bytes} + {self._barrier_of(number, _OTHER)}"
                lines.add(f"fw_send({to}, {element}, {at});")

    def _write_storing(self, number: int, body: AnalysedKernel) -> None:
        lines, stage = self._lines, self._kernel.stages[number]
        for store, output in enumerate(stage.outputs):
            if output is None:
                continue
            stored = TYPES[body.kernel.stores[store].argument.dtype].stored
            strides = stage.strides[len(stage.inputs) + store]
            has_columns = any(each in _ALONG_COLUMNS for each in stage.places)
            is_along = any(stride for stride, each in zip(strides, stage.places, strict=True) if each in _ALONG_COLUMNS)
            where = f"has_column_{stage.columns}" if has_columns else "true"
            if not is_along:  # one element a row: the first column's thread writes it
                where = "place == 0 && rank == 0"
            with lines.block(f"if ({where} && (loop.each >> {output} & 1 || t >= count - (int)loop.tail))"):
                operand = self._kernel.reads + output
                lines.add(f"{stored} *o{store} = {output_address(body, store, operand)};")
                lines.add(*_stride_lines(f"o{store}", strides))
                with self._rows():
                    self._write_positions(stage)
                    lines.add(f"{body.output_place(store)} = c{number}_{store}[r];")

    # ---- parts ----

    def _write_positions(self, stage: Stage) -> None:
        """Writes the positions of a thread along the dimensions of a stage."""
        column = f"column_{stage.columns}"
        point = f"row * {stage.columns} + {column}"
        texts = {Place.ROW: "row", Place.COLUMN: column, Place.POINT: point, Place.ONE: "0"}
        self._lines.add(*(f"const int64_t i{dim} = {texts[each]};" for dim, each in enumerate(stage.places)))

    def _rows_of(self, number: int, copy: str) -> str:
        """Returns where a copy of an exchanged value begins, in elements."""
        before = 2 * sum(map(self._shape.rows_bytes, self._shape.exchanged[:number])) // 4
        return f"{before} + {copy} * {self._shape.rows_bytes(self._shape.exchanged[number]) // 4}"

    def _columns_of(self, number: int) -> int:
        """Returns how many elements a block has of the right operand of a product, by stage."""
        stage = self._kernel.stages[number]
        assert stage.product is not None
        return self._shape.columns_bytes(self._inner_of(stage.product), stage.columns) // 4

    def _inner_of(self, product: StageProduct) -> int:
        return self._kernel.exchanged[product.left].columns

    def _bytes_of(self, number: int) -> str:
        """Returns how many bytes of an exchanged value come in an iteration."""
        return f"rows * {self._kernel.exchanged[number].columns * 4}"

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
            self._lines.add("const int64_t row = first_row + own_row + r;")
            yield


def _first_input(stage: Stage) -> int:
    """Returns the number of the first input of a stage's body that is not the product."""
    return 0 if stage.product is None else 1


def _written(source: Source | ReducedValue) -> str:
    """Returns the register that has a value that was computed in this iteration."""
    if isinstance(source, ReducedValue):
        return f"x{source.stage}_{source.value}[r]"
    return f"c{source.stage}_{source.store}[r]"


def _stride_lines(name: str, strides: tuple[int, ...]) -> list[str]:
    """Returns the declarations of those strides that the place of an argument may name."""
    return [f"const int64_t {name}s{dim} = {stride};" for dim, stride in enumerate(strides)]


def _fours(registers_a_four: int) -> int:
    """Returns how many packs of four elements a thread reads ahead, of each row and of each column."""
    return next((fours for fours in (4, 2) if fours * registers_a_four <= _MOST_READ_AHEAD), 1)


def _unrolled_pairs(steps: int, fours: int, multiplications: int) -> int:
    """Returns how many pairs of batches of a chain of so many steps are written one after another.

    These are all of them, if all chains of an iteration take few multiplications.
    """
    all_pairs = steps // (8 * fours)
    return all_pairs if multiplications <= _MOST_WRITTEN_OUT else max(DEPTH_STEP // (8 * fours), 1)
