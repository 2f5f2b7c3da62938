"""Fills the slots of a submission's rows: those of many iterations by operations on arrays.

A submission may have thousands of iterations. Most submissions have one, whose slots are plain integers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import accumulate
from math import lcm

import numpy as np

from fusewire_kernels.devices.base import Device, LoadedPlan
from fusewire_kernels.plan.loop_table import LoopTable
from fusewire_kernels.plan.slots import Integers, LoopAddresses, LoopPlaces, SlotLayout, Taken
from fusewire_protos.frames import Scalar, Steps
from fusewire_server.sessions.iterations import Iterations
from fusewire_server.sessions.session import Row

Spans = Mapping[Row, range]  # the iterations of each row that run

_FAR = 1 << 62  # integers up to here are added as int64
_MOST_PERIOD = 64  # iterations, after which the places of a loop that are kept repeat
_MOST_TAIL = 16  # the last iterations whose results a persistent kernel may store without slots for all iterations


def full_table(device: Device, loaded: LoadedPlan, rows: Sequence[Row], spans: Spans) -> Integers:
    """Returns the slots of all iterations, int64[iterations][rows][columns]. The first row has the most iterations.

    A row that has ended keeps the slots of its last iteration. The table is valid until the next one of the plan.
    """
    iterations = len(spans[rows[0]])
    if iterations > 1:
        each = np.arange(iterations)
        return _filled(device, loaded, rows, [np.minimum(each + spans[row].start, spans[row].stop - 1) for row in rows])
    layout, arena_bytes = loaded.slot_layout, loaded.plan.arena_bytes
    table = layout.kept_table(len(rows))
    for position, row in enumerate(rows):
        _fill_one(table, position, layout, device.arena_address(arena_bytes, position), row.at(spans[row].start))
    return table


def loop_table(device: Device, loaded: LoadedPlan, rows: Sequence[Row], spans: Spans) -> LoopTable:
    """Returns the slots for a persistent kernel: of few iterations if nothing moves but what is carried."""
    rings = [len(ring) for row in rows if row.iterations for ring in row.iterations.rings]
    tail = max([length for length in rings if length <= _MOST_TAIL], default=1)
    counts = [len(spans[row]) for row in rows]
    if max(rings, default=1) <= tail and not any(map(_has_steps, rows)):
        slots = _filled(device, loaded, rows, [_first_and_last(spans[row], tail) for row in rows])
        return LoopTable(slots, counts, 1, tail, frozenset(), frozenset())
    slots = full_table(device, loaded, rows, spans)
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


def _longer_rings(rows: Sequence[Row], tail: int) -> frozenset[int]:
    """Returns the positions of the live results of which more than `tail` iterations are kept."""
    found = [enumerate(row.iterations.rings) for row in rows if row.iterations]
    return frozenset([position for rings in found for position, ring in rings if len(ring) > tail])


def _filled(device: Device, loaded: LoadedPlan, rows: Sequence[Row], numbers: Sequence[Integers]) -> Integers:
    """Returns the slots of some iterations of each row, as many of each. `numbers` are those of each row's."""
    layout, arena_bytes = loaded.slot_layout, loaded.plan.arena_bytes
    table = np.empty((len(numbers[0]), len(rows), layout.columns), np.int64)
    for position, row in enumerate(rows):
        arena_address = device.arena_address(arena_bytes, position)
        if row.iterations is None:
            _fill_one(table, position, layout, arena_address, row)
            table[1:, position] = table[0, position]
        else:
            _fill(table[:, position], layout, arena_address, row, row.iterations, numbers[position])
    return table


def _fill_one(table: Integers, position: int, layout: SlotLayout, arena_address: int, row: Row) -> None:
    """Writes the slots of a row that is no loop and has its memory. `table` is int64[iterations][rows][columns]."""
    layout.fill(
        table,
        position,
        arena_address,
        [value.block.address for value in row.inputs],  # type: ignore[union-attr]  # a row gets its memory first
        [value.block.address for value in row.outputs],  # type: ignore[union-attr]
        row.scalars,
        row.starts,
    )


def _fill(
    table: Integers, layout: SlotLayout, arena_address: int, row: Row, iterations: Iterations, numbers: Integers
) -> None:
    """Writes the slots of the iterations `numbers` of a loop that has its memory. `table`: int64[numbers][columns]."""
    addresses = [value.block.address for values in (row.inputs, *iterations.rings) for value in values]  # type: ignore[union-attr]
    places, turns = _places(layout, iterations, len(row.inputs), iterations.count - 1 - numbers)
    stepped = _stepped(iterations, numbers) if iterations.stepped else ()
    layout.fill_iterations(
        table,
        arena_address,
        LoopAddresses(addresses, places, stepped),
        numbers,
        turns,
        _scalars(row.scalars, iterations, numbers),
        _starts(row.starts, iterations, numbers),
    )


def _places(layout: SlotLayout, iterations: Iterations, inputs: int, ages: Integers) -> tuple[LoopPlaces, Integers]:
    """Returns where the slots of some iterations come from, and which turn each has. `ages`: how many follow each.

    The addresses are those of all inputs, and then those of each ring. Counted from the end, each ring is written in
    turns, so all of them together after `period` iterations again. Clients choose the lengths of rings: where their
    period is long, only what is asked for is computed.
    """
    lengths = tuple([len(ring) for ring in iterations.rings])
    period = min(lcm(*lengths), iterations.count)
    if period > _MOST_PERIOD:
        return layout.loop_places(None, lambda: _taken(iterations, inputs, lengths, ages)), np.arange(len(ages))
    key = (iterations.program, inputs, lengths, period)
    places = layout.loop_places(key, lambda: _taken(iterations, inputs, lengths, np.arange(period)))
    return places, ages % period


def _taken(iterations: Iterations, inputs: int, lengths: Sequence[int], ages: Integers) -> Taken:
    """Returns which of a row's addresses each input and each live result has in the iterations of these ages."""
    begins, origins = [*accumulate(lengths, initial=inputs)], iterations.program.origins
    of_inputs = np.tile(np.arange(len(iterations.program.inputs)), (len(ages), 1))
    for number, (initial, source) in origins.items():
        position = iterations.position_of(source)
        if position is None:
            of_inputs[:, number] = source
        else:
            of_inputs[:, number] = begins[position] + (ages + len(initial)) % lengths[position]
    outputs = [begins[position] + ages % length for position, length in enumerate(lengths)]
    firsts: list[dict[int, int]] = [{} for _ in range(max([len(each.initial) for each in origins.values()], default=0))]
    for number, (initial, _) in origins.items():
        for iteration, first in enumerate(initial):
            firsts[iteration][number] = first
    return Taken(of_inputs, np.array(outputs, np.int64).reshape(len(lengths), len(ages)).T, firsts)


def _stepped(iterations: Iterations, numbers: Integers) -> list[tuple[int, Integers]]:
    """Returns which of a row's addresses an input has that is stepped, or carried from one that is."""
    stepped = iterations.stepped
    found = [(number, np.array(places)[numbers % len(places)]) for number, places in stepped.items()]
    for number, (initial, source) in iterations.program.origins.items():
        places = stepped.get(source)
        if places is not None:
            found.append((number, np.array(places)[(numbers - len(initial)) % len(places)]))
    return found


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
