"""Known bodies are found wherever they stand, and searched for only where they may."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire._recording.cutting import known_bodies as _bodies
from fusewire._recording.cutting.known_bodies import KnownBodies, place_of
from fusewire._recording.tape import Integers

MOST = 8
LARGE = 1 << 40  # so that openings wrap

bodies = st.lists(st.lists(st.sampled_from([1, 2, LARGE]), min_size=1, max_size=20), max_size=MOST)


def _integers(items: Sequence[int]) -> Integers:
    return np.array(items, np.int64)


def _known(*each: Sequence[int], most: int = MOST) -> KnownBodies:
    known = KnownBodies(most)
    for body in each:
        known.add(_integers(body))
    return known


def _found_in(known: KnownBodies, signatures: Sequence[int]) -> tuple[int, list[int]] | None:
    found = known.find_in(_integers(signatures))
    return None if found is None else (found.place, found.body.tolist())


def _stands_at(place: int, body: list[int], signatures: list[int]) -> bool:
    return signatures[place : place + len(body)] == body


@given(bodies, bodies, st.randoms(use_true_random=False))
def test_of_all_that_stand_somewhere_the_first_is_found_and_of_those_at_one_place_the_longest(
    known: list[list[int]], others: list[list[int]], random: Random
) -> None:
    parts = [*known[::2], *others]
    random.shuffle(parts)
    signatures = [item for part in parts for item in part]
    expected = min(
        (
            (place, -len(body), body)
            for body in known
            for place in range(len(signatures))
            if _stands_at(place, body, signatures)
        ),
        default=None,
    )
    found = _found_in(_known(*known), signatures)
    assert found == (None if expected is None else (expected[0], expected[2]))


def test_a_body_stands_nowhere_between_two_items() -> None:
    assert _found_in(_known([1 << 8]), [1 << 16, 1 << 16]) is None
    assert _found_in(_known([1 << 8] * 9), [1 << 16] * 10) is None


def test_the_last_that_were_added_are_known() -> None:
    known = _known([1], [2], [3], [1], [4], most=2)
    assert [_found_in(known, [item]) for item in range(1, 5)] == [(0, [1]), None, None, (0, [4])]


def test_a_body_that_was_dropped_is_not_found() -> None:
    known = _known([1], [2])
    known.drop(_integers([1]))
    known.drop(_integers([3]))
    assert _found_in(known, [1, 2]) == (1, [2])


def test_a_body_is_searched_for_only_where_its_opening_stands(monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[bytes] = []

    def search(body: bytes, signatures: bytes) -> int | None:
        searched.append(body)
        return place_of(body, signatures)

    monkeypatch.setattr(_bodies, "place_of", search)
    known = _known(range(100), range(100, 200), range(200, 300))
    assert _found_in(known, [*range(50, 100), *range(100, 150)]) is None
    assert searched == [_integers(range(100, 200)).tobytes()]
