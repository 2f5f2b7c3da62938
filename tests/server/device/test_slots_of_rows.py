"""The slots of a row's iterations are those that each iteration would have by itself."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.strategies import DataObject

from fusewire_kernels.devices.base import Block
from fusewire_kernels.devices.null import NullDevice, NullPlan
from fusewire_kernels.plan.plan import (
    ArenaColumn,
    Cost,
    InputColumn,
    OutputColumn,
    Plan,
    ScalarColumn,
    Term,
    ViewColumn,
)
from fusewire_protos.frames import FIRST_UPLOAD, HANDLES_PER_RECORDER, Segment, Steps
from fusewire_protos.ops import dtypes
from fusewire_protos.programs.program import Program, build
from fusewire_server.device.slots_of_rows import Spans, full_table, loop_table
from fusewire_server.sessions.entries.loop import iterations_of
from fusewire_server.sessions.session import Row, Value, ValueState
from tests.segments import loop_of
from tests.server.parts import SIZE_BYTES, VECTOR, entry_of, op, session

INPUTS, RESULTS, SCALARS, STARTS = 7, 3, 2, 2
OPS = RESULTS + SCALARS  # an op for each scalar, of which nobody takes the result
BASE, UPLOADS = HANDLES_PER_RECORDER, HANDLES_PER_RECORDER + FIRST_UPLOAD
WIDTH_BYTES = 16  # by which a start moves an address
ARENA_BYTES = 256
DEVICE = NullDevice()


def program_of(lags: Sequence[int], *, is_moved: bool, is_shared: bool) -> Program:
    """A body whose result r is carried over `lags[r]` iterations, or not at all if that is 0.

    If `is_moved`, the last input is carried from the one before it, which is not carried. If `is_shared`, another one
    is carried from the first result, which others may be carried from too.
    """
    carried: list[tuple[int, int]] = []
    inputs = count()
    for result, lag in enumerate(lags):
        chain = [next(inputs) for _ in range(lag)]
        sources = [*chain[1:], INPUTS + SCALARS + result]
        carried += zip(chain, sources[:lag] if lag else [], strict=True)
    if is_shared and next(inputs) < INPUTS - 2:
        carried.append((INPUTS - 3, INPUTS + SCALARS))
    if is_moved:
        carried.append((INPUTS - 1, INPUTS - 2))
    ops = [op("negative", result) for result in range(RESULTS)] + [
        op("multiply", 0, INPUTS + scalar) for scalar in range(SCALARS)
    ]
    return build([VECTOR] * INPUTS, [dtypes.float32, dtypes.int64], ops, tuple(range(RESULTS)), carried)


def planned() -> NullPlan:
    """A plan with columns of every kind, in an order of their own."""
    outputs = [OutputColumn(position) for position in reversed(range(RESULTS))]
    inputs = [InputColumn(number) for number in range(INPUTS)]
    scalars = [ScalarColumn(1, dtypes.int64), ScalarColumn(0, dtypes.float32)]
    first_input = 1 + len(outputs)
    views = [
        ViewColumn(first_input, 4, (Term(0, WIDTH_BYTES), Term(1, -WIDTH_BYTES))),
        ViewColumn(1, 0, (Term(1, WIDTH_BYTES),)),
        ViewColumn(0, 64, ()),
    ]
    plan = Plan((), (), (ArenaColumn(), *outputs, *inputs, *scalars, *views), ARENA_BYTES, (), Cost(0, 0))
    return DEVICE.load(plan, ())


PLAN = planned()
addresses = count(1 << 20, 256)


def with_memory(values: Sequence[Value]) -> list[Value]:
    for value in values:
        value.block = Block(next(addresses), SIZE_BYTES, None)
    return [*values]


def row_of(program: Program, loop: Segment | None) -> Row:
    """A row that has its memory."""
    handles = range(UPLOADS, UPLOADS + INPUTS) if loop is None else loop.all_inputs
    inputs = with_memory([Value(handle, VECTOR, ValueState.READY) for handle in handles])
    row = Row(session(), entry_of(program), BASE, inputs, [], (0.5, 7), (3, 5), 0)
    if loop is None:
        row.outputs = with_memory([Value(BASE + index, VECTOR, ValueState.ISSUED) for index in program.live])
    else:
        row.iterations = iterations_of(loop, row, 0)
        row.outputs = with_memory(row.iterations.outputs)
    return row


def steps(values: Any, iterations: int) -> st.SearchStrategy[tuple[Any, ...]]:
    """The values of a binding, which repeat."""
    return st.lists(values, min_size=1, max_size=min(iterations, 5)).map(tuple)


def stepped(choices: dict[int, st.SearchStrategy[Steps]]) -> st.SearchStrategy[tuple[tuple[int, Steps], ...]]:
    return st.fixed_dictionaries({}, optional=choices).map(lambda found: tuple(sorted(found.items())))


@st.composite
def loops(draw: st.DrawFn, program: Program) -> Segment:
    iterations = draw(st.integers(1, 40))
    kept = draw(st.tuples(*[st.integers(0, min(iterations, 20)) for _ in range(RESULTS)]))
    carried = dict(program.carried)
    whole = st.integers(-9, 9)
    uploads = st.integers(UPLOADS, UPLOADS + 20)
    free = [number for number in range(INPUTS) if number not in carried]
    inputs = draw(stepped({number: steps(uploads, iterations) for number in free}))
    first = [UPLOADS + number for number in range(INPUTS)]
    for number, handles in inputs:
        assert isinstance(handles, tuple)
        first[number] = handles[0]
    scalars = draw(stepped({0: steps(st.floats(-2, 2), iterations), 1: st.one_of(whole, steps(whole, iterations))}))
    starts = draw(stepped({number: st.one_of(whole, steps(whole, iterations)) for number in range(STARTS)}))
    return loop_of(Segment(0, BASE, tuple(first), (), (), ()), iterations, OPS, kept, inputs, scalars, starts)


lags = st.tuples(*[st.integers(0, 3)] * RESULTS).filter(lambda each: sum(each) <= INPUTS - 2)
programs = st.builds(program_of, lags, is_moved=st.booleans(), is_shared=st.booleans())


def slots_of(position: int, row: Row, iteration: int) -> list[int]:
    """The slots of one iteration of the row at a position, filled as those of a row that is no loop."""
    at, table = row.at(iteration), np.zeros(PLAN.slot_layout.columns, np.int64)
    inputs, outputs = ([address_of(value) for value in values] for values in (at.inputs, at.outputs))
    arena_address = DEVICE.arena_address(ARENA_BYTES, position)
    PLAN.slot_layout.fill(table, 0, arena_address, inputs, outputs, at.scalars, at.starts)
    filled: list[int] = table.tolist()
    return filled


def address_of(value: Value) -> int:
    assert value.block is not None
    return value.block.address


def drawn_spans(data: DataObject) -> Spans:
    """Rows of one program, some of which are loops, each with a part of its iterations; that with the most is first."""
    program = data.draw(programs)
    entries = data.draw(st.lists(st.one_of(st.none(), loops(program)), min_size=1, max_size=4))
    spans = {}
    for loop in entries:
        total = 1 if loop is None else loop.repetition.iterations
        begin = data.draw(st.integers(0, total - 1))
        spans[row_of(program, loop)] = range(begin, data.draw(st.integers(begin + 1, total)))
    return dict(sorted(spans.items(), key=lambda each: len(each[1]), reverse=True))


@given(st.data())
def test_the_slots_of_all_iterations_are_those_of_each_and_then_those_of_the_last(data: DataObject) -> None:
    spans = drawn_spans(data)
    table = full_table(DEVICE, PLAN, [*spans], spans)
    for position, (row, span) in enumerate(spans.items()):
        numbers = [*span, *[span[-1]] * (len(table) - len(span))]
        assert table[:, position].tolist() == [slots_of(position, row, number) for number in numbers]


@given(st.data())
def test_a_persistent_kernel_finds_the_slots_of_the_first_and_the_last_iterations(data: DataObject) -> None:
    spans = drawn_spans(data)
    table = loop_table(DEVICE, PLAN, [*spans], spans)
    assert list(table.counts) == [len(span) for span in spans.values()]
    for position, (row, span) in enumerate(spans.items()):
        for iteration in span:
            entry = _entry(span, iteration, table.first, table.tail, len(table.slots))
            if entry is not None:
                assert table.slots[entry, position].tolist() == slots_of(position, row, iteration)


@given(st.data())
def test_what_a_persistent_kernel_has_no_slots_for_does_not_move_and_need_not_be_stored(data: DataObject) -> None:
    spans = drawn_spans(data)
    table = loop_table(DEVICE, PLAN, [*spans], spans)
    for row in spans:
        iterations = row.iterations
        for position, ring in enumerate([] if iterations is None else iterations.rings):
            assert len(ring) <= table.tail or position in table.stored_in_all
    carried = {number for row in spans for number in row.entry.program.origins}
    inputs = [1 + RESULTS + number for number in range(INPUTS) if number not in carried]
    scalars = range(1 + RESULTS + INPUTS, 1 + RESULTS + INPUTS + SCALARS)
    for column in {*inputs, *scalars}.difference(table.moving):
        for row, span in spans.items():
            assert len({slots_of(0, row, iteration)[column] for iteration in span}) == 1


def _entry(span: range, iteration: int, first: int, tail: int, entries: int) -> int | None:
    """The entry of the table that holds an iteration, or None if none does."""
    number = iteration - span.start
    if number < first:
        return number
    back = span.stop - 1 - iteration
    return entries - 1 - back if back < tail else None


def test_the_slots_of_a_long_loop_take_no_more_memory_if_its_rings_come_together_late() -> None:
    program = program_of([0, 0, 0], is_moved=False, is_shared=False)
    first = tuple(range(UPLOADS, UPLOADS + INPUTS))
    row = row_of(program, loop_of(Segment(0, BASE, first, (), (), ()), 1 << 32, OPS, (401, 397, 389)))
    span = range((1 << 32) - 4, 1 << 32)
    table = full_table(DEVICE, PLAN, [row], {row: span})
    assert table[:, 0].tolist() == [slots_of(0, row, number) for number in span]


def test_a_loop_in_which_only_what_is_carried_moves_has_few_slots_however_long_it_runs() -> None:
    program = program_of([1, 2, 0], is_moved=False, is_shared=False)
    first = tuple(range(UPLOADS, UPLOADS + INPUTS))
    row = row_of(program, loop_of(Segment(0, BASE, first, (), (), ()), 1 << 20, OPS, (1, 0, 1)))
    table = loop_table(DEVICE, PLAN, [row], {row: range(1000, 9000)})
    assert (len(table.slots), table.first, table.tail, table.moving) == (4, 1, 3, frozenset())


@pytest.mark.parametrize(
    "moving",
    [
        {"inputs": ((6, (UPLOADS + 6, UPLOADS)),)},
        {"scalars": ((1, 1),)},
        {"starts": ((0, (0, 1)),)},
    ],
)
def test_a_loop_with_steps_has_the_slots_of_all_iterations(moving: dict[str, Any]) -> None:
    first = Segment(0, BASE, tuple(range(UPLOADS, UPLOADS + INPUTS)), (), (), ())
    row = row_of(program_of([1, 0, 0], is_moved=False, is_shared=False), loop_of(first, 50, OPS, (1, 0, 0), **moving))
    table = loop_table(DEVICE, PLAN, [row], {row: range(50)})
    assert (len(table.slots), table.first) == (50, 50)
    assert table.moving
