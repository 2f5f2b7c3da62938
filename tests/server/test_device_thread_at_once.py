"""What the loop does in the device thread's place, and when it may not. Few tests start the thread."""

from __future__ import annotations

import pytest

from fusewire_kernels.devices.base import DeviceInfo
from fusewire_kernels.devices.null import NullDevice
from fusewire_server.orders import Broken, Release, Write, Wrote
from fusewire_server.work import NO_WORK, Value, ValueState
from tests.server.device_world import DEADLINE_S, FAST, OTHER_FAST, SLOW, World
from tests.server.parts import VECTOR, VECTOR_BYTES, session


class HostDevice(NullDevice):
    """Says that it is this processor."""

    @property
    def info(self) -> DeviceInfo:
        return super().info._replace(is_host=True)


def reports_at_once(world: World) -> list[str]:
    """The kinds of what has been reported by now."""
    return [type(world.reports.get()).__name__ for _ in range(world.reports.qsize())]


def order_write(world: World) -> Value:
    value = Value(1, VECTOR, ValueState.READY)
    world.thread.order(Write(session("w"), value, VECTOR_BYTES, NO_WORK))
    return value


def test_what_is_brief_is_done_at_once_on_a_host() -> None:
    world = World(HostDevice())
    value = order_write(world)
    assert value.block is not None
    read = world.thread.read_at_once(value)
    assert read is not None
    assert bytes(read) == VECTOR_BYTES
    world.thread.order(Release(frozenset([session("w")]), (value,)))
    assert reports_at_once(world) == ["Wrote"]
    assert world.device.live_bytes == 0
    assert world.thread.busy_ns > 0


@pytest.mark.parametrize("at_once", [False, True])
def test_a_run_is_done_at_once_only_where_the_caller_says_so(at_once: bool) -> None:
    world = World(HostDevice())
    world.run(FAST, session("a"), at_once=at_once)
    assert reports_at_once(world) == ["Ran"] * at_once


def test_nothing_is_done_at_once_on_a_device_apart() -> None:
    world = World(NullDevice())
    order_write(world)
    world.run(FAST, session("a"), at_once=True)
    assert world.thread.read_at_once(world.value()) is None
    assert reports_at_once(world) == []


def test_before_the_thread_is_stopped_all_is_handed_over() -> None:
    world = World(HostDevice())
    world.thread.hand_over_all()
    order_write(world)
    assert reports_at_once(world) == []


def test_nothing_overtakes_what_was_handed_over() -> None:
    world = World(HostDevice())
    world.run(FAST, session("a"))
    value = order_write(world)
    world.run(OTHER_FAST, session("b"), at_once=True)
    assert (value.block, reports_at_once(world)) == (None, [])
    world.thread.start()
    assert [type(world.next_report()).__name__ for _ in range(3)] == ["Ran", "Wrote", "Ran"]
    world.thread.stop(DEADLINE_S)


def test_nothing_is_done_at_once_while_a_run_is_unfinished(monkeypatch: pytest.MonkeyPatch) -> None:
    world = World(HostDevice())
    monkeypatch.setattr("fusewire_server.op_by_op.run_op_by_op", world.run_op_by_op)
    world.thread.start()
    world.run(SLOW, session("a"))
    assert world.begun.wait(DEADLINE_S)
    value = order_write(world)
    assert isinstance(world.next_report(), Wrote)  # of the thread, which lets it overtake the run
    assert value.block is not None
    assert world.thread.read_at_once(value) is None
    world.gate.set()
    assert world.completed(1) == [SLOW]
    world.thread.stop(DEADLINE_S)


def test_a_failure_at_once_is_the_device_s(monkeypatch: pytest.MonkeyPatch) -> None:
    world, fault = World(HostDevice()), RuntimeError("lost")

    def launch(*_: object) -> None:
        raise fault

    monkeypatch.setattr(world.device, "launch", launch)
    world.run(FAST, session("a"), at_once=True)
    assert world.reports.get(timeout=DEADLINE_S) == Broken(fault)
