"""Finding the loop in a list of recorded ops: how long its body is, and where one body ends and the next begins."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from fusewire._signature import signature_of
from fusewire._tape import FIRST_HANDLE, Integers, Record, flatten, places_of_signatures

LEAST_COVERAGE = 64  # so that a few equal layers are not taken for the loop they stand in
CANDIDATES = 256
# Places, counted from the last item, that repeat whatever the period is: all are below half the least coverage.
_PROBES = (1, 2, 3, 5, 8, 13, 21, 31)


class Period(NamedTuple):
    """The last `coverage` items of a list repeat every `length`, at least twice."""

    length: int
    coverage: int


def find_period(items: Integers, longest: int) -> Period | None:
    """The period of at most `longest` that explains the longest tail of `items`; of equally good ones the shortest."""
    if len(items) < LEAST_COVERAGE:
        return None
    best = Period(0, 0)
    for length in _lengths_worth_a_try(items):
        if length > longest or best.coverage == len(items):
            break
        if length <= best.coverage - best.length:
            continue  # what repeats so often besides repeats every multiple of `best.length`, and nothing else
        found = Period(length, _coverage(items, length))
        if found.coverage >= max(2 * length, LEAST_COVERAGE) and found.coverage > best.coverage:
            best = found
    return best if best.length else None


def choose_rotation(records: Sequence[Record], first: int) -> int:
    """Where the body of a loop begins, counted from the first of `records`, which are two bodies of it.

    `first` is the number of the first record. The choice depends on the loop alone, not on where in it the records
    begin: fewest values that cross, then a product to begin with, then an order among signatures.
    """
    length = len(records) // 2
    flat = flatten(records)
    crossing = _values_crossing(flat, first, length)
    candidates = np.flatnonzero(crossing == crossing.min())
    ranks = _ranks(flat[places_of_signatures(flat)])
    ranked = ranks.astype(">u4").tobytes()  # bytes are compared as their numbers are
    return min(candidates.tolist(), key=lambda offset: ranked[4 * offset : 4 * (offset + length)])


def ops_in_loops(body: Integers, longest: int) -> int:
    """How many ops of `body` belong to loops within it whose bodies are of at most `longest` ops."""
    is_in_loop = np.zeros(len(body), bool)
    for end in range(LEAST_COVERAGE, len(body) + 1, LEAST_COVERAGE // 2):
        found = find_period(body[:end], longest)
        if found is not None:
            is_in_loop[end - found.coverage : end] = True
    return int(np.count_nonzero(is_in_loop))


def _lengths_worth_a_try(items: Integers) -> Iterator[int]:
    """Ascending: distances from the last item to earlier ones with the same items before them."""
    last = len(items) - 1
    places = np.flatnonzero(items[_PROBES[-1] : last] == items[last]) + _PROBES[-1]
    for probe in _PROBES:
        places = places[items[places - probe] == items[last - probe]]
    distances = last - places[::-1][:CANDIDATES]
    yield from distances[2 * distances <= len(items)].tolist()


def _coverage(items: Integers, length: int) -> int:
    differs = (items[length:] != items[:-length])[::-1]
    same = int(differs.argmax())
    return length + same if differs[same] else len(items)


def _ranks(signatures: Integers) -> Integers:
    """For each of `signatures` its rank in the order that is the same in every process."""
    distinct, places = np.unique(signatures, return_inverse=True)
    canonical = [signature_of(number).canonical for number in distinct.tolist()]
    rank = np.empty(len(distinct), np.int64)
    rank[sorted(range(len(distinct)), key=canonical.__getitem__)] = np.arange(len(distinct))
    return rank[places]


def _values_crossing(flat: Integers, first: int, length: int) -> Integers:
    """For each place in the body, how many values made before it in the loop are used behind it."""
    reaches = _longest_reaches(flat, first, length)
    sources = np.flatnonzero(reaches)
    begins = np.bincount(sources + 1, minlength=3 * length)
    ends = np.bincount(sources + reaches[sources] + 1, minlength=3 * length)
    crossing: Integers = np.cumsum(begins - ends).reshape(3, length).sum(axis=0)
    return crossing


def _longest_reaches(flat: Integers, first: int, length: int) -> Integers:
    """How many ops later each place's value is last used, as seen in the second body; 0 if it is not."""
    is_signature = np.zeros(len(flat), bool)
    is_signature[places_of_signatures(flat)] = True
    user = np.cumsum(is_signature) - 1
    source = flat - first
    is_use = (user >= length) & (flat >= FIRST_HANDLE) & (source >= 0) & (source < user)
    reaches = np.zeros(length, np.int64)
    np.maximum.at(reaches, source[is_use] % length, (user - source)[is_use])
    return reaches
