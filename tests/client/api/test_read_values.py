"""Which values are kept for `repr`."""

from __future__ import annotations

import numpy as np

from fusewire._api.read_values import MOST_ELEMENTS, ReadValues

MOST_VALUES = 256


def test_a_large_value_is_not_kept() -> None:
    values = ReadValues()
    values.keep(1, np.zeros(MOST_ELEMENTS))
    values.keep(2, np.zeros(MOST_ELEMENTS + 1))
    assert values.get(1) is not None
    assert values.get(2) is None


def test_a_kept_value_is_a_copy() -> None:
    values, given = ReadValues(), np.zeros(3)
    values.keep(1, given)
    given[...] = 1
    kept = values.get(1)
    assert kept is not None
    assert kept.tolist() == [0, 0, 0]


def test_the_value_that_was_read_longest_ago_is_dropped_first() -> None:
    values = ReadValues()
    for handle in range(MOST_VALUES):
        values.keep(handle, np.zeros(()))
    values.keep(0, np.zeros(()))
    values.keep(MOST_VALUES, np.zeros(()))
    assert [handle for handle in range(MOST_VALUES + 1) if values.get(handle) is None] == [1]
