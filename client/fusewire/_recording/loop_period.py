"""Finding the loop in a list of recorded ops: how long its body is, and where one body ends and the next begins."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from fusewire._recording.signature import signature_of
from fusewire._recording.tape import Integers, Record, flatten, places_of_signatures

LEAST_COVERAGE = 64  # so that a few equal layers are not taken for the loop they stand in
MOST_TRIES = 256
# Places, counted from the last item, that repeat whatever the period is: all are below half the least coverage.
# The farthest first, for near ones are alike in many loops, whose layers are.
_PROBES = (31, 21, 13, 8, 5, 3, 2, 1)


class Period(NamedTuple):
    """The last `coverage` items of a list repeat every `length`, at least twice."""

    length: int
    coverage: int


def find_period(items: Integers, longest: int) -> Period | None:
    """The period of at most `longest` that explains the longest tail of `items`; of equally good ones the shortest."""
    if len(items) < LEAST_COVERAGE:
        return None
    best, lengths, place = Period(0, 0), _lengths_worth_a_try(items, longest), 0
    for _ in range(MOST_TRIES):
        if place >= len(lengths) or best.coverage == len(items):
            break
        length = lengths[place]
        place += 1
        if _repeats(items, length, max(2 * length, LEAST_COVERAGE, best.coverage + 1)):
            best = Period(length, _coverage(items, length))
            # What repeats so often besides repeats every multiple of `best.length`, and nothing else.
            place = bisect_right(lengths, best.coverage - best.length, lo=place)
    return best if best.length else None


def choose_rotation(records: Sequence[Record], first: int) -> int:
    """Where the body of a loop begins, counted from the first of `records`, which are two bodies of it.

    `first` is the number of the first record. The choice depends on the loop alone, not on where in it the records
    begin: fewest values that cross, then a product to begin with, then an order among signatures.
    """
    length = len(records) // 2
    second = flatten(records[length:])  # it has all the signatures, and the values of the first body that it uses
    places = places_of_signatures(second)
    crossing = _values_crossing(second, places, first, length)
    ranks = _ranks(second[places])
    candidates = np.flatnonzero(crossing == crossing.min())  # in a mere chain all places
    firsts = ranks[candidates]
    beginnings: list[int] = candidates[firsts == firsts.min()].tolist()
    ranked = 2 * ranks.astype(">u4").tobytes()  # bytes are compared as their numbers are
    return min(beginnings, key=lambda offset: ranked[4 * offset : 4 * (offset + length)])


def ops_in_loops(body: Integers, longest: int) -> int:
    """How many ops of `body` belong to loops within it whose bodies are of at most `longest` ops."""
    is_in_loop = np.zeros(len(body), bool)
    for end in range(LEAST_COVERAGE, len(body) + 1, LEAST_COVERAGE // 2):
        found = find_period(body[:end], longest)
        if found is not None:
            is_in_loop[end - found.coverage : end] = True
    return int(np.count_nonzero(is_in_loop))


def _lengths_worth_a_try(items: Integers, longest: int) -> list[int]:
    """Ascending: distances from the last item to earlier ones with the same items before them."""
    last = len(items) - 1
    first = max(last - min(longest, len(items) // 2), *_PROBES)
    places = np.flatnonzero(items[first:last] == items[last]) + first
    for probe in _PROBES:
        places = places[items[places - probe] == items[last - probe]]
    distances: list[int] = (last - places[::-1]).tolist()
    return distances


def _repeats(items: Integers, length: int, coverage: int) -> bool:
    """Whether the last `coverage` items do so every `length`: compared as bytes, up to the first difference."""
    tail = items[-coverage:]
    return tail[length:].tobytes() == tail[:-length].tobytes()


def _coverage(items: Integers, length: int) -> int:
    differs = (items[length:] != items[:-length])[::-1]
    same = int(differs.argmax())
    return length + same if differs[same] else len(items)


def _ranks(signatures: Integers) -> Integers:
    """For each of `signatures` its rank in the order that is the same in every process."""
    ordered = sorted(set(signatures.tolist()), key=lambda number: signature_of(number).canonical)
    rank = np.empty(max(ordered) + 1, np.int64)
    rank[ordered] = np.arange(len(ordered))
    return rank[signatures]


def _values_crossing(second: Integers, places: Integers, first: int, length: int) -> Integers:
    """For each place in the body, how many values made before it in the loop are used behind it.

    `second` holds the records of the second of two bodies, which begin at `places`; `first` is that of the first.
    """
    reaches = _longest_reaches(second, places, first, length)
    sources = np.flatnonzero(reaches)
    begins = np.bincount(sources + 1, minlength=3 * length)
    ends = np.bincount(sources + reaches[sources] + 1, minlength=3 * length)
    crossing: Integers = np.cumsum(begins - ends).reshape(3, length).sum(axis=0)
    return crossing


def _longest_reaches(second: Integers, places: Integers, first: int, length: int) -> Integers:
    """How many ops later each place's value is last used, as seen in the second body; 0 if it is not."""
    is_signature = np.zeros(len(second), bool)
    is_signature[places] = True
    user = np.cumsum(is_signature) + (length - 1)
    source = second - first
    is_use = (source >= 0) & (source < user)  # neither a signature nor a value is as large as a handle
    reaches = np.zeros(length, np.int64)
    np.maximum.at(reaches, source[is_use] % length, (user - source)[is_use])
    return reaches
