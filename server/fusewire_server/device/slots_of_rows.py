"""Fills the slots of a submission's rows: those of many iterations by operations on arrays.

A submission may have thousands of iterations. Most submissions have one, whose slots are plain integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from fusewire_kernels.devices.base import Device, LoadedPlan
from fusewire_kernels.plan.loop_table import LoopTable
from fusewire_kernels.plan.slots import Integers, SlotLayout
from fusewire_protos.frames import Scalar, Steps
from fusewire_server.sessions.iterations import Iterations
from fusewire_server.sessions.session import Row

Spans = Mapping[Row, range]  # the iterations of each row that run

_FAR = 1 << 62  # integers up to here are added as int64
_MOST_TAIL = 16  # the last iterations whose results a persistent kernel may store without slots for all iterations


class _Entries(NamedTuple):
    """The iterations of a row of which a table has slots, one behind the other.

    They are as many as `iterations`, from `start` on; behind the last one, `stop - 1`, this one again. If `iterations`
    is 0, they are the first one and the last `tail`; where a row has fewer, the first one again.
    """

    start: int
    stop: int
    iterations: int
    tail: int = 0

    @property
    def size(self) -> int:
        return self.iterations or 1 + self.tail

    def numbers(self) -> Integers:
        """Returns the number of each of these iterations."""
        if self.iterations:
            return np.minimum(np.arange(self.iterations) + self.start, self.stop - 1)
        last = np.arange(self.stop - self.tail, self.stop)
        return np.concatenate(([self.start], np.maximum(last, self.start)))


def full_table(device: Device, loaded: LoadedPlan, rows: Sequence[Row], spans: Spans) -> Integers:
    """Returns the slots of all iterations, int64[iterations][rows][columns]. The first row has the most iterations.

    A row that has ended keeps the slots of its last iteration. The table is valid until the next one of the plan.
    """
    iterations = len(spans[rows[0]])
    if iterations > 1:
        return _filled(device, loaded, rows, [_Entries(spans[row].start, spans[row].stop, iterations) for row in rows])
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
        entries = [_Entries(spans[row].start, spans[row].stop, 0, tail) for row in rows]
        return LoopTable(_filled(device, loaded, rows, entries), counts, 1, tail, frozenset(), frozenset())
    slots = full_table(device, loaded, rows, spans)
    moving = np.flatnonzero((slots != slots[:1]).any(axis=(0, 1)))
    return LoopTable(slots, counts, counts[0], tail, _longer_rings(rows, tail), frozenset(moving.tolist()))


def _has_steps(row: Row) -> bool:
    """Returns whether an input, a scalar or a slice start of a row changes from iteration to iteration."""
    iterations = row.iterations
    return iterations is not None and bool(iterations.stepped or iterations.scalars or iterations.starts)


def _longer_rings(rows: Sequence[Row], tail: int) -> frozenset[int]:
    """Returns the positions of the live results of which more than `tail` iterations are kept."""
    found = [enumerate(row.iterations.rings) for row in rows if row.iterations]
    return frozenset([position for rings in found for position, ring in rings if len(ring) > tail])


def _filled(device: Device, loaded: LoadedPlan, rows: Sequence[Row], entries: Sequence[_Entries]) -> Integers:
    """Returns the slots of some iterations of each row, as many of each."""
    layout, arena_bytes = loaded.slot_layout, loaded.plan.arena_bytes
    table = np.empty((entries[0].size, len(rows), layout.columns), np.int64)
    for position, row in enumerate(rows):
        arena_address = device.arena_address(arena_bytes, position)
        if row.iterations is None:
            _fill_one(table, position, layout, arena_address, row)
            table[1:, position] = table[0, position]
        else:
            _fill(table[:, position], layout, arena_address, row, row.iterations, entries[position])
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
    table: Integers, layout: SlotLayout, arena_address: int, row: Row, iterations: Iterations, entries: _Entries
) -> None:
    """Writes the slots of some iterations of a loop that has its memory. `table` is int64[entries][columns]."""
    lengths = tuple([len(ring) for ring in iterations.rings])
    stepped = tuple([(number, len(places)) for number, places in iterations.stepped.items()])
    layout.fill_iterations(
        table,
        arena_address,
        [value.block.address for values in (row.inputs, *iterations.rings) for value in values],  # type: ignore[union-attr]
        layout.places(
            (iterations.program, iterations.count, lengths, stepped, entries),
            lambda: _taken(iterations, len(row.inputs), entries.numbers()),
        ),
        _scalars(row.scalars, iterations, entries),
        _starts(row.starts, iterations, entries),
    )


def _taken(iterations: Iterations, inputs: int, numbers: Integers) -> tuple[Integers, Integers]:
    """Returns which of a row's addresses each input and each live result has in the iterations `numbers`.

    The addresses are those of all inputs, of which there are `inputs`, and then those of each ring's values.
    """
    begins = [*accumulate(map(len, iterations.rings), initial=inputs)]

    def of_result(position: int, numbers: Integers) -> Integers:
        in_ring: Integers = (iterations.count - 1 - numbers) % len(iterations.rings[position])
        return begins[position] + in_ring

    results = [of_result(position, numbers) for position in range(len(iterations.rings))]
    return _in_columns(_inputs(iterations, of_result, numbers), numbers), _in_columns(results, numbers)


def _in_columns(found: Sequence[Integers], numbers: Integers) -> Integers:
    return np.array(found, np.int64).reshape(len(found), len(numbers)).T


def _inputs(
    iterations: Iterations, of_result: Callable[[int, Integers], Integers], numbers: Integers
) -> list[Integers]:
    """Returns which of a row's addresses each input has in the iterations `numbers`, which ascend."""
    program = iterations.program
    found = [np.full(len(numbers), number) for number in range(len(program.inputs))]
    for number, places in iterations.stepped.items():
        found[number] = np.array(places)[numbers % len(places)]
    for number, (initial, source) in program.origins.items():
        position, before = iterations.position_of(source), numbers - len(initial)
        found[number] = _moved(iterations, source, before) if position is None else of_result(position, before)
        for place in range(int(np.searchsorted(numbers, len(initial)))):  # the first iterations take what is bound
            found[number][place] = initial[int(numbers[place])]
    return found


def _moved(iterations: Iterations, source: int, numbers: Integers) -> Integers:
    """Returns which address the input `source` has, which is not carried, in the iterations `numbers`."""
    places = iterations.stepped.get(source, (source,))
    moved: Integers = np.array(places)[numbers % len(places)]
    return moved


def _scalars(
    first: Sequence[Scalar], iterations: Iterations, entries: _Entries
) -> list[int | float | Sequence[int | float] | Integers]:
    scalars: list[int | float | Sequence[int | float] | Integers] = [*first]
    for number, steps in iterations.scalars.items():
        scalars[number] = _values(first[number], steps, entries.numbers())
    return scalars


def _values(first: Scalar, steps: Steps, numbers: Integers) -> list[int | float] | Integers:
    if isinstance(steps, tuple):
        return [steps[iteration % len(steps)] for iteration in numbers.tolist()]
    ends = (first, first + steps * int(numbers[-1]))
    if all(isinstance(end, int) and abs(end) < _FAR for end in ends):  # such as the counter of a loop
        counted: Integers = int(first) + int(steps) * numbers
        return counted
    return [first + steps * iteration for iteration in numbers.tolist()]


def _starts(first: Sequence[int], iterations: Iterations, entries: _Entries) -> list[int | Integers]:
    starts: list[int | Integers] = [*first]
    for number, steps in iterations.starts.items():
        numbers = entries.numbers()
        if isinstance(steps, tuple):
            starts[number] = np.array(steps)[numbers % len(steps)]
        else:
            starts[number] = first[number] + steps * numbers
    return starts
