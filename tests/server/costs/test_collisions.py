"""Numbers whose hashes collide are found by Python as slowly as they are meant to be."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable

import pytest

from tests.server.costs import collisions

pytestmark = pytest.mark.skipif(sys.implementation.name != "cpython", reason="the hashes are those of CPython")

_MANY = 10_000


def test_pairs_differ_and_have_one_hash() -> None:
    pairs = collisions.pairs(100)
    assert len({*pairs}) == 100
    assert len({*map(hash, pairs)}) == 1


def test_numbers_of_a_chain_are_looked_for_in_many_places() -> None:
    """Each number alone has a place of its own. A number that is not there is looked for along the chain."""
    held = dict.fromkeys(collisions.chain(_MANY))
    missing, others = collisions.missing(_MANY, 20), range(10**9, 10**9 + 20)
    assert len(held) == _MANY
    assert not any(number in held for number in missing)
    assert _looking_ns(held, missing) > 10 * _looking_ns(held, others)


def _looking_ns(held: dict[int, None], numbers: Iterable[int]) -> int:
    """The least of the times that looking for all numbers takes."""
    return min(_timed_ns(held, numbers) for _ in range(20))


def _timed_ns(held: dict[int, None], numbers: Iterable[int]) -> int:
    began_ns = time.thread_time_ns()
    for number in numbers:
        held.get(number)
    return time.thread_time_ns() - began_ns
