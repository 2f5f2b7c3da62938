"""Fills the slots of a loop's iterations by operations on arrays, because a submission may have thousands."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire_kernels.plan.loop_table import LoopTable
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_protos.frames import Scalar, Steps
from fusewire_server.sessions.iterations import Iterations
from fusewire_server.sessions.session import Row, Value

Integers = npt.NDArray[np.int64]

_FAR = 1 << 62  # integers up to here are added as int64
_MOST_TAIL = 16  # the last iterations whose results a persistent kernel may store without slots for all iterations


class LoopRow(NamedTuple):
    """A row of a submission: the iterations of it that run, and the address of its arena."""

    row: Row
    span: range
    arena_address: int


def full_table(slot_layout: SlotLayout, rows: Sequence[LoopRow]) -> Integers:
    """Returns the slots of all iterations, int64[iterations][rows][columns]. The first row has the most iterations.

    A row that has ended keeps the slots of its last iteration.
    """
    iterations = len(rows[0].span)
    return _filled(slot_layout, rows, lambda span: np.minimum(np.arange(iterations) + span.start, span.stop - 1))


def loop_table(slot_layout: SlotLayout, rows: Sequence[LoopRow]) -> LoopTable:
    """Returns the slots for a persistent kernel: of few iterations if nothing moves but what is carried."""
    rings = [len(ring) for each in rows if each.row.iterations for ring in each.row.iterations.rings]
    tail = max([length for length in rings if length <= _MOST_TAIL], default=1)
    counts = [len(each.span) for each in rows]
    if max(rings, default=1) <= tail and not any(_has_steps(each.row) for each in rows):
        slots = _filled(slot_layout, rows, lambda span: _first_and_last(span, tail))
        return LoopTable(slots, counts, 1, tail, frozenset(), frozenset())
    slots = full_table(slot_layout, rows)
    moving = np.flatnonzero((slots != slots[:1]).any(axis=(0, 1)))
    return LoopTable(slots, counts, counts[0], tail, _longer_rings(rows, tail), frozenset(moving.tolist()))


def _first_and_last(span: range, tail: int) -> Integers:
    """Returns the number of the first iteration and those of the last `tail`, which may be fewer."""
    last = np.arange(span.stop - tail, span.stop)
    return np.concatenate(([span.start], np.maximum(last, span.start)))


def _has_steps(row: Row) -> bool:
    """Returns whether an input, a scalar or a slice start of a row changes from iteration to iteration."""
    iterations = row.iterations
    return iterations is not None and bool(iterations.stepped or iterations.scalars or iterations.starts)


def _longer_rings(rows: Sequence[LoopRow], tail: int) -> frozenset[int]:
    """Returns the positions of the live results of which more than `tail` iterations are kept."""
    found = [enumerate(each.row.iterations.rings) for each in rows if each.row.iterations]
    return frozenset([position for rings in found for position, ring in rings if len(ring) > tail])


def _filled(slot_layout: SlotLayout, rows: Sequence[LoopRow], numbers_of: Callable[[range], Integers]) -> Integers:
    """Returns the slots of some iterations of each row, as many of each. `numbers_of` returns those of a span."""
    numbers = [numbers_of(each.span) for each in rows]
    table = np.empty((len(numbers[0]), len(rows), slot_layout.columns), np.int64)
    for position, (row, _, arena_address) in enumerate(rows):
        _fill(table[:, position], slot_layout, arena_address, row, numbers[position])
    return table


def _fill(table: Integers, slot_layout: SlotLayout, arena_address: int, row: Row, numbers: Integers) -> None:
    """Writes the slots of the iterations `numbers` of a row, which has its memory. `table` is int64[numbers][columns].

    A row that is no loop has one iteration.
    """
    iterations, inputs = row.iterations, [_address(value) for value in row.inputs]
    if iterations is None:
        outputs = [_address(value) for value in row.outputs]
        slot_layout.fill_iterations(table, arena_address, inputs, outputs, row.scalars, row.starts)
        return
    rings = [np.array([_address(value) for value in ring]) for ring in iterations.rings]
    slot_layout.fill_iterations(
        table,
        arena_address,
        [_inputs(iterations, rings, inputs, number, numbers) for number in range(len(row.entry.program.inputs))],
        [_results(iterations, ring, numbers) for ring in rings],
        _scalars(row.scalars, iterations, numbers),
        _starts(row.starts, iterations, numbers),
    )


def _results(iterations: Iterations, ring: Integers, numbers: Integers) -> Integers:
    """Returns the address of a result in the iterations `numbers`."""
    found: Integers = ring[(iterations.count - 1 - numbers) % len(ring)]
    return found


def _inputs(
    iterations: Iterations, rings: Sequence[Integers], inputs: Sequence[int], number: int, numbers: Integers
) -> int | Integers:
    """Returns the address of an input in the iterations `numbers`. `inputs` are the addresses of the row's inputs."""
    origin = iterations.program.origins.get(number)
    if origin is None:
        stepped = iterations.stepped.get(number)
        return inputs[number] if stepped is None else np.array(inputs)[np.array(stepped)[numbers % len(stepped)]]
    initial, source = origin
    position = iterations.position_of(source)
    earlier = numbers - len(initial)
    carried = np.empty(len(numbers), np.int64)
    carried[:] = (
        _inputs(iterations, rings, inputs, source, earlier)
        if position is None
        else _results(iterations, rings[position], earlier)
    )
    for place in np.flatnonzero(earlier < 0).tolist():
        carried[place] = inputs[initial[numbers[place]]]
    return carried


def _scalars(
    first: Sequence[Scalar], iterations: Iterations, numbers: Integers
) -> list[int | float | Sequence[int | float] | Integers]:
    scalars: list[int | float | Sequence[int | float] | Integers] = [*first]
    for number, steps in iterations.scalars.items():
        scalars[number] = _values(first[number], steps, numbers)
    return scalars


def _values(first: Scalar, steps: Steps, numbers: Integers) -> list[int | float] | Integers:
    if isinstance(steps, tuple):
        return [steps[iteration % len(steps)] for iteration in numbers.tolist()]
    ends = (first, first + steps * int(numbers[-1]))
    if all(isinstance(end, int) and abs(end) < _FAR for end in ends):  # such as the counter of a loop
        counted: Integers = int(first) + int(steps) * numbers
        return counted
    return [first + steps * iteration for iteration in numbers.tolist()]


def _starts(first: Sequence[int], iterations: Iterations, numbers: Integers) -> list[int | Integers]:
    starts: list[int | Integers] = [*first]
    for number, steps in iterations.starts.items():
        if isinstance(steps, tuple):
            starts[number] = np.array(steps)[numbers % len(steps)]
        else:
            starts[number] = first[number] + steps * numbers
    return starts


def _address(value: Value) -> int:
    assert value.block is not None, "a submission has all its memory before it runs"
    return value.block.address
