"""A history keeps the last items, whatever pieces they came in."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from fusewire._recording.cutting.history import History
from fusewire._recording.tape import Integers

MOST = 8
pieces = st.lists(st.lists(st.integers(-5, 5), max_size=3 * MOST), max_size=40)


def _integers(items: list[int]) -> Integers:
    return np.array(items, np.int64)


@given(pieces)
def test_it_holds_the_last_items_of_all_that_followed(pieces: list[list[int]]) -> None:
    history, everything = History.empty(MOST), []
    for piece in pieces:
        history = history.followed_by(_integers(piece))
        everything += piece
        assert history.items.tolist() == everything[-MOST:]


@given(pieces)
def test_a_step_may_be_begun_again(pieces: list[list[int]]) -> None:
    history = History.empty(MOST)
    for piece in pieces:
        before = history.items.tolist()
        history.followed_by(_integers([9] * len(piece)))
        assert history.items.tolist() == before
        history = history.followed_by(_integers(piece))
        assert history.items.tolist() == (before + piece)[-MOST:]


def test_its_buffer_does_not_grow() -> None:
    history = History.empty(MOST)
    buffer_bytes = history.buffer.nbytes
    for _ in range(100):
        history = history.followed_by(_integers([1, 2, 3]))
        assert history.buffer.nbytes == buffer_bytes
