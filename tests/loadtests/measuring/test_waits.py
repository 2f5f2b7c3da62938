"""Steps weighed by how long they last: what standstills of every length come to."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace

import pytest

from loadtests.measuring.figure import Subject, Verdict, at_most
from loadtests.measuring.waits import Span, steps_within, waits_us
from loadtests.microbenchmarks.loops.planning import _steps_figure, _waits_figure

_MS = 1_000_000
_SPAN_MS = 700
_SPANS = 10
_LIMIT = at_most(1.5, Subject.RATIO)


def _steps(*lengths_ms: float) -> list[Span]:
    """One after another from the beginning of time."""
    steps, now_ns = [], 0
    for length_ms in lengths_ms:
        steps.append(Span(now_ns, now_ns + round(length_ms * _MS)))
        now_ns = steps[-1].ended_ns
    return steps


class _Stepper:
    """Two sorts of spans in turn, and the steps of a client that goes on through all of them.

    Steps take some 1.6 ms, and one in sixty up to 5. A standstill makes the one step in the middle of a span longer.
    """

    def __init__(self, rests_ms: Mapping[int, float], planning_ms: Mapping[int, float]) -> None:
        self._draw = random.Random(0)
        self._now_ns = 0
        self.steps: list[Span] = []
        self.rests: list[Span] = []
        self.planning: list[Span] = []
        for number in range(_SPANS):
            self.rests.append(self._go_on(rests_ms.get(number, 0)))
            self.planning.append(self._go_on(planning_ms.get(number, 0)))

    def _go_on(self, standstill_ms: float) -> Span:
        began_ns = self._now_ns
        while self._now_ns < began_ns + _SPAN_MS // 2 * _MS:
            self._step(0)
        self._step(standstill_ms)
        while self._now_ns < began_ns + _SPAN_MS * _MS:
            self._step(0)
        return Span(began_ns, self._now_ns)

    def _step(self, standstill_ms: float) -> None:
        usual_ms = self._draw.uniform(3, 5) if self._draw.random() < 1 / 60 else self._draw.uniform(1.4, 1.8)
        ended_ns = self._now_ns + round((usual_ms + standstill_ms) * _MS)
        self.steps.append(Span(self._now_ns, ended_ns))
        self._now_ns = ended_ns


def _verdict(*, rests_ms: Mapping[int, float], planning_ms: Mapping[int, float]) -> Verdict:
    stepper = _Stepper(rests_ms, planning_ms)
    figure = _waits_figure(stepper.steps, stepper.rests, stepper.planning, stepper.rests)
    return replace(figure, limit=_LIMIT).verdict


def _each(standstill_ms: float, spans: Sequence[int] = range(_SPANS)) -> dict[int, float]:
    return dict.fromkeys(spans, standstill_ms)


def test_a_step_weighs_as_much_as_it_lasts() -> None:
    steps = _steps(*[1] * 90, 10)
    assert waits_us(steps, [Span(0, 100 * _MS)], 90) == [1_000]
    assert waits_us(steps, [Span(0, 100 * _MS)], 91) == [10_000]


def test_a_step_that_reaches_beyond_the_span_weighs_as_much_as_lies_within_and_is_as_long_as_it_is() -> None:
    steps = _steps(20, *[1] * 20)
    assert waits_us(steps, [Span(15 * _MS, 25 * _MS)], 50) == [1_000]
    assert waits_us(steps, [Span(15 * _MS, 25 * _MS)], 51) == [20_000]


def test_one_step_that_lasts_throughout_a_span_is_all_that_there_is() -> None:
    assert waits_us(_steps(1, 500, 1), [Span(100 * _MS, 200 * _MS)], 50) == [500_000]


def test_steps_that_only_touch_a_span_are_not_within() -> None:
    before, within, _ = steps = _steps(1, 1, 1)
    assert steps_within(steps, Span(before.ended_ns, within.ended_ns)) == [within]


def test_a_span_without_a_step_has_no_wait() -> None:
    with pytest.raises(ValueError, match="no step"):
        waits_us(_steps(1, 1), [Span(5 * _MS, 6 * _MS)], 99)


def test_each_span_has_a_wait_of_its_own() -> None:
    steps = _steps(1, 2, 30)
    assert waits_us(steps, steps, 99) == [1_000, 2_000, 30_000]


def test_steps_that_are_the_same_meanwhile_are_ok() -> None:
    assert _verdict(rests_ms={}, planning_ms={}) is Verdict.OK


@pytest.mark.parametrize("standstill_ms", [15, 30, 100, 340, 600, 5_000])
def test_a_standstill_whenever_something_is_planned_is_seen(standstill_ms: float) -> None:
    assert _verdict(rests_ms={}, planning_ms=_each(standstill_ms)) is Verdict.MISSED


def test_a_standstill_in_most_of_the_spans_is_seen() -> None:
    assert _verdict(rests_ms={}, planning_ms=_each(30, range(6))) is Verdict.MISSED


@pytest.mark.parametrize("number", range(_SPANS))
def test_one_standstill_of_the_machine_while_something_is_planned_is_not(number: int) -> None:
    assert _verdict(rests_ms={}, planning_ms={number: 500}) is Verdict.OK


def test_one_standstill_of_the_machine_while_nothing_is_planned_hides_none_of_planning() -> None:
    assert _verdict(rests_ms={3: 500}, planning_ms=_each(15)) is Verdict.MISSED


def test_a_machine_that_stands_still_all_the_time_is_not_taken_for_planning() -> None:
    assert _verdict(rests_ms=_each(30), planning_ms=_each(30)) is Verdict.OK


def test_the_longest_step_is_told_though_it_changes_no_verdict() -> None:
    stepper = _Stepper({}, {4: 500})
    figure = _steps_figure(stepper.steps, stepper.rests, stepper.planning)
    longest_us = max(step.length_ns for step in stepper.steps) / 1e3
    assert longest_us > 500_000
    assert figure.notes[0].startswith(f"longest {longest_us:,.0f} µs, before ")
