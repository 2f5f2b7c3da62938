"""Through a real server: a loop that changes elements of what it carries gives the bits of its iterations one by one.

The array is changed in place where nothing else needs what it was before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.contract.service import Service
from tests.patience import HANGS_S

ROWS, WIDTH = 12, 5
COUNTS = (1, 2, 3, 11)
_WITHIN_S = HANGS_S

State = tuple[Any, Any]


def keeping(i: Any, state: State) -> State:
    h, kept = state
    h = fw.tanh(h * 1.1 + 0.1)
    kept[i] = h
    return h, kept


def from_the_back(i: Any, state: State) -> State:
    h, kept = state
    kept[ROWS - 1 - i] = h
    return h * 0.5 + kept[ROWS - 1 - i], kept


def from_the_row_before(i: Any, state: State) -> State:
    h, kept = state
    kept[i + 1] = kept[i] * 0.5 + h
    return h, kept


def read_as_a_whole_before(i: Any, state: State) -> State:
    h, kept = state
    h = h + kept.sum(axis=0) * 0.1
    kept[i] = h
    return h, kept


def read_as_a_whole_after(i: Any, state: State) -> State:
    h, kept = state
    before = kept * 1.0
    kept[i] = h
    return h + (kept - before).max(axis=0), kept


def the_old_one_read_after_the_change(i: Any, state: State) -> State:
    h, kept = state
    changed = kept.copy()
    changed[i] = h
    return h * 0.9 + fw.tanh(kept[i]) + changed[i] * 0.1, changed


def changed_twice(i: Any, state: State) -> State:
    h, kept = state
    kept[i] = h
    kept[:, 1:3] = kept[0, 0] * 0.3
    return h + kept[i], kept


def of_a_diagonal(i: Any, state: State) -> State:
    h, kept = state
    fw.fill_diagonal(kept, h * 0.5)
    return h + kept.diagonal(1)[:1] + kept[i], kept


def carried_by_both(i: Any, state: State) -> State:
    a, b = state
    changed = a.copy()
    changed[i] = b[i] + 1.0
    return changed, changed


def exchanged(i: Any, state: State) -> State:
    a, b = state
    changed = a.copy()
    changed[i] = b[i + 1] * 0.5
    return b * 0.9, changed


OF_A_ROW = (
    *(keeping, from_the_back, from_the_row_before, read_as_a_whole_before, read_as_a_whole_after),
    *(the_old_one_read_after_the_change, changed_twice, of_a_diagonal),
)
OF_TWO = (carried_by_both, exchanged)


def start_of(session: fw.Session, body: Callable[..., State]) -> State:
    random = np.random.default_rng(3)
    shapes = ((ROWS, WIDTH) if body in OF_TWO else (WIDTH,), (ROWS, WIDTH))
    first, second = [session.array(random.standard_normal(shape).astype(np.float32)) for shape in shapes]
    return first, second


def bytes_of(state: State) -> list[bytes]:
    return [each.numpy(timeout=_WITHIN_S).tobytes() for each in state]


def one_by_one(body: Callable[..., State], state: State, count: int) -> list[bytes]:
    state = tuple([each * 1.0 for each in state])
    for i in range(count):
        state = body(i, state)
        bytes_of(state)
    return bytes_of(state)


@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("body", [*OF_A_ROW, *OF_TWO])
def test_a_loop_gives_the_bits_of_its_iterations_one_by_one(
    service: Service, hasty: Service, body: Callable[..., State], count: int
) -> None:
    for server in (service, hasty):
        with server.connect() as session:
            start = start_of(session, body)
            before, expected = bytes_of(start), one_by_one(body, start, count)
            for _ in range(3):  # op by op perhaps, then by its plan
                assert bytes_of(fw.fori_loop(count, body, start)) == expected
                server.wait_until_planned()
            assert bytes_of(start) == before


@pytest.mark.parametrize("every", [1, 3, 100])
@pytest.mark.parametrize("body", [keeping, from_the_row_before, changed_twice])
def test_arrays_of_earlier_iterations_that_are_held_keep_their_bits(
    hasty: Service, body: Callable[..., State], every: int
) -> None:
    with hasty.connect() as session:
        start = start_of(session, body)
        expected = [one_by_one(body, start, count + 1) for count in range(0, 11, every)]
        for _ in range(2):
            state, held = (start[0] * 1.0, start[1] * 1.0), []
            for i in range(11):
                state = body(i, (state[0], state[1].copy()))
                if i % every == 0:
                    held.append(state)
            assert [*map(bytes_of, held)] == expected
            hasty.wait_until_planned()
