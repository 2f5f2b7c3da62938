"""Finds the loop in a list of recorded ops: the length of its body, and the op with which the body begins."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

import numpy as np

from fusewire._recording.integer_scans import places_of_signatures
from fusewire._recording.signature import signature_of
from fusewire._recording.tape import FIRST_HANDLE, Integers

LEAST_COVERAGE = 64  # ops that a loop covers at least; equal layers within a body repeat too, but cover fewer ops
MOST_TRIES = 256
# Distances from the last item. All distances are below half the least coverage, so the items at these distances repeat
# in every period. The farthest item is compared first, because equal layers within a body make near items equal at many
# lengths that are no period.
_PROBES = (31, 21, 13, 8, 5, 3, 2, 1)


class Period(NamedTuple):
    """The last `coverage` items of a list repeat after every `length` items, at least twice."""

    length: int
    coverage: int


def find_period(items: Integers, longest: int) -> Period | None:
    """Returns the period of at most `longest` items that covers the longest tail of `items`.

    If several periods cover equally long tails, returns the shortest of these periods. Tries MOST_TRIES lengths at
    most, so that a body of more items may be missed if most of its items are equal.
    """
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
            # By the theorem of Fine and Wilf, a period up to the length given here is a multiple of `best.length`.
            # Such a period covers no more than `best`, so it is skipped.
            place = bisect_right(lengths, best.coverage - best.length, lo=place)
    return best if best.length else None


def bodies_of_a_call(flat: Integers, first: int, length: int) -> int:
    """Returns how many bodies make a call of a network of equal layers, or 1 if the bodies are no such layers.

    Each layer is a body of `length` ops, which takes the result of the layer before and weights of its own. After some
    layers the next call begins: its first layer takes something from elsewhere, and the weights come again. `flat`
    holds the records of whole bodies; `first` is the number of the first op.
    """
    ops = len(places_of_signatures(flat))
    bodies = flat.reshape(ops // length, -1)
    is_outer = (bodies >= FIRST_HANDLE) & ((bodies < first - length) | (bodies >= first + ops))
    is_weight = is_outer.all(axis=0)
    begins = is_outer[:, is_outer.any(axis=0) & ~is_weight].any(axis=1)
    weights = bodies[:, is_weight]
    if not begins.any() or (weights == weights[0]).all():
        return 1
    cells = np.where(is_weight, bodies, is_outer)
    before = np.flatnonzero((cells[:-1] == cells[-1]).all(axis=1))[::-1].tolist()
    distances = [len(bodies) - 1 - body for body in before if len(bodies) - 1 - body <= len(bodies) // 2]
    return next((each for each in distances if (cells[each:] == cells[:-each]).all()), 1)


def choose_rotation(flat: Integers, first: int) -> int:
    """Chooses the op with which the loop's body shall begin. Returns the op's index in two bodies.

    `flat` holds the records of the two bodies, and `first` is the number of the first op. The choice depends only on
    the loop, and not on the op with which the records begin. It prefers ops before which the fewest values cross from
    earlier ops to later ops, then matrix products, then ops that come first in the canonical order of signatures.
    """
    places = places_of_signatures(flat)
    length = len(places) // 2
    second = flat[places[length] :]  # has all signatures of the loop, and the handles taken from the first body
    places = places[length:] - places[length]
    crossing = _values_crossing(second, places, first, length)
    ranks = _ranks(second[places])
    candidates = np.flatnonzero(crossing == crossing.min())  # in a chain of ops, all ops of the body
    firsts = ranks[candidates]
    beginnings: list[int] = candidates[firsts == firsts.min()].tolist()
    ranked = 2 * ranks.astype(">u4").tobytes()  # big-endian, so that bytes compare as the numbers do
    return min(beginnings, key=lambda offset: ranked[4 * offset : 4 * (offset + length)])


def ops_in_loops(body: Integers, longest: int) -> int:
    """Returns how many ops of `body` belong to inner loops whose bodies have at most `longest` ops."""
    is_in_loop = np.zeros(len(body), bool)
    for end in range(LEAST_COVERAGE, len(body) + 1, LEAST_COVERAGE // 2):
        found = find_period(body[:end], longest)
        if found is not None:
            is_in_loop[end - found.coverage : end] = True
    return int(np.count_nonzero(is_in_loop))


def _lengths_worth_a_try(items: Integers, longest: int) -> list[int]:
    """Returns possible periods, ascending.

    They are the distances from the last item to equal items before which the items at `_PROBES` are equal too.
    """
    last = len(items) - 1
    first = max(last - min(longest, len(items) // 2), *_PROBES)
    places = np.flatnonzero(items[first:last] == items[last]) + first
    for probe in _PROBES:
        places = places[items[places - probe] == items[last - probe]]
    distances: list[int] = (last - places[::-1]).tolist()
    return distances


def _repeats(items: Integers, length: int, coverage: int) -> bool:
    """Returns whether the last `coverage` items repeat after `length`. Compares bytes, which stops at a difference."""
    tail = items[-coverage:]
    return tail[length:].tobytes() == tail[:-length].tobytes()


def _coverage(items: Integers, length: int) -> int:
    differs = (items[length:] != items[:-length])[::-1]
    same = int(differs.argmax())
    return length + same if differs[same] else len(items)


def _ranks(signatures: Integers) -> Integers:
    """Returns the rank of each of `signatures` in the canonical order, which is the same in every process."""
    ordered = sorted(set(signatures.tolist()), key=lambda number: signature_of(number).canonical)
    rank = np.empty(max(ordered) + 1, np.int64)
    rank[ordered] = np.arange(len(ordered))
    return rank[signatures]


def _values_crossing(second: Integers, places: Integers, first: int, length: int) -> Integers:
    """Returns for each op of the body how many values that are made before the op are used by this op or later ops.

    `second` holds the flattened records of the second of two bodies, and `places` the index at which each record
    begins. `first` is the number of the first op of the first body.
    """
    lifetimes = _lifetimes(second, places, first, length)
    sources = np.flatnonzero(lifetimes)
    begins = np.bincount(sources + 1, minlength=3 * length)
    ends = np.bincount(sources + lifetimes[sources] + 1, minlength=3 * length)
    crossing: Integers = np.cumsum(begins - ends).reshape(3, length).sum(axis=0)
    return crossing


def _lifetimes(second: Integers, places: Integers, first: int, length: int) -> Integers:
    """Returns for each value of the body how many ops lie from its own op to its last use in the second body, or 0."""
    is_signature = np.zeros(len(second), bool)
    is_signature[places] = True
    user = np.cumsum(is_signature) + (length - 1)
    source = second - first
    is_use = (source >= 0) & (source < user)  # signatures and values are smaller than any handle
    lifetimes = np.zeros(length, np.int64)
    np.maximum.at(lifetimes, source[is_use] % length, (user - source)[is_use])
    return lifetimes
