"""Numbers and lists of numbers whose hashes collide. Python does not salt these hashes, so a client can choose them."""

from __future__ import annotations

import random
from collections.abc import Iterator
from functools import cache
from itertools import count, islice

from fusewire_protos.frames import MAX_HANDLE

_WORD = 1 << 64
_HASH_MODULUS = (1 << 61) - 1  # of Python's hash of an integer
# Of Python's hash of a tuple, which is that of xxHash.
_PRIME_1, _PRIME_2, _PRIME_5 = 11400714785074694791, 14029467366897019727, 2870177450012600261
_ROTATED = 31
_UNROLLED = pow(_PRIME_2, -1, _WORD)
_FOLLOWED = 16  # probes after which the higher bits of a number have no more effect
_MOST_HIGH_BITS = 6


def pairs(number: int) -> list[tuple[int, int]]:
    """Pairs of integers that have one hash."""
    return [*islice(_pairs(), number)]


def _pairs() -> Iterator[tuple[int, int]]:
    """For each first integer there is at most one second integer that gives the hash which all pairs have."""
    for first in count(1):
        mixed = (_PRIME_5 + first * _PRIME_2) % _WORD
        mixed = ((mixed << _ROTATED | mixed >> 64 - _ROTATED) * _PRIME_1) % _WORD
        lane = -mixed * _UNROLLED % _WORD
        second = lane - _WORD if lane >> 63 else lane
        if -_HASH_MODULUS < second < _HASH_MODULUS and second != -1:
            yield first, second


@cache
def chain(number: int) -> list[int]:
    """Integers that fill places which a dictionary looks at one after another.

    A dictionary of so many keys has a power of two of places, and after place p looks at place 5 · p + 1.
    """
    mask, place, places = _mask(number), 1, []
    for _ in range(number):
        places.append(place)
        place = (5 * place + 1) & mask
    return places


@cache
def missing(number: int, wanted: int) -> list[int]:
    """Integers that a dictionary with the keys `chain(number)` does not hold, and looks for in many places."""
    mask, full, generator = _mask(number), frozenset(chain(number)), random.Random(1)
    found: list[int] = []
    while len(found) < wanted:
        candidate = generator.getrandbits(mask.bit_length() + _MOST_HIGH_BITS)
        if candidate not in full and all(place in full for place in islice(_places(candidate, mask), _FOLLOWED)):
            found.append(candidate)
    return found


def _places(key: int, mask: int) -> Iterator[int]:
    """The places where a dictionary looks for a key."""
    assert 0 <= key <= MAX_HANDLE
    place, left = key & mask, key
    while True:
        yield place
        left >>= 5
        place = (5 * place + left + 1) & mask


def _mask(number: int) -> int:
    """Of the places of a dictionary that has got so many keys: it grows when two thirds of its places are full."""
    places = 8
    while 2 * places // 3 < number:
        places *= 2
    return places - 1
