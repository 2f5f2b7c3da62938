"""The ratio of paired measurements, and how certain it is."""

from __future__ import annotations

import pytest

from loadtests.measuring.pairs import paired_ratio


def test_a_ratio_that_all_pairs_have_is_certain() -> None:
    assert paired_ratio([1.0, 2.0, 4.0], [1.5, 3.0, 6.0]) == (1.5, 1.5, 1.5)


def test_what_changes_both_of_a_pair_does_not_change_the_ratio() -> None:
    quiet = paired_ratio([10.0, 10.0, 10.0, 10.0], [11.0, 11.0, 11.0, 11.0])
    assert paired_ratio([10.0, 5.0, 1.0, 10.0], [11.0, 5.5, 1.1, 11.0]) == pytest.approx(quiet)


def test_the_interval_holds_the_ratio_and_widens_with_the_noise() -> None:
    first = [1.0] * 20
    calm, wild = (paired_ratio(first, [1 + share * (turn % 5 - 2) for turn in range(20)]) for share in (0.01, 0.1))
    assert calm.low < calm.ratio < calm.high
    assert wild.high - wild.low > 5 * (calm.high - calm.low)
