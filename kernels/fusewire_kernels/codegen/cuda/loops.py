"""Generates the CUDA text of a loop kernel. Pure.

`blockIdx.y` is the number of the instance and `blockIdx.z` is the number of the row. The x dimension of the grid may
have any number of blocks.

The statements and the order of summation are those of the C dialect. An outer point is a point of the outer dimensions.
A chunk is up to 1,024 neighbouring elements along the inner dimension, and a lane is one of 32 partial results of a
chunk. The work is spread over threads in one of four ways:

- Pointwise: a thread takes every n-th point, where n is the number of threads (`points`).
- Rows: an outer point, with its row of inner elements, takes a warp for each chunk, at most 32. Warp w takes the chunks
  w, w + 32, …, and each thread of the warp computes one lane. The warps of a row are a block. If a row has one chunk, a
  block takes 8 rows at a time. The threads keep their elements in registers where `register_rows` says so. Then 8
  threads share a row of up to 256 elements, and each of them computes 4 lanes.
- Columns: a block of 32 by 32 threads takes 32 outer points that are neighbours in memory.
- Few elements: if there are very many points with few inner elements, a thread takes a whole point.

Where several threads work on the same outer point, each of them computes the point's outer values, and one of the
threads stores the outer values.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from fusewire_kernels.codegen.cuda.entry import WAIT, instance_lines
from fusewire_kernels.codegen.cuda.points import is_short, product_of, write_pointwise, write_positions
from fusewire_kernels.codegen.cuda.register_rows import MOST_THREADS, Pass, RegisterRows
from fusewire_kernels.codegen.dialect import CUDA
from fusewire_kernels.codegen.expressions import TYPES
from fusewire_kernels.codegen.reductions import (
    is_positional,
    reduction_definitions,
    reduction_name,
    result_of_reduction,
)
from fusewire_kernels.codegen.statements import AnalysedKernel, analyse, argument_lines, count_sizes
from fusewire_kernels.codegen.text import Lines
from fusewire_kernels.ir.kernel import Argument, LoopKernel, Node, Stride
from fusewire_kernels.ops.order import LANES
from fusewire_protos.ops import dtypes

_LET_NEXT_START_IF_MANY = "fw_let_next_kernel_start_if_many();"
_MOST_THREADS = 1024


def cuda_loop_text(
    kernel: LoopKernel, name: str, rows: RegisterRows | None = None, *, has_few_elements: bool = False
) -> str:
    """Returns the CUDA kernel of a loop kernel under a name.

    `rows` says how it keeps its rows in registers, if so. `has_few_elements`: a thread takes a whole point.
    """
    body = analyse(kernel)
    lines = Lines()
    lines.add(*reduction_definitions([body]))
    bounds = (_MOST_THREADS,) if rows is None else (MOST_THREADS, rows.blocks)
    with lines.block(CUDA.head_of(name, *bounds)):
        lines.add(*instance_lines(count_sizes(body), len(kernel.inputs) + len(kernel.stores)), *argument_lines(body))
        lines.add(WAIT)
        if not kernel.has_inner:
            write_pointwise(lines, body)
        elif has_few_elements:
            _FewElements(lines, body).write()
        elif kernel.runs_along_columns:
            _Columns(lines, body).write()
        elif rows is not None:
            (_NarrowRows if rows.are_narrow else _RegisterRows)(lines, body, rows).write()
        else:
            _Rows(lines, body).write()
    return lines.text()


class _Reducing(ABC):
    """The parts that the schedules `_Rows` and `_Columns` share. The subclasses assign elements to threads.

    The class attributes are expressions of the generated text. A thread stores the inner elements `own`,
    `own + stride`, `own + 2 * stride`, …. A thread stores outer values if `is_storing` is true or empty.
    """

    own = "lane"
    stride = "FW_LANES"
    is_storing = "own == 0"

    def __init__(self, lines: Lines, body: AnalysedKernel) -> None:
        self._lines = lines
        self._body = body
        self._inner = body.kernel.rank
        self._extent = f"n{self._inner}"

    def _write_point(self) -> None:
        """Writes the statements for one outer point. The text before has set the point's positions."""
        self._write_outer_values(stage=0)
        for phase in range(self._body.phases):
            for value in self._body.reductions(phase):
                self._write_reduction(value)
            self._write_outer_values(stage=phase + 1)
        self._lines.add(_LET_NEXT_START_IF_MANY)
        self._write_inner_stores()
        self._write_outer_stores()

    def _write_outer_values(self, stage: int) -> None:
        body = self._body
        for value in body.all_needed:
            is_here = body.stages[value] == stage and not body.is_inner(value)
            if is_here and not body.is_reduction(value):
                self._lines.add(body.declaration(value))

    @abstractmethod
    def _write_reduction(self, value: int) -> None:
        """Writes a reduction over the inner dimension. Every thread that works on the point gets the result."""

    def _write_taking(self, value: int) -> None:
        """Writes the loop in which a thread adds its elements of one chunk to a partial result.

        In the generated text, the chunk starts at `begin` and the partial result is `r`.
        """
        lines, position, node = self._lines, f"i{self._inner}", self._node(value)
        name = reduction_name(node)
        lines.add(f"fw_partial_{name} r = fw_start_{name}();")
        lines.add(f"const int64_t end = fw_lesser(begin + FW_CHUNK, {self._extent});")
        with lines.block(f"for (int64_t {position} = begin + lane; {position} < end; {position} += FW_LANES)"):
            lines.add(*self._body.inner_declarations(node.operands))
            lines.add(f"fw_take_{name}(&r, {self._element(node)});")

    def _element(self, node: Node) -> str:
        """Returns the arguments by which a partial result takes the element at the present position."""
        operand = f"v{node.operands[0]}"
        return f"{operand}, i{self._inner}" if is_positional(node) else operand

    def _write_result(self, value: int) -> None:
        node = self._node(value)
        text = result_of_reduction(node, f"r{value}.value", f"r{value}.position")
        self._lines.add(f"const {TYPES[node.dtype].value} v{value} = {text};")

    def _name(self, value: int) -> str:
        return reduction_name(self._node(value))

    def _node(self, value: int) -> Node:
        node = self._body.node(value)
        assert node is not None, "a reduction is no input"
        return node

    def _write_inner_stores(self) -> None:
        body, position = self._body, f"i{self._inner}"
        outputs = body.inner_stores
        if not outputs:
            return
        head = f"for (int64_t {position} = {self.own}; {position} < {self._extent}; {position} += {self.stride})"
        with self._lines.block(head):
            self._lines.add(*body.inner_declarations(body.stored[output] for output in outputs))
            self._lines.add(*(body.storing(output) for output in outputs))

    def _write_outer_stores(self) -> None:
        body = self._body
        outputs = body.outer_stores
        if not outputs:
            return
        with self._lines.block(f"if ({self.is_storing})" if self.is_storing else ""):
            self._lines.add(*(body.storing(output) for output in outputs))


class _Rows(_Reducing):
    """The warps of a row take the chunks in turn. Each pass through a row reads it again."""

    own = "own"
    stride = "warps * FW_LANES"

    def write(self) -> None:
        lines, rank = self._lines, self._body.kernel.rank
        lines.add("FW_SHARED(shared, FW_LANES);")
        lines.add(f"const int warps = fw_warps_of_row({self._extent});")
        lines.add("const int lane = threadIdx.x % FW_LANES, warp = threadIdx.x / FW_LANES % warps;")
        lines.add("const int own = warp * FW_LANES + lane;")
        lines.add("const int64_t groups = blockDim.x / (FW_LANES * warps);")
        lines.add(f"const int64_t points = {product_of(range(rank))};")
        first = "blockIdx.x * groups + threadIdx.x / (FW_LANES * warps)"
        with lines.block(f"for (int64_t point = {first}; point < points; point += gridDim.x * groups)"):
            write_positions(lines, range(rank))
            self._write_point()

    def _write_reduction(self, value: int) -> None:
        lines, name, extent = self._lines, self._name(value), self._extent
        lines.add(f"fw_partial_{name} r{value} = fw_start_{name}();")
        with lines.block(f"for (int64_t segment = 0; segment == 0 || segment < {extent}; segment += FW_SEGMENT)"):
            lines.add(f"fw_partial_{name} u = fw_start_{name}();")
            lines.add(f"const int64_t segment_end = fw_lesser(segment + FW_SEGMENT, {extent});")
            begin = "int64_t begin = segment + warp * FW_CHUNK; begin < segment_end; begin += warps * FW_CHUNK"
            with lines.block(f"for ({begin})"):
                self._write_taking(value)
                lines.add(f"fw_merge_{name}(&u, fw_tree_in_warp_{name}(r));")
            lines.add(f"if (warps > 1) u = fw_tree_of_warps_{name}(u, warps, shared);")
            is_mine = f"{extent} <= FW_SEGMENT || lane == segment / FW_SEGMENT % FW_LANES"
            lines.add(f"if ({is_mine}) fw_merge_{name}(&r{value}, u);")
        lines.add(f"if ({extent} > FW_SEGMENT) r{value} = fw_tree_in_warp_{name}(r{value});")
        self._write_result(value)


class _RegisterRows(_Rows):
    """Each warp of a row has one chunk, and each thread keeps its elements of the chunk in registers.

    In the generated text, `count` is the number of the thread's elements; in rows of whole chunks each thread has
    `FW_STEPS`, the most. `k0[step]` keeps a value of an element. The compiler writes the loops over the elements out,
    because registers have no index. `p0` and `q0` are the places of the thread's first element in the input `a0` and in
    the output `o0`. The class attributes are text: the thread's first element, how far apart its elements are, the
    partial results of a reduction, the one of them that takes the element of a step, and the trees that combine them.
    """

    first = "warp * FW_CHUNK + lane"
    apart = "FW_LANES"
    partials: tuple[str, ...] = ("fw_partial_{name} r{value} = fw_start_{name}();",)
    taker = "&r{value}"
    trees: tuple[str, ...] = (
        "r{value} = fw_tree_in_warp_{name}(r{value});",
        "if (warps > 1) r{value} = fw_tree_of_warps_{name}(r{value}, warps, shared);",
    )

    def __init__(self, lines: Lines, body: AnalysedKernel, rows: RegisterRows) -> None:
        super().__init__(lines, body)
        self._rows = rows
        self._declared_divisors: set[int] = set()

    def _write_point(self) -> None:
        lines, body, position = self._lines, self._body, f"i{self._inner}"
        lines.add(f"const int64_t first = {self.first};", f"const int64_t {position} = first;")
        if not self._rows.are_whole:
            left = f"({self._extent} - first - 1) / {self.apart} + 1"
            lines.add(f"const int count = first < {self._extent} ? fw_lesser({left}, FW_STEPS) : 0;")
        for value, argument in enumerate(body.kernel.inputs):
            if body.is_inner(value):
                lines.add(f"const {TYPES[argument.dtype].stored} *p{value} = &{body.input_place(value)};")
        for output in body.inner_stores:
            stored = TYPES[body.kernel.stores[output].argument.dtype].stored
            lines.add(f"{stored} *q{output} = &{body.output_place(output)};")
        self._write_outer_values(stage=0)
        lines.add(*(f"{array} k{number}[FW_STEPS];" for number, array in enumerate(self._rows.arrays)))
        *phases, last = self._rows.passes
        for phase, each in enumerate(phases):
            self._write_phase(each, body.reductions(phase))
            self._write_outer_values(stage=phase + 1)
        lines.add(_LET_NEXT_START_IF_MANY)
        if last.targets:
            self._write_pass(last, [self._storing(output) for output in body.inner_stores])
        self._write_outer_stores()

    def _write_phase(self, each: Pass, reductions: list[int]) -> None:
        lines = self._lines
        takings = []
        for value in reductions:
            name = self._name(value)
            lines.add(*(partial.format(name=name, value=value) for partial in self.partials))
            element = self._element(self._node(value))
            takings.append(f"fw_take_{name}({self.taker.format(value=value)}, {element});")
        self._write_pass(each, takings)
        for value in reductions:
            lines.add(*(tree.format(name=self._name(value), value=value) for tree in self.trees))
            self._write_result(value)

    def _write_pass(self, each: Pass, uses: list[str]) -> None:
        """Writes a pass; `uses` are the statements that use its targets."""
        lines, body = self._lines, self._body
        if each.loaded:
            with self._steps():
                for value in each.loaded:
                    lines.add(self._declaration(value), f"{self._register(value)} = v{value};")
        self._write_divisors(each.made)
        with self._steps():
            for value in each.held:
                lines.add(f"const {TYPES[body.dtype(value)].value} v{value} = {self._register(value)};")
            lines.add(*map(self._declaration, each.made))
            lines.add(*(f"{self._register(value)} = v{value};" for value in each.kept), *uses)

    def _write_divisors(self, values: Sequence[int]) -> None:
        """Declares what quotients of a pass are divided by, unless a pass before has declared it."""
        for value in values:
            divisor = self._divisor_of_row(value)
            if divisor is not None and divisor not in self._declared_divisors:
                self._declared_divisors.add(divisor)
                self._lines.add(f"const fw_divisor_f32 d{divisor} = fw_as_divisor_f32(v{divisor});")

    def _divisor_of_row(self, value: int) -> int | None:
        """Returns the divisor of a quotient, if all elements of the row are divided by it."""
        node = self._body.node(value)
        if node is None or node.op != "divide" or node.operand_dtype is not dtypes.float32:
            return None
        divisor = node.operands[1]
        return None if self._body.is_inner(divisor) else divisor

    def _register(self, value: int) -> str:
        return f"k{self._rows.array_of[value]}[step]"

    def _declaration(self, value: int) -> str:
        node, divisor = self._body.node(value), self._divisor_of_row(value)
        if node is not None and divisor is not None:
            return f"const float v{value} = fw_divide_by_f32(v{node.operands[0]}, d{divisor});"
        if node is not None:
            return self._body.declaration(value)
        step = self._step_of(self._body.kernel.inputs[value], f"a{value}s{self._inner}")
        return self._body.declaration(value, f"__ldg(&p{value}[{step}])")

    def _storing(self, output: int) -> str:
        step = self._step_of(self._body.kernel.stores[output].argument, f"o{output}s{self._inner}")
        return self._body.storing(output, f"q{output}[{step}]")

    @contextmanager
    def _steps(self) -> Iterator[None]:
        self._lines.add("#pragma unroll")
        with self._lines.block("for (int step = 0; step < FW_STEPS; step++)"):
            if not self._rows.are_whole:
                self._lines.add("if (step >= count) break;")
            self._lines.add(f"const int64_t i{self._inner} = first + step * {self.apart};")
            yield

    def _step_of(self, argument: Argument, stride: str) -> str:
        """Returns the offset of a thread's element from its first. `stride` names the argument's stride along a row."""
        match argument.strides[-1]:
            case Stride.UNIT:
                return f"step * {self.apart}"
            case Stride.ANY:
                return f"step * {self.apart} * {stride}"
        return "0"


class _NarrowRows(_RegisterRows):
    """A few threads share a row, and each of them has several lanes. A warp works on several rows.

    All threads of a warp take part in a tree. So those that have no row of their own compute the last row once more,
    and store nothing.
    """

    is_storing = "lane == 0 && is_inside"
    first = "lane"
    apart = "FW_NARROW"
    partials = (
        "fw_partial_{name} s{value}[FW_SHARE];",
        "for (int n = 0; n < FW_SHARE; n++) s{value}[n] = fw_start_{name}();",
    )
    taker = "s{value} + step % FW_SHARE"
    trees = ("fw_partial_{name} r{value} = fw_tree_of_shares_{name}(s{value});",)

    def write(self) -> None:
        lines, rank = self._lines, self._body.kernel.rank
        lines.add("const int lane = threadIdx.x % FW_NARROW;")
        lines.add("const int64_t groups = blockDim.x / FW_NARROW;")
        lines.add(f"const int64_t points = {product_of(range(rank))};")
        lines.add("const int64_t begin = blockIdx.x * groups + threadIdx.x / FW_LANES * FW_SHARE;")
        with lines.block("for (int64_t of_warp = begin; of_warp < points; of_warp += gridDim.x * groups)"):
            lines.add("const int64_t wanted = of_warp + threadIdx.x % FW_LANES / FW_NARROW;")
            lines.add("const bool is_inside = wanted < points;")
            lines.add("const int64_t point = fw_lesser(wanted, points - 1);")
            write_positions(lines, range(rank))
            self._write_point()

    def _storing(self, output: int) -> str:
        return f"if (is_inside) {super()._storing(output)}"


class _Columns(_Reducing):
    """A block takes 32 neighbouring outer points. Each thread computes one lane of one of these points.

    All threads of a block meet in its trees. So those that have no point of their own compute the last point once more,
    and store nothing.
    """

    is_storing = "lane == 0 && is_inside"

    def write(self) -> None:
        lines, rank = self._lines, self._body.kernel.rank
        lines.add("FW_SHARED(shared, FW_LANES * FW_LANES);")
        lines.add("const int warps = FW_LANES, lane = threadIdx.x / FW_LANES;")
        lines.add(f"const int64_t points = {product_of(range(rank))}, apart = gridDim.x * (int64_t)FW_LANES;")
        first = "blockIdx.x * (int64_t)FW_LANES"
        with lines.block(f"for (int64_t of_block = {first}; of_block < points; of_block += apart)"):
            lines.add("const int64_t wanted = of_block + threadIdx.x % FW_LANES;")
            lines.add("const bool is_inside = wanted < points;")
            lines.add("const int64_t point = fw_lesser(wanted, points - 1);")
            write_positions(lines, range(rank))
            self._write_point()

    def _write_reduction(self, value: int) -> None:
        lines, name, extent = self._lines, self._name(value), self._extent
        tree = f"fw_tree_of_columns_{name}"
        lines.add(f"fw_partial_{name} r{value} = fw_start_{name}();")
        with lines.block(f"for (int64_t segment = 0; segment == 0 || segment < {extent}; segment += FW_SEGMENT)"):
            lines.add(f"fw_partial_{name} u = fw_start_{name}();")
            lines.add(f"const int64_t segment_end = fw_lesser(segment + FW_SEGMENT, {extent});")
            with lines.block("for (int64_t begin = segment; begin < segment_end; begin += FW_CHUNK)"):
                self._write_taking(value)
                lines.add(f"r = {tree}(r, shared);")
                lines.add(f"if (lane == begin / FW_CHUNK % FW_LANES) fw_merge_{name}(&u, r);")
            lines.add(f"u = {tree}(u, shared);")
            lines.add(f"if (lane == segment / FW_SEGMENT % FW_LANES) fw_merge_{name}(&r{value}, u);")
        lines.add(f"r{value} = {tree}(r{value}, shared);")
        self._write_result(value)

    def _write_inner_stores(self) -> None:
        with self._lines.block("if (is_inside)"):
            super()._write_inner_stores()


class _FewElements(_Reducing):
    """A thread takes a whole outer point, of at most `FW_LANES` inner elements, so each is a lane of its own.

    The tree combines lanes whose numbers differ by 16 first, and those whose numbers differ by 1 last. So the lanes
    that are combined last are the outermost loop, whose body computes one half of the tree. Lanes without an element
    are left out, because they would change nothing. In the generated text, `l1` is the last bit of the lane, `l2` are
    the last two bits, and so on, and `q1` is the partial result of all lanes with the last bit `l1`. A short body is
    there four times, so that a thread has four loads under way; unrolled all the way it would be there 32 times.
    """

    own = "0"
    stride = "1"
    is_storing = ""

    def write(self) -> None:
        lines, rank = self._lines, self._body.kernel.rank
        lines.add(f"const int64_t points = {product_of(range(rank))};")
        with lines.block(f"for (int64_t point = {CUDA.index}; point < points; point += {CUDA.count})"):
            write_positions(lines, range(rank))
            self._write_point()

    def _write_reduction(self, value: int) -> None:
        name = self._name(value)
        self._lines.add(f"fw_partial_{name} r{value} = fw_start_{name}();")
        self._write_lanes(value, f"r{value}", "0", 1)
        self._write_result(value)

    def _write_lanes(self, value: int, result: str, first: str, apart: int) -> None:
        """Writes the loop that combines the lanes from `first` on that are multiples of `apart` from it."""
        lines, name, node = self._lines, self._name(value), self._node(value)
        is_innermost = 2 * apart == LANES
        lane = f"i{self._inner}" if is_innermost else f"l{apart}"
        lines.add("#pragma unroll" if apart < 4 and is_short(self._body) else "#pragma unroll 1")
        is_lane = f"{lane} < {2 * apart} && {lane} < {self._extent}"
        with lines.block(f"for (int64_t {lane} = {first}; {is_lane}; {lane} += {apart})"):
            if is_innermost:
                lines.add(*self._body.inner_declarations(node.operands))
                lines.add(f"fw_take_{name}(&{result}, {self._element(node)});")
            else:
                lines.add(f"fw_partial_{name} q{apart} = fw_start_{name}();")
                self._write_lanes(value, f"q{apart}", lane, 2 * apart)
                lines.add(f"fw_merge_{name}(&{result}, q{apart});")
