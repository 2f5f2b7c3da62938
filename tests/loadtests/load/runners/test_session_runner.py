"""The thread of one session, by a clock of the test's own."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from itertools import cycle
from typing import Any

import numpy as np
import pytest

from loadtests.load.runners.clock import Clock
from loadtests.load.runners.pace import Pace
from loadtests.load.runners.reads import Reads
from loadtests.load.runners.session_runner import SessionRunner
from loadtests.load.windows.samples import Samples
from loadtests.scenarios import library
from loadtests.scenarios.scenario import Steps

_MS = 1_000_000
_VALUE = np.zeros(3, np.float32)


class _VirtualTime:
    """Time that passes only when something sleeps or is served."""

    def __init__(self) -> None:
        self.now_ns = 0

    def clock(self) -> Clock:
        return Clock(lambda: self.now_ns, self._sleep_until)

    def serve(self, service_ns: Iterator[int]) -> Callable[[Any], Any]:
        """A server that takes these times, one after another."""

        def read(value: Any) -> Any:
            self.now_ns += next(service_ns)
            return value

        return read

    def _sleep_until(self, time_ns: int, _stops: threading.Event) -> bool:
        self.now_ns = max(self.now_ns, time_ns)
        return True


def _always(value: Any) -> Steps:
    while True:
        yield value


def _run(service_ns: Sequence[int], rate_per_s: float | None, steps: int) -> Samples:
    """The steps of a session on a server with these service times, again and again."""
    time = _VirtualTime()
    xp = library.numpy()._replace(read=time.serve(cycle(service_ns)))
    runner = SessionRunner(xp, _always(_VALUE), Pace(rate_per_s, 0, 1), reads=None, clock=time.clock())
    runner.run_steps(0, steps)
    return runner.take()


def test_an_open_loop_reproduces_the_percentiles_of_a_server_that_keeps_up() -> None:
    service_ns = [1 * _MS] * 90 + [2 * _MS] * 9 + [9 * _MS]
    latency_ns = np.random.default_rng(0).permutation(service_ns)
    measured = _run(latency_ns.tolist(), rate_per_s=100, steps=10_000).latency_ns
    assert [np.percentile(measured, percent, method="inverted_cdf") for percent in (50, 90, 99, 99.9)] == [
        *(1 * _MS, 1 * _MS, 2 * _MS, 9 * _MS)
    ]


def test_a_stall_counts_for_every_step_of_an_open_loop_that_should_have_begun() -> None:
    measured = _run([300 * _MS, *[1 * _MS] * 999], rate_per_s=100, steps=1000).latency_ns
    # The stall takes the time of 30 steps. The backlog is worked off at 1 ms a step instead of 10 ms.
    assert (measured >= 100 * _MS).sum() == 23
    assert measured.max() == 300 * _MS


def test_a_slow_server_is_no_lag_of_the_load_test() -> None:
    samples = _run([300 * _MS, *[1 * _MS] * 99], rate_per_s=100, steps=100)
    assert not samples.lag_ns.any()
    assert (samples.due_ns - samples.intended_ns).max() == 290 * _MS


def test_a_late_begin_is_lag_of_every_step_that_it_delays() -> None:
    time = _VirtualTime()
    late_ns = iter([50 * _MS])

    def sleep_until(time_ns: int, _stops: threading.Event) -> bool:
        time.now_ns = max(time.now_ns, time_ns) + next(late_ns, 0)
        return True

    xp = library.numpy()._replace(read=time.serve(cycle([1 * _MS])))
    runner = SessionRunner(
        xp, _always(_VALUE), Pace(100, 0, 1), reads=None, clock=Clock(lambda: time.now_ns, sleep_until)
    )
    runner.run_steps(0, 10)
    lag_ms = (runner.take().lag_ns / _MS).round().tolist()
    assert lag_ms == [0, 50, 41, 32, 23, 14, 5, 0, 0, 0]


def test_a_stall_is_one_step_of_a_closed_loop() -> None:
    measured = _run([300 * _MS, *[1 * _MS] * 999], rate_per_s=None, steps=1000).latency_ns
    assert (measured >= 100 * _MS).sum() == 1


def test_recording_and_waiting_are_told_apart() -> None:
    samples = _run([5 * _MS], rate_per_s=None, steps=3)
    assert (samples.recorded_ns - samples.began_ns).tolist() == [0, 0, 0]
    assert (samples.ended_ns - samples.recorded_ns).tolist() == [5 * _MS] * 3


def test_the_value_that_was_read_goes_back_into_the_program() -> None:
    seen: list[Any] = []

    def program() -> Steps:
        while True:
            seen.append((yield _VALUE))

    runner = SessionRunner(library.numpy(), program(), Pace(None, 0, 1), reads=None)
    runner.first_step()
    runner.run_steps(0, 2)
    assert [value is not None for value in seen] == [True, True]


def test_a_step_without_a_value_reads_nothing() -> None:
    runner = SessionRunner(library.numpy(), _always(None), Pace(None, 0, 1), reads=Reads(1 << 20))
    runner.run_steps(0, 3)
    assert runner.report().reads == (None, None, None)


def test_an_error_of_a_step_is_the_sessions_error() -> None:
    def failing() -> Steps:
        yield _VALUE
        raise ValueError("the planted fault")

    runner = SessionRunner(library.numpy(), failing(), Pace(None, 4, 8), reads=None)
    runner.first_step()
    runner.start(0)
    runner.wait_for_end(10)
    assert runner.report().error == "step 2: ValueError: the planted fault"


def test_a_wake_up_that_is_lost_is_the_sessions_error() -> None:
    woken = threading.Event()

    def read(value: Any) -> Any:
        woken.wait(60)
        return value

    runner = SessionRunner(library.numpy()._replace(read=read), _always(_VALUE), Pace(None, 0, 1), reads=None)
    runner.start(0)
    runner.stop()
    runner.wait_for_end(0.01)
    woken.set()
    assert runner.report().error == "step 1, reading float32 of shape (3,): it did not end in time"


@pytest.mark.parametrize("steps", [0, 5])
def test_steps_are_taken_once(steps: int) -> None:
    runner = SessionRunner(library.numpy(), _always(_VALUE), Pace(None, 2, 3), reads=None)
    runner.run_steps(0, steps)
    assert (len(runner.take()), len(runner.take())) == (steps, 0)
