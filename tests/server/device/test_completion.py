"""When reports are made, and by which thread."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

import pytest

from fusewire_kernels.devices.null import NullDevice
from fusewire_server.device.completion import LOOK_NS, Completion
from fusewire_server.device.joined_reports import JoinedReports
from fusewire_server.device.orders import Loaded, Report
from tests.server.world import DEADLINE_S, Clock


class World:
    """A completion whose device reaches fences when told, and whose clock stands still."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, is_idle: Callable[[], bool] = lambda: True) -> None:
        self.device = NullDevice(completes_by_itself=False)
        self.made_by: queue.SimpleQueue[int] = queue.SimpleQueue()
        self.clock = Clock()
        monkeypatch.setattr("fusewire_server.device.completion.time", self.clock)
        reports = JoinedReports(lambda _: self.made_by.put(threading.get_ident()))
        self.completion = Completion(self.device, reports, is_idle)
        self.completion.start()

    def await_report(self) -> None:
        self.completion.when_reached(report, is_awaited=True)

    def is_made_here(self) -> bool:
        return self.made_by.get(timeout=DEADLINE_S) == threading.get_ident()


def report() -> Report:
    return Loaded(None, None)  # type: ignore[arg-type]  # nobody looks at it


def test_a_report_is_made_at_once_if_the_device_has_come_so_far(monkeypatch: pytest.MonkeyPatch) -> None:
    here = World(monkeypatch)
    here.device.completes_by_itself = True
    here.completion.when_reached(report)
    assert here.is_made_here()
    here.completion.end()


def test_the_completion_thread_waits_for_what_the_device_has_not_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    here = World(monkeypatch)
    here.completion.when_reached(report)
    here.device.complete_next()
    assert not here.is_made_here()
    here.completion.end()


def test_an_awaited_value_is_looked_for_until_it_has_come(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = iter(range(3))

    def is_idle() -> bool:
        if next(looks, None) is None:
            here.device.complete_next()
        return True

    here = World(monkeypatch, is_idle)
    here.await_report()
    assert here.is_made_here()
    here.completion.end()


def test_nobody_looks_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    def is_idle() -> bool:
        here.clock.now_ns += LOOK_NS // 2
        return True

    here = World(monkeypatch, is_idle)
    here.await_report()
    here.device.complete_next()
    assert not here.is_made_here()
    here.completion.end()


def test_nobody_looks_while_an_order_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    here = World(monkeypatch, lambda: False)
    here.await_report()
    here.device.complete_next()
    assert not here.is_made_here()
    here.completion.end()


def test_a_wait_is_timed_until_the_fence_is_reached(monkeypatch: pytest.MonkeyPatch) -> None:
    here = World(monkeypatch)
    waits, is_reached = threading.Event(), threading.Event()

    class Fence:
        def is_reached(self) -> bool:
            return False

        def wait(self) -> None:
            waits.set()
            assert is_reached.wait(DEADLINE_S)

    assert here.completion.waited_ns(here.clock.now_ns) == 0
    here.completion.when_reached(report, fence=Fence())
    assert waits.wait(DEADLINE_S)
    assert here.completion.waited_ns(here.clock.now_ns + 7) == 7
    is_reached.set()
    assert not here.is_made_here()
    assert here.completion.waited_ns(here.clock.now_ns + 7) == 0
    here.completion.end()


def test_reports_keep_their_order(monkeypatch: pytest.MonkeyPatch) -> None:
    here = World(monkeypatch)
    here.completion.when_reached(report)
    here.await_report()
    for _ in range(2):
        here.device.complete_next()
        assert not here.is_made_here()
    here.completion.end()
