"""Generates a loop kernel as a C function that computes one instance of one row. Pure.

The text of a pointwise kernel is a nest of loops. Each value is computed in the outermost loop in which all its
operands are known. A long innermost loop is cut into sections (see `sections.py`).

A kernel with reductions reduces along its inner dimension; its other dimensions are outer dimensions. For each outer
point, the text first computes the reductions and then stores the outputs. The reductions are computed in phases: a
reduction that needs the result of another reduction is in a later phase. Values that differ along the inner dimension
are not kept, so each phase that needs one computes it again.

A *lane* is one of the 32 partial results of a reduction. Kernels with reductions have two schedules. Both add the
elements in the same order.

- *Rows*: the innermost loop runs over 32 neighbours along the inner dimension, one for each lane.
- *Columns*: the innermost loop runs over a block of neighbouring outer points, and each point has its own 32 lanes.
  This schedule is used if more inputs are contiguous along the last outer dimension than along the inner dimension.
  All lanes lie on the stack, so the block is narrower in a kernel with many reductions.

`ivdep` promises the compiler that the iterations of a loop are independent. The promise is kept even if an output
shares memory with an input: each iteration then reads only the element of this memory that it writes.
"""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import ExitStack

from fusewire_kernels.codegen.c.sections import Section, Sections, sections_of
from fusewire_kernels.codegen.dialect import C
from fusewire_kernels.codegen.expressions import TYPES
from fusewire_kernels.codegen.reductions import (
    accumulator_type,
    is_positional,
    reduction_definitions,
    reduction_name,
    result_of_reduction,
)
from fusewire_kernels.codegen.statements import UNLESS_IN_PLACE, AnalysedKernel, analyse, argument_lines
from fusewire_kernels.codegen.text import Lines
from fusewire_kernels.ir.kernel import LoopKernel, Node
from fusewire_kernels.ops.order import LANES

INDEPENDENT = "#pragma GCC ivdep"

_COLUMNS = 64  # FW_COLUMNS of the prelude
_LEVELS = 3  # levels of partial results: one for a chunk (FW_CHUNK elements), and two that combine chunks
_POSITION_BYTES = 8
_MOST_STACK_BYTES = 256 << 10  # the most that partial results may take; a thread's stack is a few MiB


def loop_text(kernel: LoopKernel) -> str:
    """Returns the C function of a loop kernel."""
    return loop_function(kernel, C.head_of(kernel.key))


def loop_function(kernel: LoopKernel, signature: str) -> str:
    """Returns the C function of a loop kernel under another signature with the same parameters."""
    body = analyse(kernel)
    lines = Lines()
    lines.add(*reduction_definitions([body]))
    with lines.block(signature):
        lines.add(*argument_lines(body))
        if not kernel.has_inner:
            _write_pointwise(lines, body)
        elif kernel.runs_along_columns:
            _Columns(lines, body).write()
        else:
            _Rows(lines, body).write()
    return lines.text()


def columns_at_once(body: AnalysedKernel) -> int:
    """Returns how many neighbouring outer points the columns schedule handles at once.

    The number is at most 64, and so small that the partial results of all points fit the stack.
    """
    reductions = [body.node(value) for phase in range(body.phases) for value in body.reductions(phase)]
    column_bytes = sum(_LEVELS * LANES * _partial_bytes(node) for node in reductions if node is not None)
    count = _COLUMNS
    while count > 1 and count * column_bytes > _MOST_STACK_BYTES:
        count //= 2
    return count


def _partial_bytes(node: Node) -> int:
    position_bytes = _POSITION_BYTES if is_positional(node) else 0
    return node.operand_dtype.accumulator.itemsize_bytes + position_bytes


def _loop(dim: int) -> str:
    return f"for (int64_t i{dim} = 0; i{dim} < n{dim}; i{dim}++)"


def _write_pointwise(lines: Lines, body: AnalysedKernel) -> None:
    if body.kernel.is_copy:
        lines.add(UNLESS_IN_PLACE)
    sections = sections_of(body)
    with ExitStack() as loops:
        for level in range(body.dims):
            _write_pointwise_values(lines, body, level)
            if level < body.dims - 1:
                loops.enter_context(lines.block(_loop(level)))
        if sections:
            _write_in_blocks(lines, body, sections)
            return
        if body.dims > 0:
            lines.add(INDEPENDENT)
            loops.enter_context(lines.block(_loop(body.dims - 1)))
        _write_pointwise_values(lines, body, body.dims)
        lines.add(*(body.storing(output) for output in range(len(body.stored))))


def _write_pointwise_values(lines: Lines, body: AnalysedKernel, level: int) -> None:
    lines.add(*(body.declaration(value) for value in body.all_needed if body.levels[value] == level))


def _write_in_blocks(lines: Lines, body: AnalysedKernel, sections: Sections) -> None:
    """Writes the innermost dimension as a loop over blocks of points. Each section is a loop inside it."""
    extent = f"n{body.dims - 1}"
    lines.add(*(f"{element_type} c{array}[FW_POINTS];" for array, element_type in enumerate(sections.arrays)))
    with lines.block(f"for (int64_t first = 0; first < {extent}; first += FW_POINTS)"):
        lines.add(f"const int64_t width = {extent} - first > FW_POINTS ? FW_POINTS : {extent} - first;")
        *others, last = sections.sections
        for section in others:
            _write_section(lines, body, section)
        _write_section(lines, body, last, stores=[body.storing(output) for output in range(len(body.stored))])


def _write_section(lines: Lines, body: AnalysedKernel, section: Section, stores: Iterable[str] = ()) -> None:
    lines.add(INDEPENDENT)
    with lines.block("for (int64_t point = 0; point < width; point++)"):
        lines.add(f"const int64_t i{body.dims - 1} = first + point;")
        for value, array in section.taken:
            lines.add(f"const {TYPES[body.dtype(value)].value} v{value} = c{array}[point];")
        lines.add(*(body.declaration(value) for value in section.made))
        lines.add(*(f"c{array}[point] = v{value};" for value, array in section.put))
        lines.add(*stores)


class _Rows:
    """The schedule whose innermost loop runs along the inner dimension."""

    def __init__(self, lines: Lines, body: AnalysedKernel) -> None:
        self._lines = lines
        self._body = body
        self._inner = body.kernel.rank

    def write(self) -> None:
        lines, body = self._lines, self._body
        with ExitStack() as loops:
            for level in range(body.kernel.rank + 1):
                if level > 0:
                    loops.enter_context(lines.block(_loop(level - 1)))
                self._write_outer_values(level, stage=0)
            for phase in range(body.phases):
                self._write_phase(phase)
                self._write_outer_values(body.kernel.rank, stage=phase + 1)
            self._write_inner_stores()
            self._write_outer_stores()

    def _write_outer_values(self, level: int, stage: int) -> None:
        body = self._body
        for value in body.all_needed:
            is_here = body.levels[value] == level and body.stages[value] == stage
            if is_here and not body.is_inner(value) and not body.is_reduction(value):
                self._lines.add(body.declaration(value))

    def _write_phase(self, phase: int) -> None:
        lines, extent = self._lines, f"n{self._inner}"
        reductions = [_Reduction(self._body, value, "1") for value in self._body.reductions(phase)]
        for reduction in reductions:
            lines.add(*reduction.declarations())
        with lines.block("for (int64_t begin = 0, chunk = 0;; begin += FW_CHUNK, chunk++)"):
            lines.add(f"const int64_t end = {extent} - begin > FW_CHUNK ? begin + FW_CHUNK : {extent};")
            lines.add(*(reduction.opening() for reduction in reductions))
            lines.add("int64_t base = begin;")
            with lines.block("for (; base + FW_LANES <= end; base += FW_LANES)"):
                self._write_lanes(reductions, "FW_LANES")
            self._write_lanes(reductions, "end - base")
            for reduction in reductions:
                lines.add(*reduction.closing(extent))
            lines.add(f"if (end == {extent}) break;")
        for reduction in reductions:
            lines.add(reduction.ending(extent), reduction.result("0"))

    def _write_lanes(self, reductions: list[_Reduction], count: str) -> None:
        lines, position = self._lines, f"i{self._inner}"
        lines.add(INDEPENDENT)
        with lines.block(f"for (int64_t lane = 0; lane < {count}; lane++)"):
            lines.add(f"const int64_t {position} = base + lane;")
            lines.add(*self._body.inner_declarations(reduction.operand for reduction in reductions))
            lines.add(*(reduction.taking("lane", position) for reduction in reductions))

    def _write_inner_stores(self) -> None:
        body = self._body
        outputs = body.inner_stores
        if not outputs:
            return
        self._lines.add(INDEPENDENT)
        with self._lines.block(_loop(self._inner)):
            self._lines.add(*body.inner_declarations(body.stored[output] for output in outputs))
            self._lines.add(*(body.storing(output) for output in outputs))

    def _write_outer_stores(self) -> None:
        self._lines.add(*map(self._body.storing, self._body.outer_stores))


class _Columns:
    """The schedule whose innermost loop runs over a block of the last outer dimension.

    A column is one outer point of the block. If a value has one element for each column, the loop that computes the
    value writes it to an array. Later loops read the value from this array.
    """

    def __init__(self, lines: Lines, body: AnalysedKernel) -> None:
        self._lines = lines
        self._body = body
        self._column = body.kernel.rank - 1
        self._inner = body.kernel.rank
        narrower = _COLUMNS // columns_at_once(body)
        self._width = "FW_COLUMNS" if narrower == 1 else f"(FW_COLUMNS / {narrower})"

    def write(self) -> None:
        lines, body = self._lines, self._body
        with ExitStack() as loops:
            for level in range(body.kernel.rank):
                if level > 0:
                    loops.enter_context(lines.block(_loop(level - 1)))
                values = [value for value in body.all_needed if body.levels[value] == level]
                lines.add(*(body.declaration(value) for value in values))
            extent, most = f"n{self._column}", self._width
            loops.enter_context(lines.block(f"for (int64_t first = 0; first < {extent}; first += {most})"))
            lines.add(f"const int64_t width = {extent} - first > {most} ? {most} : {extent} - first;")
            self._write_block()

    def _write_block(self) -> None:
        self._write_column_values(stage=0)
        for phase in range(self._body.phases):
            self._write_phase(phase)
            self._write_column_values(stage=phase + 1)
        self._write_inner_stores()
        self._write_outer_stores()

    def _is_column_value(self, value: int) -> bool:
        return self._body.levels[value] == self._body.kernel.rank

    def _write_column_values(self, stage: int) -> None:
        lines, body = self._lines, self._body
        values = [
            value
            for value in body.all_needed
            if self._is_column_value(value) and body.stages[value] == stage and not body.is_reduction(value)
        ]
        if not values:
            return
        lines.add(*(f"{TYPES[body.dtype(value)].value} c{value}[{self._width}];" for value in values))
        with self._columns():
            self._write_values_at_hand(values, made_here=set(values))
            for value in values:
                lines.add(body.declaration(value), f"c{value}[column] = v{value};")

    def _columns(self) -> ExitStack:
        stack = ExitStack()
        self._lines.add(INDEPENDENT)
        stack.enter_context(self._lines.block("for (int64_t column = 0; column < width; column++)"))
        self._lines.add(f"const int64_t i{self._column} = first + column;")
        return stack

    def _write_values_at_hand(self, values: Iterable[int], made_here: set[int]) -> None:
        """Writes statements that read from arrays the column values that `values` need and that `made_here` lacks."""
        body = self._body
        used = {value for value in values if value not in made_here}
        for value in values:
            node = body.node(value)
            if value in made_here and node is not None:
                used.update(node.operands)
        for value in sorted(used - made_here):
            if self._is_column_value(value):
                self._lines.add(self._from_array(value))

    def _from_array(self, value: int) -> str:
        body = self._body
        if body.is_reduction(value):
            return _Reduction(body, value, self._width).result("column")
        return f"const {TYPES[body.dtype(value)].value} v{value} = c{value}[column];"

    def _write_phase(self, phase: int) -> None:
        lines, extent, position = self._lines, f"n{self._inner}", f"i{self._inner}"
        reductions = [_Reduction(self._body, value, self._width) for value in self._body.reductions(phase)]
        for reduction in reductions:
            lines.add(*reduction.declarations())
        with lines.block("for (int64_t begin = 0, chunk = 0;; begin += FW_CHUNK, chunk++)"):
            lines.add(f"const int64_t end = {extent} - begin > FW_CHUNK ? begin + FW_CHUNK : {extent};")
            lines.add(*(reduction.opening() for reduction in reductions))
            with lines.block(f"for (int64_t {position} = begin; {position} < end; {position}++)"):
                lines.add(f"const int64_t lane = ({position} - begin) % FW_LANES * {self._width};")
                with self._columns():
                    self._write_inner_values([reduction.operand for reduction in reductions])
                    lines.add(*(reduction.taking("lane + column", position) for reduction in reductions))
            for reduction in reductions:
                lines.add(*reduction.closing(extent))
            lines.add(f"if (end == {extent}) break;")
        lines.add(*(reduction.ending(extent) for reduction in reductions))

    def _write_inner_values(self, targets: list[int]) -> None:
        body = self._body
        values = body.needed(targets, is_at_hand=lambda value: not body.is_inner(value))
        outer_targets = [target for target in targets if not body.is_inner(target)]
        self._write_values_at_hand(values + outer_targets, made_here=set(values))
        self._lines.add(*(body.declaration(value) for value in values))

    def _write_inner_stores(self) -> None:
        body = self._body
        outputs = body.inner_stores
        if not outputs:
            return
        with self._lines.block(_loop(self._inner)), self._columns():
            self._write_inner_values([body.stored[output] for output in outputs])
            self._lines.add(*(body.storing(output) for output in outputs))

    def _write_outer_stores(self) -> None:
        body = self._body
        outputs = body.outer_stores
        if not outputs:
            return
        with self._columns():
            self._write_values_at_hand([body.stored[output] for output in outputs], made_here=set())
            self._lines.add(*(body.storing(output) for output in outputs))


class _Reduction:
    """The C statements of one reduction.

    A reduction has `width` sets of 32 lanes, one set for each column. Two more levels of the same size combine the
    results of chunks.
    """

    def __init__(self, body: AnalysedKernel, value: int, width: str) -> None:
        node = body.node(value)
        assert node is not None
        self._node: Node = node
        self._value = value
        self._width = width
        self._name = reduction_name(node)
        (self.operand,) = node.operands

    def declarations(self) -> list[str]:
        return [line for level in ("", "u", "t") for line in self._declarations_of_level(f"{self._value}{level}")]

    def _declarations_of_level(self, suffix: str) -> list[str]:
        size = f"[FW_LANES * {self._width}]"
        values = f"{accumulator_type(self._node)} r{suffix}{size};"
        if not is_positional(self._node):
            return [values, f"const fw_lanes_{self._name} l{suffix} = {{r{suffix}}};"]
        positions = f"int64_t p{suffix}{size};"
        return [values, positions, f"const fw_lanes_{self._name} l{suffix} = {{r{suffix}, p{suffix}}};"]

    def opening(self) -> str:
        return f"fw_open_{self._name}(l{self._value}, {self._width});"

    def taking(self, lane: str, position: str) -> str:
        element = f"v{self.operand}, {position}" if is_positional(self._node) else f"v{self.operand}"
        return f"fw_take_{self._name}(l{self._value}, {lane}, {element});"

    def closing(self, extent: str) -> list[str]:
        return [
            f"fw_tree_{self._name}(l{self._value}, {self._width});",
            f"if ({extent} > FW_CHUNK) fw_fold_{self._name}({self._levels()}, chunk, {self._width});",
        ]

    def ending(self, extent: str) -> str:
        return f"if ({extent} > FW_CHUNK) fw_total_{self._name}({self._levels()}, {extent}, {self._width});"

    def result(self, place: str) -> str:
        text = result_of_reduction(self._node, f"r{self._value}[{place}]", f"p{self._value}[{place}]")
        return f"const {TYPES[self._node.dtype].value} v{self._value} = {text};"

    def _levels(self) -> str:
        return f"l{self._value}, l{self._value}u, l{self._value}t"
