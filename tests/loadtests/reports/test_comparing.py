"""Comparing two results."""

from __future__ import annotations

import pytest

from loadtests.reports.comparing import compare, table
from tests.loadtests.reports.documents import document


def test_the_same_load_twice_does_not_differ() -> None:
    noisy = [9, 10, 11, 12, 8]
    assert not any(ratio.differs for ratio in compare(document(noisy), document(noisy)))


def test_a_load_that_is_half_as_fast_differs_in_rate_and_latency() -> None:
    ratios = {ratio.field: ratio for ratio in compare(document([9, 11]), document([18, 22]))}
    assert ratios["steps_per_s"].ratio == pytest.approx(0.5, rel=0.05)
    assert ratios["p50_s"].ratio == pytest.approx(2, rel=0.25)
    assert all(ratio.differs and ratio.low <= ratio.ratio <= ratio.high for ratio in ratios.values())


def test_a_result_without_a_measured_interval_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="steps_per_s was not measured on both sides"):
        compare(document(), {**document(), "timeline": []})


def test_the_rate_of_a_load_with_few_steps_is_compared() -> None:
    rate = compare(document([250]), document([500]))[0]
    assert (rate.field, rate.first, rate.second, rate.ratio) == ("steps_per_s", 8, 4, 0.5)
    assert 0 < rate.low < rate.ratio < rate.high


@pytest.mark.parametrize("side", [0, 1])
def test_a_rate_of_0_is_not_compared(side: int) -> None:
    sides = [document(), document()]
    sides[side]["timeline"] = [{**interval, "steps": 0} for interval in sides[side]["timeline"]]
    with pytest.raises(ValueError, match="steps_per_s is 0 on one side"):
        compare(*sides)


def test_a_load_with_too_few_steps_is_not_compared() -> None:
    with pytest.raises(ValueError, match="steps_per_s: the first side has steps in too few intervals"):
        compare(document([3000]), document())


def test_the_table_says_whether_the_sides_differ() -> None:
    lines = table(compare(document([9, 11]), document([18, 22]))).splitlines()
    assert len(lines) == 5
    assert all(line.endswith("differs") for line in lines[1:])
