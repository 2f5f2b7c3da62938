"""Fills the slots of a submission's rows: those of many iterations by operations on arrays.

A submission may have thousands of iterations. Most submissions have one, whose slots are plain integers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from fusewire_kernels.devices.base import Device, LoadedPlan
from fusewire_kernels.plan.loop_table import LoopTable
from fusewire_kernels.plan.slots import Integers, SlotLayout
from fusewire_protos.frames import Scalar, Steps
from fusewire_server.sessions.iterations import Iterations
from fusewire_server.sessions.session import Row, Value

Spans = Mapping[Row, range]  # the iterations of each row that run

_FAR = 1 << 62  # integers up to here are added as int64
_MOST_TAIL = 16  # the last iterations whose results a persistent kernel may store without slots for all iterations


def full_table(device: Device, loaded: LoadedPlan, rows: Sequence[Row], spans: Spans) -> Integers:
    """Returns the slots of all iterations, int64[iterations][rows][columns]. The first row has the most iterations.

    A row that has ended keeps the slots of its last iteration. The table is valid until the next one of the plan.
    """
    iterations = len(spans[rows[0]])
    if iterations > 1:
        return _filled(
            device, loaded, rows, spans, lambda span: np.minimum(np.arange(iterations) + span.start, span.stop - 1)
        )
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
        slots = _filled(device, loaded, rows, spans, lambda span: _first_and_last(span, tail))
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


def _filled(
    device: Device, loaded: LoadedPlan, rows: Sequence[Row], spans: Spans, numbers_of: Callable[[range], Integers]
) -> Integers:
    """Returns the slots of some iterations of each row, as many of each. `numbers_of` returns those of a span."""
    numbers = [numbers_of(spans[row]) for row in rows]
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
    results = _Results(iterations)
    layout.fill_iterations(
        table,
        arena_address,
        _inputs(iterations, results, [_address(value) for value in row.inputs], numbers),
        [*results.at(numbers)],
        _scalars(row.scalars, iterations, numbers),
        _starts(row.starts, iterations, numbers),
    )


class _Results:
    """The addresses of a loop's live results. Rings of one length are looked up together: a loop may have hundreds."""

    def __init__(self, iterations: Iterations) -> None:
        by_length: dict[int, list[int]] = {}
        for position, ring in enumerate(iterations.rings):
            by_length.setdefault(len(ring), []).append(position)
        self._count, self._live = iterations.count, len(iterations.rings)
        self._rings = [
            (positions, np.array([[_address(value) for value in iterations.rings[each]] for each in positions]))
            for positions in by_length.values()
        ]

    def at(self, numbers: Integers) -> Integers:
        """Returns the addresses in the iterations `numbers`, int64[live][numbers]."""
        found = np.empty((self._live, len(numbers)), np.int64)
        for positions, addresses in self._rings:
            found[positions] = addresses[:, (self._count - 1 - numbers) % addresses.shape[1]]
        return found


def _inputs(
    iterations: Iterations, results: _Results, inputs: Sequence[int], numbers: Integers
) -> list[int | Integers]:
    """Returns the address of each input in the iterations `numbers`. `inputs` are the addresses of the row's inputs."""
    program = iterations.program
    found: list[int | Integers] = [*inputs[: len(program.inputs)]]
    for number, places in iterations.stepped.items():
        found[number] = np.array(inputs)[np.array(places)[numbers % len(places)]]
    by_lag: dict[int, list[tuple[int, int, Sequence[int]]]] = {}
    for number, (initial, source) in program.origins.items():
        position = iterations.position_of(source)
        if position is None:
            found[number] = _moved(iterations, inputs, source, numbers, initial)
        else:
            by_lag.setdefault(len(initial), []).append((number, position, initial))
    for lag, carried in by_lag.items():
        addresses = results.at(numbers - lag)[[position for _, position, _ in carried]]
        for place in range(int(np.searchsorted(numbers, lag))):  # the first iterations take what is bound
            iteration = int(numbers[place])
            addresses[:, place] = [inputs[initial[iteration]] for _, _, initial in carried]
        for (number, _, _), of_input in zip(carried, addresses, strict=True):
            found[number] = of_input
    return found


def _moved(
    iterations: Iterations, inputs: Sequence[int], source: int, numbers: Integers, initial: Sequence[int]
) -> Integers:
    """Returns the address of an input that is carried from another input, `source`, which is not carried."""
    places = iterations.stepped.get(source, (source,))
    found: Integers = np.array(inputs)[np.array(places)[(numbers - len(initial)) % len(places)]]
    for place in range(int(np.searchsorted(numbers, len(initial)))):
        found[place] = inputs[initial[numbers[place]]]
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


def _address(value: Value) -> int:
    assert value.block is not None, "a submission has all its memory before it runs"
    return value.block.address
