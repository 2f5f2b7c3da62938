"""What the fleet's figure counts, with clients and a clock of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import pytest

from loadtests.measuring import timing
from loadtests.measuring.errors import WrongResult
from loadtests.measuring.figure import Figure
from loadtests.microbenchmarks import fleet_throughput
from loadtests.microbenchmarks.fleet_throughput import FLEET
from loadtests.peers.libraries import Library
from loadtests.workloads.loops import RNN_OPS, Floats, Loop, result_in_numpy

_TURN_S = 3
_PEER_TURN_S = 12


class _Clock:
    now_ns = 0

    def read(self) -> int:
        return self.now_ns


class _OneAfterAnother:
    """A fleet whose processes run alone in turn, each for an equal part of the time that all take."""

    def __init__(self, clock: _Clock, turn_s: int, states: list[Floats]) -> None:
        self._clock = clock
        self._turn_s = turn_s
        self._states = states

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, command: str, *_: object) -> object:
        if command == "result":
            return self._states
        if command in {"run", "run_ns"}:
            self._clock.now_ns += self._turn_s * 10**9
        return None


class _Service:
    """As `loadtests.system.service.Service`, as far as the figure asks it; each count is a thing that was spent."""

    target = "nowhere"
    rows = submissions = device_thread_ns = ops = 1

    def warm_up(self, run: Callable[[], object]) -> None:
        run()

    def count(self) -> Self:
        return self

    def since(self, _before: object) -> Self:
        return self


class _Context:
    library = Library("another library", lambda: None)

    @contextmanager
    def service(self) -> Iterator[_Service]:
        yield _Service()


def _measure(monkeypatch: pytest.MonkeyPatch, states: Callable[[Loop], Floats]) -> Figure:
    clock = _Clock()

    def open_fleet(serve: object, arguments: list[tuple[Any, ...]]) -> _OneAfterAnother:
        if serve is not _Context.library.serve:
            return _OneAfterAnother(clock, _TURN_S, [])
        return _OneAfterAnother(clock, _PEER_TURN_S, [states(loops["rnn"]) for (loops,) in arguments])

    monkeypatch.setattr(timing, "perf_counter_ns", clock.read)
    monkeypatch.setattr(fleet_throughput, "Fleet", open_fleet)
    (figure,) = FLEET.measure(_Context())  # type: ignore[arg-type]  # what it asks of one
    return figure


def _right(loop: Loop) -> Floats:
    return result_in_numpy(loop, fleet_throughput._CHECKED_STEPS)


def test_clients_that_run_one_after_another_are_no_faster_together(monkeypatch: pytest.MonkeyPatch) -> None:
    ops = fleet_throughput._CLIENTS * fleet_throughput._STEPS * RNN_OPS
    assert _measure(monkeypatch, _right).value == pytest.approx(ops / _TURN_S / 1e6)


def test_the_peer_is_as_many_processes_that_are_timed_in_the_same_way(monkeypatch: pytest.MonkeyPatch) -> None:
    peer = _measure(monkeypatch, _right).peer
    assert peer is not None
    assert peer.name == "15 processes of another library"
    assert peer.ratio == pytest.approx(_PEER_TURN_S / _TURN_S)


def test_a_wrong_result_of_one_process_of_the_peer_is_no_figure(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WrongResult, match="of a peer"):
        _measure(monkeypatch, lambda loop: _right(loop) + (loop.operands.state[0, 0] > 1))
