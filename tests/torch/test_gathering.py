"""Rows and elements at places that count from the front."""

from __future__ import annotations

import numpy as np
import pytest

from fusewire import Session
from fusewire_torch.gathering import along_last_axis, rows_at

TABLE = np.arange(12.0, dtype=np.float32).reshape(4, 3)


@pytest.mark.parametrize("places", [np.array([3, 0, 0]), np.array([[1, 2], [3, 3]], np.int32), np.zeros(0, np.int64)])
def test_rows_are_those_of_numpy(session: Session, places: np.ndarray) -> None:
    for _ in range(3):  # the second call is a known one
        assert np.array_equal(rows_at(session.array(TABLE), session.array(places)).numpy(), TABLE[places])


def test_elements_along_the_last_axis_are_those_of_numpy(session: Session) -> None:
    places = np.array([[2], [0], [1], [1]])
    for _ in range(3):
        found = along_last_axis(session.array(TABLE), session.array(places)).numpy()
        assert np.array_equal(found, np.take_along_axis(TABLE, places, -1))
