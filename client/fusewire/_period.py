"""Finding the loop in a list of recorded ops: how long its body is, and where one body ends and the next begins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fusewire._signature import signature_of
from fusewire._tape import FIRST_HANDLE, Record

LEAST_COVERAGE = 64  # so that a few equal layers are not taken for the loop they stand in
CANDIDATES = 256


class Period(NamedTuple):
    """The last `coverage` items of a list repeat every `length`, at least twice."""

    length: int
    coverage: int


def find_period(items: Sequence[int]) -> Period | None:
    """The period that explains the longest tail of `items`; of equally good ones the shortest."""
    best: Period | None = None
    for length in _distances_to_last(items):
        if 2 * length > len(items) or (best is not None and best.coverage == len(items)):
            break
        if items[-length:] != items[-2 * length : -length]:
            continue
        found = Period(length, _coverage(items, length))
        if found.coverage >= LEAST_COVERAGE and (best is None or found.coverage > best.coverage):
            best = found
    return best


def choose_rotation(records: Sequence[Record], first: int) -> int:
    """Where the body of a loop begins, counted from the first of `records`, which are two bodies of it.

    `first` is the number of the first record. The choice depends on the loop alone, not on where in it the records
    begin: fewest values that cross, then a product to begin with, then an order among signatures.
    """
    length = len(records) // 2
    crossing = _values_crossing(records, first)
    fewest = min(crossing)
    canonical = [signature_of(record[0]).canonical for record in records]
    candidates = [offset for offset in range(length) if crossing[offset] == fewest]
    return min(candidates, key=lambda offset: canonical[offset : offset + length])


def _distances_to_last(items: Sequence[int]) -> list[int]:
    last = len(items) - 1
    wanted = items[-1]
    distances: list[int] = []
    for index in range(last - 1, -1, -1):
        if items[index] == wanted:
            distances.append(last - index)
            if len(distances) == CANDIDATES:
                break
    return distances


def _coverage(items: Sequence[int], length: int) -> int:
    start = len(items) - 2 * length
    while start > 0 and items[start - 1] == items[start - 1 + length]:
        start -= 1
    return len(items) - start


def _values_crossing(records: Sequence[Record], first: int) -> list[int]:
    """For each place in the body, how many values made before it in the loop are used behind it."""
    length = len(records) // 2
    crossing = [0] * length
    for source, reach in _longest_reaches(records, first).items():
        for place in range(source + 1, source + reach + 1):
            crossing[place % length] += 1
    return crossing


def _longest_reaches(records: Sequence[Record], first: int) -> dict[int, int]:
    """How many ops later each place's value is last used, as seen in the second body."""
    length = len(records) // 2
    reaches: dict[int, int] = {}
    for index in range(length, 2 * length):
        for operand in records[index][1:]:
            source = operand - first
            if operand >= FIRST_HANDLE and 0 <= source < index:
                place = source % length
                reaches[place] = max(reaches.get(place, 0), index - source)
    return reaches
