"""Comparing two results."""

from __future__ import annotations

import pytest

from loadtests.reports.comparing import Comparison, Stalls, Verdict, compare, table
from loadtests.reports.document import Document
from tests.loadtests.reports.documents import document

_NOISY = [9, 10, 11, 12, 8]


def _verdicts(compared: Comparison) -> dict[str, Verdict]:
    return {ratio.field: ratio.verdict for ratio in compared.ratios}


def _stalled(fields: Document, intervals: int) -> Document:
    """The same load with a step of 0.3 s in so many measured intervals, too few to move the p99."""
    timeline = [dict(interval) for interval in fields["timeline"]]
    for interval in [each for each in timeline if each["is_measured"]][:intervals]:
        interval["max_s"] = 0.3
    return {**fields, "timeline": timeline}


def test_the_same_load_twice_is_not_worse() -> None:
    compared = compare(document(_NOISY), document(_NOISY))
    assert set(_verdicts(compared).values()) == {Verdict.SAME}
    assert not compared.is_worse


def test_a_load_that_is_half_as_fast_is_worse_and_the_other_way_round_better() -> None:
    worse, better = compare(document([9, 11]), document([18, 22])), compare(document([18, 22]), document([9, 11]))
    assert worse.ratios[0].ratio == pytest.approx(0.5, rel=0.05)
    assert _verdicts(worse)["steps_per_s"] is _verdicts(worse)["p50_s"] is Verdict.WORSE
    assert _verdicts(better)["steps_per_s"] is _verdicts(better)["p50_s"] is Verdict.BETTER
    assert (worse.is_worse, better.is_worse) == (True, False)


def test_the_p99_is_that_of_all_steps() -> None:
    slow_ends = compare(document([10] * 100), document([10] * 98 + [40] * 2))
    p99 = next(ratio for ratio in slow_ends.ratios if ratio.field == "p99_s")
    assert (p99.first, p99.second) == pytest.approx((0.01, 0.04), rel=1e-2)


def test_three_stalls_beside_none_are_found_and_two_are_not() -> None:
    verdicts = [compare(document(_NOISY), _stalled(document(_NOISY), stalls)).stalls.verdict for stalls in (2, 3)]
    assert verdicts == [Verdict.SAME, Verdict.WORSE]
    assert compare(document(_NOISY), _stalled(document(_NOISY), 3)).is_worse


def test_stalls_on_both_sides_are_no_difference() -> None:
    assert Stalls(0.1, first=8, first_of=30, second=9, second_of=30).verdict is Verdict.SAME
    assert Stalls(0.1, first=9, first_of=30, second=0, second_of=30).verdict is Verdict.BETTER


def test_what_failed_only_in_the_second_is_worse() -> None:
    failed = document(errors=(None, "SessionLost: gone"))
    assert compare(document(), failed).is_worse
    assert not compare(failed, failed).is_worse
    assert "failed in the second only: session 1: SessionLost: gone" in table(compare(document(), failed))


def test_a_result_without_a_measured_step_cannot_be_compared() -> None:
    with pytest.raises(ValueError, match="the second result has no measured step"):
        compare(document(), {**document(), "steps": 0})
    with pytest.raises(ValueError, match="the first result has no measured step"):
        compare({**document(), "timeline": []}, document())


def test_the_table_says_what_differs() -> None:
    lines = table(compare(document([9, 11]), {**document([18, 22]), "sessions": 8})).splitlines()
    assert lines[0] == "asked for differently: sessions: 2 and 8"
    assert lines[2].endswith("worse")
    assert lines[-1] == "the second is worse"
