"""limits.array_bytes, as a client keeps it: at the line of the op whose result would be larger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing.memory_server import LIMITS
from fusewire_protos.v1 import fusewire_pb2 as wire
from tests.client.peer import connect

LIMIT_BYTES = 1 << 12
ROW, COLUMN = np.ones((1, 32)), np.ones((32, 1))  # their sum has 8 KiB


def limited(array_bytes: int) -> fw.Session:
    """A session whose server takes no larger array."""
    limits = wire.Limits()
    limits.CopyFrom(LIMITS)
    limits.array_bytes = array_bytes
    return connect(limits=limits).session


@pytest.fixture
def session() -> Iterator[fw.Session]:
    with limited(LIMIT_BYTES) as opened:
        yield opened


@pytest.mark.parametrize(
    "make",
    [
        lambda row, column: row + column,
        lambda row, column: column - row,
        lambda row, column: column @ row,
        lambda row, column: fw.where(row > 0, column, 1.0),
        lambda row, column: fw.broadcast_to(row, (32, 32)),
        lambda row, column: fw.concat([row] * 17),
        lambda row, column: fw.take(row, np.zeros((32, 32), np.uint8), axis=1),
        lambda row, column: row.astype("float16").reshape(32, 1) * np.ones((1, 32)),
        lambda row, column: ((row > 0) & (column > 0)).astype("float64"),
        lambda row, column: fw.full_like((row > 0) & (column > 0), 1, "int64"),
        lambda row, column: fw.zeros((32, 32)),
        lambda row, column: fw.eye(32),
        lambda row, column: fw.arange(1024),
    ],
)
def test_a_result_that_is_too_large_is_refused_where_it_is_asked_for(
    session: fw.Session, make: Callable[[fw.Array, fw.Array], Any]
) -> None:
    row, column = session.array(ROW), session.array(COLUMN)
    for _ in range(2):
        with pytest.raises(fw.QuotaExceeded, match=rf"has \d+ bytes; limits\.array_bytes = {LIMIT_BYTES}$"):
            make(row, column)


def test_the_error_names_the_op_and_what_it_was_given_and_nothing_else(session: fw.Session) -> None:
    row, column = session.array(ROW), session.array(COLUMN)
    with pytest.raises(fw.QuotaExceeded) as caught:
        row + column
    text = "add(float64[1, 32], float64[32, 1]): float64[32, 32] has 8192 bytes; limits.array_bytes = 4096"
    assert str(caught.value) == text
    assert caught.value.__suppress_context__


def test_what_does_not_depend_on_it_goes_on(session: fw.Session) -> None:
    row, column = session.array(ROW), session.array(COLUMN)
    sine = fw.sin(row)
    with pytest.raises(fw.QuotaExceeded):
        (row + column).sum()
    cosine = fw.cos(row)
    np.testing.assert_allclose(sine.numpy(), np.sin(ROW))
    np.testing.assert_allclose(cosine.numpy(), np.cos(ROW))


def test_a_result_as_large_as_may_be_is_taken(session: fw.Session) -> None:
    assert (session.array(ROW) + session.array(COLUMN[:16])).sum().item() == 1024


def test_what_one_session_may_record_another_of_a_smaller_limit_may_not() -> None:
    with limited(2 * LIMIT_BYTES) as wide, limited(LIMIT_BYTES) as narrow:
        for _ in range(2):
            assert (wide.array(ROW) + wide.array(COLUMN)).sum().item() == 2048
            with pytest.raises(fw.QuotaExceeded):
                narrow.array(ROW) + narrow.array(COLUMN)


def test_what_is_made_of_nothing_is_held_to_the_limit_of_its_own_session() -> None:
    with limited(2 * LIMIT_BYTES) as wide, limited(LIMIT_BYTES) as narrow:
        for _ in range(2):
            assert fw.zeros_like(wide.array(ROW), "float64").shape == ROW.shape
            assert fw.full_like(fw.broadcast_to(wide.array(ROW), (32, 32)), 1).shape == (32, 32)
            with pytest.raises(fw.QuotaExceeded, match=r"^full"):
                fw.full_like(narrow.array(np.ones((32, 32), bool)), 1, "float64")
