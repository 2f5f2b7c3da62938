"""Finds how the scalars and slice starts of a loop change from iteration to iteration. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from fusewire_protos.frames import Scalar, Steps, shortest_period

_DIFFERENCES = 1 << 63  # a difference that does not fit 64 bits cannot be sent


def steps_of(values: Sequence[Scalar], in_iteration: int) -> tuple[tuple[int, Steps], ...]:
    """Returns the positions whose values change, each with its steps. An iteration has `in_iteration` values.

    The values at one position all have the same type. Floats have no difference, because adding it again and again
    would round otherwise than the loop does.
    """
    found: list[tuple[int, Steps]] = []
    for position in range(in_iteration):
        column = values[position::in_iteration]
        if not _is_constant(column):
            found.append((position, _steps(column)))
    return tuple(found)


def _is_constant(column: Sequence[Scalar]) -> bool:
    first = column[0]
    if first == 0 and type(first) is float:  # 0.0 equals −0.0
        return len(shortest_period(column)) == 1
    return column.count(first) == len(column)


def _steps(column: Sequence[Scalar]) -> Steps:
    first, second = column[:2]
    if type(first) is int:
        difference = int(second) - first
        is_sent = -_DIFFERENCES <= difference < _DIFFERENCES
        if is_sent and all(value == first + difference * iteration for iteration, value in enumerate(column)):
            return difference
    return shortest_period(column)
