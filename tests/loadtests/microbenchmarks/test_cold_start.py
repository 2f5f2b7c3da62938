"""What the figures of never-seen loops say, without a server."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, repeat
from typing import Any, Self

import pytest

from loadtests.measuring.errors import NotWarm
from loadtests.measuring.figure import Figure
from loadtests.measuring.steady import Steady
from loadtests.microbenchmarks import cold_start
from loadtests.microbenchmarks.cold_start import COLD_START, _First, _Seen
from loadtests.peers.libraries import LIBRARIES
from loadtests.workloads.loops import Floats, Loop, result_in_numpy


class _Called:
    """A loop whose calls take so long, the last of them for ever."""

    def __init__(self, *calls_s: float) -> None:
        self._calls_s = chain(calls_s, repeat(calls_s[-1]))

    def call(self) -> float:
        return next(self._calls_s)


class _Peer:
    """Runs each loop in 2 ms, and the last one in 7."""

    def __init__(self, loops: dict[str, Loop]) -> None:
        self._loops = loops

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, command: str, name: str, steps: int) -> int | Floats:
        if command == "result":
            return result_in_numpy(self._loops[name], steps)
        return 7_000_000 if name == list(self._loops)[-1] else 2_000_000


class _Library:
    name = "another library"
    running = _Peer


class _Service:
    """Something is being planned as often as it is told."""

    def __init__(self, times_planning: int = 0) -> None:
        self._times_planning = times_planning

    def wait_until_planned(self) -> None:
        pass

    def is_planning(self) -> bool:
        self._times_planning -= 1
        return self._times_planning >= 0


class _Context:
    library = _Library()
    sessions = 0

    @contextmanager
    def session(self) -> Iterator[tuple[_Service, None]]:
        self.sessions += 1
        yield _Service(), None


def _steady_until(*calls_s: float, times_planning: int = 0) -> tuple[list[float], Steady]:
    called: Any = _Called(*calls_s)
    service: Any = _Service(times_planning)
    taken_s = [called.call()]
    return taken_s, cold_start._call_until_steady(service, called, taken_s)


def _figures(seen: _Seen) -> tuple[Figure, ...]:
    return cold_start._figures(LIBRARIES["cuda"], seen)


def test_no_two_loops_have_the_same_body_and_each_has_5_to_10_ops() -> None:
    bodies = [loop.run.args[0] for loop in cold_start._draw_loops(100, seed=3).values()]  # type: ignore[attr-defined]
    assert len(set(bodies)) == 100
    assert {1 + len(cell) for (cell,) in bodies} == {5, 6, 7, 8, 9, 10}


def test_every_loop_is_new_to_every_server_and_runs_on_the_peer_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cold_start, "_Called", lambda _session, _loop, steps: _Called(steps / 1000))
    context: Any = _Context()
    short, long, steady = COLD_START.measure(context)
    assert context.sessions == cold_start._SERVERS
    assert (short.value, len(short.raw["fusewire"])) == (5.0, cold_start._SERVERS * cold_start._SHORT_LOOPS)
    assert (long.value, len(long.raw["peer"])) == (1_000.0, cold_start._SERVERS * cold_start._LONG_LOOPS)
    assert short.raw["peer"] == [2.0] * 10
    assert max(long.raw["peer"]) == 7.0
    assert steady.value == 0


def test_the_median_and_the_worst_first_call_are_told() -> None:
    firsts = [_First(10.0, 1.0), _First(11.0, 2.0), _First(180.0, 3.0)]
    short, *_ = _figures(_Seen(firsts, firsts, [Steady(1, 2.0, 0.1)]))
    assert short.peer is not None
    assert (short.value, short.peer.value, short.peer.ratio) == (11.0, 2.0, 5.5)
    assert short.notes == ("worst of 3 loops 180.0 ms, of torch eager 3.0 ms",)


def test_the_way_to_the_steady_speed_is_told_in_seconds_and_in_steps() -> None:
    firsts = [_First(10.0, 1.0)]
    *_, steady = _figures(_Seen(firsts, firsts, [Steady(3, 0.5, 0.02), Steady(10, 3.0, 0.02), Steady(4, 0.7, 0.02)]))
    assert (steady.value, steady.unit) == (0.7, "s")
    assert steady.notes == (
        "after 4,000 steps",
        "worst of 3 loops 3.0 s, and 10,000 steps",
        "20.0 µs a step at the steady speed",
    )


def test_a_loop_is_called_until_its_speed_has_lasted() -> None:
    calls_s, steady = _steady_until(1.0, 0.5, 0.1)
    assert (steady.calls, steady.after_s) == (2, 1.5)
    assert sum(calls_s) == pytest.approx(6.0, abs=cold_start._LOOKED_EVERY_S)


def test_while_something_is_being_planned_no_speed_is_steady() -> None:
    calls_s, _ = _steady_until(0.1, times_planning=4)
    assert sum(calls_s) == pytest.approx(3.0 + 4 * cold_start._LOOKED_EVERY_S, abs=cold_start._LOOKED_EVERY_S)


def test_a_loop_that_comes_to_no_steady_speed_has_no_figure() -> None:
    with pytest.raises(NotWarm, match="no steady speed had lasted"):
        _steady_until(0.1, times_planning=1000)
