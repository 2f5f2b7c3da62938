"""When reports are made, and what device time they tell of."""

from __future__ import annotations

import queue
from typing import Any

import pytest

from fusewire_kernels.devices.null import NullDevice
from fusewire_server.completion import Completion
from fusewire_server.orders import Report
from tests.server.world import DEADLINE_S, Clock


@pytest.mark.parametrize("is_reached_at_once", [True, False])
def test_a_report_learns_when_the_device_was_past_what_the_report_before_was_of(
    monkeypatch: pytest.MonkeyPatch,
    is_reached_at_once: bool,
) -> None:
    device, clock, past_ns = NullDevice(completes_by_itself=is_reached_at_once), Clock(), queue.SimpleQueue[int]()
    monkeypatch.setattr("fusewire_server.completion.time", clock)

    def report(before_ns: int) -> Any:
        past_ns.put(before_ns)
        return None

    reports = queue.SimpleQueue[Report]()
    completion = Completion(device, reports.put)
    completion.start()
    seen_ns = []
    for now_ns in (50, 120, 130):
        clock.now_ns = now_ns
        completion.when_reached(report)
        device.complete_next()
        seen_ns.append(past_ns.get(timeout=DEADLINE_S))
        reports.get(timeout=DEADLINE_S)
    assert seen_ns == [0, 50, 120]
    completion.end()
