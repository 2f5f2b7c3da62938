"""Fills the slot table of a loop's iterations by operations on arrays, because a submission may have a thousand."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from fusewire_kernels.plan.slots import SlotLayout
from fusewire_protos.frames import Scalar, Steps
from fusewire_server.sessions.iterations import Iterations
from fusewire_server.sessions.session import Row, Value

Integers = npt.NDArray[np.int64]


def fill_iterations(table: Integers, slot_layout: SlotLayout, arena_address: int, row: Row, span: range) -> None:
    """Writes the slots of the iterations `span` of a row, which has its memory. `table` is int64[iterations][columns].

    A row that is no loop has one iteration.
    """
    iterations, inputs = row.iterations, [_address(value) for value in row.inputs]
    if iterations is None:
        outputs = [_address(value) for value in row.outputs]
        slot_layout.fill_iterations(table, arena_address, inputs, outputs, row.scalars, row.starts)
        return
    numbers = np.arange(span.start, span.stop)
    rings = [np.array([_address(value) for value in ring]) for ring in iterations.rings]
    slot_layout.fill_iterations(
        table,
        arena_address,
        [_inputs(iterations, rings, inputs, number, numbers) for number in range(len(row.entry.program.inputs))],
        [_results(iterations, ring, numbers) for ring in rings],
        _scalars(row.scalars, iterations, span),
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


def _scalars(first: Sequence[Scalar], iterations: Iterations, span: range) -> list[int | float | Sequence[int | float]]:
    scalars: list[int | float | Sequence[int | float]] = [*first]
    for number, steps in iterations.scalars.items():
        scalars[number] = _values(first[number], steps, span)
    return scalars


def _values(first: Scalar, steps: Steps, span: range) -> list[int | float]:
    if isinstance(steps, tuple):
        return [steps[iteration % len(steps)] for iteration in span]
    return [first + steps * iteration for iteration in span]


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
