"""The device thread, with runs at tier 0 that go on until the test lets them end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from itertools import pairwise

import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.devices.base import Block
from fusewire_kernels.devices.null import NullDevice
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.credit import NO_WORK
from fusewire_protos.errors import OutOfMemory
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_server.device.device_thread import DeviceThread
from fusewire_server.device.large_read import PIECE_BYTES
from fusewire_server.device.memory.device_memory import Temporaries
from fusewire_server.device.orders import (
    LARGE_BYTES,
    SHORT_BYTES,
    Broken,
    Brought,
    FailedRow,
    Load,
    Missing,
    Ran,
    Read,
    Release,
    Report,
    Run,
    RunIsLong,
    Submission,
    Unloadable,
    Write,
    Wrote,
)
from fusewire_server.device.unfused.iteration import Iteration
from fusewire_server.device.unfused.one_ops import NeverComputed, OneOp, OneOps
from fusewire_server.device.unfused.program import UnfusedProgram
from fusewire_server.sessions.session import PendingFetch, Row, SessionState, Value, ValueState
from tests.patience import Patience
from tests.server.device_world import (
    DEADLINE_S,
    FAST,
    OTHER_FAST,
    OTHER_SLOW,
    SLOW,
    World,
    end_slices_at_once,
    no_kernels,
    write,
)
from tests.server.parts import SIZE_BYTES, VECTOR, VECTOR_BYTES, chain, entry_of, session, whole


@pytest.fixture(params=[False, True], ids=["one thread", "shared"])
def world(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    here = World(NullDevice(), shares_device=request.param)
    monkeypatch.setattr("fusewire_server.device.unfused.run.Iteration", here.iteration)
    here.thread.start()
    yield here
    for gate in (here.gate, *here.gates.values()):
        gate.set()
    here.thread.stop(DEADLINE_S)


def test_a_run_of_others_overtakes_one_at_tier_0(world: World) -> None:
    world.run(SLOW, session("a"))
    world.run(FAST, session("b"), session("c"))
    assert world.completed(1) == [FAST]
    world.gate.set()
    assert world.completed(1) == [SLOW]


def test_a_run_of_the_same_session_waits_and_bars_those_it_shares_a_session_with(world: World) -> None:
    one, other = session("a"), session("b")
    world.run(SLOW, one)
    world.run(FAST, one, other)
    world.run(OTHER_FAST, other)
    world.run(5, session("c"))
    assert world.completed(1) == [5]
    world.gate.set()
    assert world.completed(3) == [SLOW, FAST, OTHER_FAST]


def test_runs_at_tier_0_of_other_sessions_go_on_beside_one_that_is_unfinished(world: World) -> None:
    slow, other = session("a"), session("b")
    world.gates[other] = threading.Event()
    world.run(SLOW, slow)
    world.run(OTHER_SLOW, other)
    world.run(5, session("c"))
    assert world.completed(1) == [5]
    world.gates[other].set()
    assert world.completed(1) == [OTHER_SLOW]
    world.gate.set()
    assert world.completed(1) == [SLOW]


def test_a_second_run_at_tier_0_of_a_session_waits_for_its_first(world: World) -> None:
    one = session("a")
    world.run(SLOW, one)
    world.run(OTHER_SLOW, one)
    world.gate.set()
    assert world.completed(2) == [SLOW, OTHER_SLOW]


def test_tenants_take_turns_whatever_the_number_of_their_runs(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[str] = []

    class Noted(Iteration):
        """Counts the turns in which its ops run, once they may."""

        def __init__(
            self, temporaries: Temporaries, unfused: UnfusedProgram, row: Row, skipped: frozenset[int]
        ) -> None:
            super().__init__(temporaries, unfused, row, skipped)
            self._tenant = row.session.tenant

        def go_on(self, until_ns: int) -> bool:
            if not world.gate.is_set():
                return False
            turns.append(self._tenant)
            return super().go_on(until_ns)

    monkeypatch.setattr("fusewire_server.device.unfused.run.Iteration", Noted)
    world.tier0 = entry_of(chain(["negative"] * 5))
    for number, tenant in enumerate(["many", "many", "many", "one"]):
        world.run_at_tier_0(10 + number, session(str(number), tenant=tenant))
    world.run(FAST, session("z"))
    assert world.completed(1) == [FAST]
    end_slices_at_once(monkeypatch)  # so that each op takes a turn of its own
    world.gate.set()
    assert sorted(world.completed(4)) == [10, 11, 12, 13]
    of_one = [place for place, tenant in enumerate(turns) if tenant == "one"]
    assert len(of_one) > 1
    assert all(later - earlier <= 2 for earlier, later in pairwise(of_one))


def test_a_program_is_made_ready_once_for_all_runs_that_need_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[OneOpCall] = []
    find = OneOps.find

    def counted(one_ops: OneOps, call: OneOpCall) -> OneOp | NeverComputed | None:
        found.append(call)
        return find(one_ops, call)

    monkeypatch.setattr(OneOps, "find", counted)
    world.run(SLOW, session("a"))
    world.run(OTHER_SLOW, session("b"))
    world.gate.set()
    assert sorted(world.completed(2)) == [SLOW, OTHER_SLOW]
    assert len(found) == 1  # both ops of the program are the same call


def test_a_run_is_given_up_once_its_session_has_ended(world: World) -> None:
    one, dying = session("a"), world.value()
    (row,) = world.run(SLOW, one, released=(dying,))
    assert world.begun.wait(DEADLINE_S)
    one.state = SessionState.CLOSED
    world.thread.order(Release(frozenset([one]), (*row.inputs, *row.outputs)))
    report = world.next_report()
    assert isinstance(report, Ran)
    assert [(failed.row, failed.case) for failed in report.failed] == [(row, "cancelled")]
    world.thread.order(Write(one, Value(9, VECTOR, ValueState.READY), VECTOR_BYTES, NO_WORK))
    assert isinstance(world.next_report(), Wrote)  # behind the release
    assert world.device.live_bytes == SIZE_BYTES  # what was written: all else has come back once


def test_a_run_goes_on_for_the_sessions_that_have_not_ended(world: World) -> None:
    ended, other = session("a"), session("b")
    rows = world.run(SLOW, ended, other)
    assert world.begun.wait(DEADLINE_S)
    ended.state = SessionState.CLOSED
    world.gate.set()
    report = world.next_report()
    assert isinstance(report, Ran)
    assert {failed.row for failed in report.failed} <= {rows[0]}  # unless it had come to its end before
    assert rows[1].outputs[0].block is not None


def test_only_a_run_that_lasts_is_reported_and_once(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusewire_server.device.unfused.run.LASTING_NS", 0)
    world.run(SLOW, session("a"))
    world.run(FAST, session("b"))
    assert {type(world.reports.get(timeout=DEADLINE_S)) for _ in range(2)} == {RunIsLong, Ran}
    world.gate.set()
    assert world.completed(1) == [SLOW]
    assert world.reports.empty()


def test_releases_of_the_same_session_wait_and_those_of_others_do_not(world: World) -> None:
    one, other = session("a"), session("b")
    mine, theirs = world.value(), world.value()
    world.run(SLOW, one)
    world.thread.order(Release(frozenset([one]), (mine,)))
    world.thread.order(Release(frozenset([other]), (theirs,)))
    world.run(FAST, session("c"))
    assert world.completed(1) == [FAST]
    assert (mine.block is None, theirs.block is None) == (False, True)
    world.gate.set()
    assert world.completed(1) == [SLOW]
    world.run(OTHER_FAST, one)
    assert world.completed(1) == [OTHER_FAST]
    assert mine.block is None


def test_the_values_that_die_with_a_run_are_released_at_its_end(world: World) -> None:
    dying = world.value()
    world.run(SLOW, session("a"), released=(dying,))
    world.run(FAST, session("b"))
    assert world.completed(1) == [FAST]
    assert dying.block is not None
    world.gate.set()
    assert world.completed(1) == [SLOW]
    assert dying.block is None


def test_others_write_and_read_meanwhile(world: World) -> None:
    other, value = session("b"), Value(1, VECTOR, ValueState.READY)
    world.run(SLOW, session("a"))
    world.thread.order(Write(other, value, VECTOR_BYTES, NO_WORK))
    world.thread.order(Read(PendingFetch(other, 1, value)))
    assert [type(world.next_report()).__name__ for _ in range(2)] == ["Wrote", "Brought"]


def test_the_time_of_those_who_overtake_is_not_counted_to_the_run(world: World) -> None:
    world.run(SLOW, session("a"))
    for number in range(FAST, FAST + 20):
        world.run(number, session("b"))
    assert world.completed(20) == [*range(FAST, FAST + 20)]
    world.gate.set()
    report = world.next_report()
    assert isinstance(report, Ran)
    assert report.device_ns <= world.thread.busy_ns


def test_a_missing_value_is_told_of_after_the_run_that_failed_to_make_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> Iteration:
        raise ValueError("a fault")

    monkeypatch.setattr("fusewire_server.device.unfused.run.Iteration", fail)
    here = World(NullDevice(completes_by_itself=False))
    (row,) = here.run(SLOW, session("a"))
    here.thread.order(Read(PendingFetch(row.session, 1, row.outputs[0])))
    here.thread.order(write(0, row.session))
    here.thread.start()
    assert [type(here.next_report()) for _ in range(2)] == [Ran, Wrote]  # the device was told nothing
    assert here.device.complete_next()
    assert isinstance(here.next_report(), Missing)
    here.thread.stop(DEADLINE_S)


@pytest.mark.parametrize("error", [OutOfMemory("full"), OSError("gone")])
def test_a_plan_that_the_device_does_not_take_is_reported(
    world: World, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def load(*_: object) -> None:
        raise error

    monkeypatch.setattr(world.device, "load", load)
    world.thread.order(Load(world.tier0, build_plan(world.tier0.program, "c"), ()))
    assert world.next_report() == Unloadable(world.tier0, str(error))


def test_rows_fail_if_the_device_has_no_room_to_launch_them(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def launch(*_: object) -> None:
        raise OutOfMemory("no room for a table")

    with monkeypatch.context() as full:
        full.setattr(world.device, "launch", launch)
        rows = world.run(FAST, session("a"), session("b"))
        report = world.next_report()
    assert isinstance(report, Ran)
    assert report.failed == tuple(FailedRow(row, "out_of_memory", "no room for a table") for row in rows)
    assert [row.outputs[0].block for row in rows] == [None, None]
    world.run(OTHER_FAST, session("a"))
    assert world.completed(1) == [OTHER_FAST]


@pytest.mark.parametrize("size_bytes", [SIZE_BYTES, LARGE_BYTES + PIECE_BYTES])
def test_a_fetch_fails_if_the_host_has_no_room_for_what_the_device_copies(
    world: World, monkeypatch: pytest.MonkeyPatch, size_bytes: int
) -> None:
    def read(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(world.device, "read", read)
    value = Value(1, Spec(dtypes.uint8, (size_bytes,)), ValueState.READY)
    value.block = world.device.allocate(size_bytes)
    world.thread.order(Read(PendingFetch(session("a"), 1, value)))
    report = world.next_report()
    assert isinstance(report, Missing)
    assert report.refusal == f"the host has no memory for a value of {size_bytes} bytes"
    world.run(FAST, session("a"))
    assert world.completed(1) == [FAST]


def test_a_run_is_charged_what_it_took_of_the_device_and_not_the_queue_ahead() -> None:
    here = World(NullDevice(completes_by_itself=False))
    for number in (FAST, OTHER_FAST):
        here.run(number, session("a"))
    here.thread.order(write(0, session("a")))
    here.thread.start()
    assert isinstance(here.next_report(), Wrote)  # both runs are told
    device_ns = []
    for now_ns in (50, 120):
        here.device.clock_ns = now_ns
        assert here.device.complete_next()
        report = here.next_report()
        assert isinstance(report, Ran)
        device_ns.append(report.device_ns)
    assert device_ns == [50, 70]
    here.thread.stop(DEADLINE_S)


def test_a_run_brings_the_results_that_somebody_waits_for_before_their_memory_goes(world: World) -> None:
    one = session("a")
    row = Row(one, world.tier1, 1, [world.value()], [Value(2, VECTOR, ValueState.READY)], (), (), 0)
    pending = PendingFetch(one, 7, row.outputs[0])
    submission = Submission(world.tier1, world.tier1.loaded, whole(row), ((),), (row.outputs[0],), (pending,))
    world.thread.order(Run(FAST, submission))
    report = world.next_report()
    assert isinstance(report, Ran)
    (read,) = report.reads
    assert isinstance(read, Brought)
    assert (read.pending, len(read.data), row.outputs[0].block) == (pending, VECTOR.size_bytes, None)


def test_a_run_that_finds_no_room_says_that_what_it_was_to_bring_is_missing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def allocate(size_bytes: int) -> Block:
        raise OutOfMemory("full")

    one = session("a")
    row = Row(one, world.tier1, 1, [world.value()], [Value(2, VECTOR, ValueState.READY)], (), (), 0)
    pending = PendingFetch(one, 7, row.outputs[0])
    monkeypatch.setattr(world.device, "allocate", allocate)
    world.thread.order(Run(FAST, Submission(world.tier1, world.tier1.loaded, whole(row), ((),), (), (pending,))))
    report = world.next_report()
    assert isinstance(report, Ran)
    assert [failed.row for failed in report.failed] == [row]
    assert report.reads == (Missing(pending),)


def test_no_report_overtakes_one_that_the_completion_thread_is_about_to_make() -> None:
    device, reports = NullDevice(completes_by_itself=False), queue.SimpleQueue[Report]()
    is_about_to, may_go_on = threading.Event(), threading.Event()

    def report(one: Report) -> None:
        if isinstance(one, Ran):
            is_about_to.set()
            assert may_go_on.wait(DEADLINE_S)
        reports.put(one)

    here = World(device)
    here.reports = reports
    here.thread = DeviceThread(device, no_kernels, report)
    here.run(FAST, session("a"))
    here.thread.order(write(0, session("a")))
    here.thread.start()
    assert isinstance(here.next_report(), Wrote)
    assert device.complete_next()
    assert is_about_to.wait(DEADLINE_S)
    device.completes_by_itself = True
    here.thread.order(Read(PendingFetch(session("b"), 1, here.value())))
    here.thread.order(write(0, session("b")))
    assert isinstance(here.next_report(), Wrote)
    may_go_on.set()
    assert [type(here.next_report()) for _ in range(2)] == [Ran, Brought]
    here.thread.stop(DEADLINE_S)


def test_what_is_unfinished_or_held_up_is_completed_before_the_thread_ends(world: World) -> None:
    one = session("a")
    world.run(SLOW, one)
    world.run(FAST, one)
    world.gate.set()
    world.thread.stop(DEADLINE_S)
    assert world.completed(2) == [SLOW, FAST]


def threads_of_reports(here: World) -> list[int]:
    """The threads that report, in order, from now on."""
    found: list[int] = []
    report = here.thread._reports.report

    def noting(one: Report) -> None:
        found.append(threading.get_ident())
        report(one)

    here.thread._reports.report = noting
    return found


def wait_until_it_waits(here: World) -> None:
    """Waits until the device thread waits for orders, so that the device is free."""
    patience = Patience()
    while here.thread._given != here.thread._done or here.thread._using_device.locked():
        assert not patience.is_exhausted()


@pytest.fixture
def shared() -> Iterator[World]:
    here = World(NullDevice(), shares_device=True)
    here.thread.start()
    wait_until_it_waits(here)
    yield here
    here.thread.stop(DEADLINE_S)


def test_short_orders_are_acted_on_by_the_thread_that_gives_them_if_the_device_thread_waits(shared: World) -> None:
    threads = threads_of_reports(shared)
    shared.run(FAST, session("a"))
    shared.thread.order(write(0, session("a")))
    assert shared.completed(1) == [FAST]
    assert isinstance(shared.next_report(), Wrote)
    assert threads == [threading.get_ident()] * 2


def test_orders_that_may_take_long_go_to_the_device_thread_with_all_that_come_with_them(shared: World) -> None:
    threads = threads_of_reports(shared)
    one = session("a")
    shared.thread.order(write(0, one), write(SHORT_BYTES + 1, one))
    assert all(isinstance(shared.next_report(), Wrote) for _ in range(2))
    assert threading.get_ident() not in threads


def test_a_short_order_does_not_overtake_those_that_the_device_thread_has(shared: World) -> None:
    one = session("a")
    with shared.thread._using_device:  # the device thread cannot begin
        shared.thread.order(write(SHORT_BYTES + 1, one))
        shared.thread.order(write(1, one))
        assert shared.reports.empty()
    sizes = [report.write.value.size_bytes for _ in range(2) if isinstance(report := shared.next_report(), Wrote)]
    assert sizes == [SHORT_BYTES + 1, 1]


def test_short_orders_go_to_the_device_thread_while_the_device_is_busy(shared: World) -> None:
    shared.device.completes_by_itself = False
    shared.run(FAST, session("a"))  # here
    threads = threads_of_reports(shared)
    shared.thread.order(write(0, session("b")))
    assert isinstance(shared.next_report(), Wrote)
    assert threads
    assert threading.get_ident() not in threads
    shared.device.completes_by_itself = True
    assert shared.device.complete_next()
    assert shared.completed(1) == [FAST]


def test_a_device_that_breaks_in_the_thread_that_gives_the_order_is_reported(
    shared: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(shared.device, "write", fail)
    shared.thread.order(write(1, session("a")))
    assert isinstance(shared.next_report(), Broken)
