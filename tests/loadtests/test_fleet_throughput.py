"""What the fleet's figure counts, with clients and a clock of the test's own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Self

import pytest

from loadtests import turns
from loadtests.figures import fleet_throughput
from loadtests.figures.fleet_throughput import FLEET
from loadtests.programs import RNN_OPS

_TURN_S = 3


class _Clock:
    now_ns = 0

    def read(self) -> int:
        return self.now_ns


class _OneAfterAnother:
    """A fleet whose clients run alone in turn, each for an equal part of the time."""

    def __init__(self, clock: _Clock, clients: int) -> None:
        self._clock = clock
        self._clients = clients

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def ask(self, command: str, steps: int = 0) -> list[float | None]:
        if command != "run":
            return [None] * self._clients
        self._clock.now_ns += _TURN_S * 10**9
        return [_TURN_S * 1e6 / self._clients / (steps * RNN_OPS)] * self._clients


class _Service:
    """As `loadtests.service.Service`, as far as the figure asks it; each count is a thing that was spent."""

    target = "nowhere"
    rows = submissions = device_thread_ns = ops = 1

    def warm_up(self, run: Callable[[], object]) -> None:
        run()

    def count(self) -> Self:
        return self

    def since(self, _before: object) -> Self:
        return self


class _Context:
    @contextmanager
    def service(self) -> Iterator[_Service]:
        yield _Service()


def test_clients_that_run_one_after_another_are_no_faster_together(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = _Clock()

    def open_fleet(_serve: object, arguments: list[tuple[Any, ...]]) -> _OneAfterAnother:
        return _OneAfterAnother(clock, len(arguments))

    monkeypatch.setattr(turns, "perf_counter_ns", clock.read)
    monkeypatch.setattr(fleet_throughput, "Fleet", open_fleet)
    (figure,) = FLEET.measure(_Context())  # type: ignore[arg-type]  # what it asks of one
    ops = fleet_throughput._CLIENTS * fleet_throughput._STEPS * RNN_OPS
    assert figure.value == pytest.approx(ops / _TURN_S / 1e6)
