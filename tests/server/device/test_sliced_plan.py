"""Long plans in slices on the device thread: who overtakes them, and what they keep until they end."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from fusewire_protos.credit import NO_WORK
from fusewire_server.device.orders import Lasts, Ran, Release, Run, Submission, Write, Wrote
from fusewire_server.device.sliced_plan import SlicedPlan
from fusewire_server.device.sliced_run import SlicedRun
from fusewire_server.scheduling.unfinished_orders import FOREIGN_SLICE_NS, Progress
from fusewire_server.sessions.session import Row, Session, SessionState, Value, ValueState
from tests.server.device_world import DEADLINE_S, FAST, SLOW, World
from tests.server.parts import SIZE_BYTES, VECTOR, VECTOR_BYTES, chain, entry_of, session
from tests.server.world import Clock, SlicingDevice

LONG, OTHER_LONG = 11, 12  # numbers of submissions


@dataclass
class LongWorld(World):
    """Plans in slices do not end before `device.may_end` is set."""

    device: SlicingDevice

    def run_long(
        self,
        number: int,
        *sessions: Session,
        donated: tuple[tuple[int, int], ...] = (),
        released: tuple[Value, ...] = (),
    ) -> list[Row]:
        rows = [
            Row(one, self.tier1, 1, [self.value()], [Value(2, VECTOR, ValueState.READY)], (), (), 0) for one in sessions
        ]
        submission = Submission(self.tier1, self.tier1.loaded, tuple(rows), (donated,) * len(rows), released)
        self.thread.order(Run(number, submission, is_long=True))
        return rows

    def begin_long(self, number: int, *sessions: Session) -> list[Row]:
        """Such a run, of which a slice has run when this returns."""
        rows = self.run_long(number, *sessions)
        assert self.device.reached.wait(DEADLINE_S)
        return rows


@pytest.fixture
def world() -> Iterator[LongWorld]:
    here = LongWorld(SlicingDevice())
    here.device.may_end.clear()
    here.thread.start()
    yield here
    here.gate.set()
    here.device.may_end.set()
    here.thread.stop(DEADLINE_S)


def test_a_run_of_others_overtakes_a_long_plan(world: LongWorld) -> None:
    world.begin_long(LONG, session("a"))
    world.run(FAST, session("b"))
    assert world.completed(1) == [FAST]
    world.device.may_end.set()
    assert world.completed(1) == [LONG]


def test_the_plan_of_a_long_run_may_run_whole_meanwhile_over_other_buffers(world: LongWorld) -> None:
    (long,) = world.begin_long(LONG, session("a"))
    (whole,) = world.run(FAST, session("b"))
    assert world.completed(1) == [FAST]
    world.device.may_end.set()
    assert world.completed(1) == [LONG]
    told = [table[0].tolist()[1:] for table in world.device.tables]
    blocks = [(row.inputs[0].block, row.outputs[0].block) for row in (whole, long)]
    assert told == [[block.address for block in pair if block is not None] for pair in blocks]


def test_orders_of_its_own_session_wait_for_a_long_plan(world: LongWorld) -> None:
    one, dying = session("a"), world.value()
    world.begin_long(LONG, one)
    world.run(FAST, one)
    world.thread.order(Release(frozenset([one]), (dying,)))
    world.run(5, session("b"))
    assert world.completed(1) == [5]
    assert dying.block is not None
    world.device.may_end.set()
    assert world.completed(2) == [LONG, FAST]
    world.thread.stop(DEADLINE_S)
    assert dying.block is None


def test_a_long_plan_that_waits_takes_no_memory_and_none_of_the_time(
    world: LongWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns: list[int] = []
    go_on = SlicedRun.go_on

    def counted(run: SlicedRun, until_ns: int) -> Progress:
        turns.append(run.order.number)
        return go_on(run, until_ns)

    monkeypatch.setattr(SlicedRun, "go_on", counted)
    world.begin_long(LONG, session("a"))
    (row,) = world.run_long(OTHER_LONG, session("b"))
    for number in range(FAST, FAST + 5):
        world.run(number, session("c"))
    assert world.completed(5) == [*range(FAST, FAST + 5)]
    assert (row.outputs[0].block, OTHER_LONG in turns) == (None, False)
    world.device.may_end.set()
    assert world.completed(2) == [LONG, OTHER_LONG]


def tight_world(*, results: int) -> LongWorld:
    """One that has not started, and holds so many results beside an input each of two runs."""
    here = LongWorld(SlicingDevice())
    here.device._memory_bytes = (2 + results) * SIZE_BYTES
    return here


def test_long_plans_that_fit_one_after_the_other_find_room() -> None:
    here = tight_world(results=1)
    for number, one in ((LONG, session("a")), (OTHER_LONG, session("b"))):
        (row,) = here.run_long(number, one)
        here.thread.order(Release(frozenset([one]), (*row.inputs, *row.outputs)))
    here.thread.start()
    assert here.completed(2) == [LONG, OTHER_LONG]
    here.thread.stop(DEADLINE_S)


def test_a_long_plan_that_finds_no_room_waits_for_others_and_is_refused_once_there_are_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = tight_world(results=0)
    monkeypatch.setattr("fusewire_server.device.tier0.run_op_by_op", here.run_op_by_op)
    slow = here.run_without_inputs(SLOW, 4, session("a"))
    here.device._memory_bytes += 4  # its result
    (row,) = here.run_long(LONG, session("b"))
    here.value()
    here.thread.start()
    assert here.reports.get(timeout=DEADLINE_S) == Lasts(LONG)
    here.gate.set()
    reports = [here.next_report() for _ in range(2)]
    assert [report.number for report in reports if isinstance(report, Ran)] == [SLOW, LONG]
    assert [[failed.row for failed in report.failed] for report in reports if isinstance(report, Ran)] == [[], [row]]
    assert slow.outputs[0].block is not None
    here.thread.stop(DEADLINE_S)


def test_a_long_plan_that_finds_no_room_has_it_as_soon_as_somebody_gives_it_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here = tight_world(results=0)
    monkeypatch.setattr("fusewire_server.device.tier0.run_op_by_op", here.run_op_by_op)
    here.device._memory_bytes += 4  # the result at tier 0
    here.run_without_inputs(SLOW, 4, session("a"))
    here.run_long(LONG, session("b"))
    dying = here.value()
    here.thread.start()
    assert here.reports.get(timeout=DEADLINE_S) == Lasts(LONG)
    here.thread.order(Release(frozenset([session("c")]), (dying,)))
    assert here.completed(1) == [LONG]
    here.gate.set()
    assert here.completed(1) == [SLOW]
    here.thread.stop(DEADLINE_S)


def test_a_long_run_lets_another_have_the_arena_after_each_of_its_rows() -> None:
    here = LongWorld(SlicingDevice())
    mine = here.run_long(LONG, *[session(name, tenant="many") for name in "abc"])
    (theirs,) = here.run_long(OTHER_LONG, session("d", tenant="one"))
    here.thread.start()
    assert here.completed(2) == [OTHER_LONG, LONG]
    written = [int(table[0, -1]) for table in here.device.tables]
    rows = (mine[0], theirs, mine[1], mine[2])
    assert written == [block.address for row in rows if (block := row.outputs[0].block)]
    here.thread.stop(DEADLINE_S)


def test_whoever_waits_for_the_arena_does_not_wait_for_other_runs_of_the_tenant_that_has_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    here, turns_op_by_op, slices = LongWorld(SlicingDevice()), 0, 0

    def go_on(*_: object) -> bool:
        nonlocal slices
        slices += 1
        return slices >= 50

    def ops(*_: object) -> Iterator[None]:
        nonlocal turns_op_by_op
        while not here.gate.is_set():
            turns_op_by_op += 1
            yield

    monkeypatch.setattr("fusewire_server.device.tier0.run_op_by_op", ops)
    monkeypatch.setattr("fusewire_server.device.tier0.prepare", lambda *_: iter(()))
    monkeypatch.setattr("fusewire_server.scheduling.unfinished_orders.SLICE_NS", 0)
    monkeypatch.setattr(SlicedPlan, "go_on", go_on)
    here.run_long(LONG, session("a", tenant="T1"))
    for number in range(20, 30):
        here.tier0 = entry_of(chain())
        here.run_at_tier_0(number, session(str(number), tenant="T1"))
    here.run_long(OTHER_LONG, session("b", tenant="T2"))
    here.thread.start()
    assert here.completed(1) == [LONG]
    assert turns_op_by_op < 200  # each of ten would have had 50
    here.gate.set()
    here.thread.stop(DEADLINE_S)


def test_one_long_plan_at_a_time_has_the_arena_and_others_overtake_both(world: LongWorld) -> None:
    world.begin_long(LONG, session("a"))
    world.run_long(OTHER_LONG, session("b"))
    world.run(FAST, session("c"))
    assert world.completed(1) == [FAST]
    assert len(world.device.begun) == 1
    world.device.may_end.set()
    assert world.completed(2) == [LONG, OTHER_LONG]


def test_a_long_plan_that_waits_for_the_arena_lasts(world: LongWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusewire_server.device.sliced_run.LASTING_NS", 1 << 60)
    world.begin_long(LONG, session("a"))
    world.run_long(OTHER_LONG, session("b"))
    assert world.reports.get(timeout=DEADLINE_S) == Lasts(OTHER_LONG)


def test_a_run_at_tier_0_goes_on_beside_a_long_plan_of_its_program(world: LongWorld) -> None:
    world.begin_long(LONG, session("a"))
    world.tier0 = world.tier1
    loaded, world.tier1.loaded = world.tier1.loaded, None
    world.run_at_tier_0(FAST, session("b"))
    assert world.completed(1) == [FAST]
    world.tier1.loaded = loaded
    world.device.may_end.set()
    assert world.completed(1) == [LONG]


def test_a_long_plan_of_an_ended_session_is_given_up_and_leaves_the_arena_to_the_next(world: LongWorld) -> None:
    one, dying = session("a"), world.value()
    (row,) = world.run_long(LONG, one, released=(dying,))
    assert world.device.reached.wait(DEADLINE_S)
    one.state = SessionState.CLOSED
    world.thread.order(Release(frozenset([one]), (*row.inputs, *row.outputs)))
    report = world.next_report()
    assert isinstance(report, Ran)
    assert [(failed.row, failed.case) for failed in report.failed] == [(row, "cancelled")]
    world.device.may_end.set()
    (other,) = world.run_long(OTHER_LONG, session("b"))
    assert world.completed(1) == [OTHER_LONG]
    world.thread.order(Release(frozenset(), (*other.inputs, *other.outputs)))
    world.thread.stop(DEADLINE_S)
    assert world.device.live_bytes == 0


def test_a_long_plan_of_an_ended_session_is_given_up_while_it_waits_for_the_arena(world: LongWorld) -> None:
    world.begin_long(LONG, session("a"))
    one, dying = session("b"), world.value()
    (row,) = world.run_long(OTHER_LONG, one, donated=((0, 0),), released=(dying,))
    one.state = SessionState.CLOSED
    world.thread.order(Release(frozenset([one]), tuple(row.outputs)))
    report = world.next_report()
    assert isinstance(report, Ran)
    assert [(failed.row, failed.case) for failed in report.failed] == [(row, "cancelled")]
    assert (dying.block, row.outputs[0].block) == (None, None)
    world.device.may_end.set()
    assert world.completed(1) == [LONG]


def test_a_long_plan_of_several_tenants_is_given_up_once_all_their_sessions_have_ended(world: LongWorld) -> None:
    world.begin_long(LONG, session("a"))
    both = [session("b", tenant="b"), session("c", tenant="c")]
    rows = world.run_long(OTHER_LONG, *both)
    for one, row in zip(both, rows, strict=True):
        one.state = SessionState.CLOSED
        world.thread.order(Release(frozenset([one]), tuple(row.outputs)))
    report = world.next_report()
    assert isinstance(report, Ran)
    assert [(failed.row, failed.case) for failed in report.failed] == [(row, "cancelled") for row in rows]
    world.device.may_end.set()
    assert world.completed(1) == [LONG]


def test_a_long_plan_that_is_given_up_before_it_had_memory_takes_none(
    world: LongWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.begin_long(LONG, session("a"))
    one = session("b")
    (row,) = world.run_long(OTHER_LONG, one)
    taken_bytes: list[int] = []
    monkeypatch.setattr(world.device, "allocate", taken_bytes.append)
    one.state = SessionState.CLOSED
    world.thread.order(Release(frozenset([one]), tuple(row.outputs)))
    report = world.next_report()
    assert isinstance(report, Ran)
    assert ([failed.case for failed in report.failed], taken_bytes) == (["cancelled"], [])


def test_a_row_that_overwrites_its_input_is_never_begun_anew_for_want_of_room(world: LongWorld) -> None:
    world.run_long(LONG, session("a"), donated=((0, 0),))
    assert world.device.reached.wait(DEADLINE_S)
    world.device._memory_bytes = world.device.live_bytes
    world.thread.order(Write(session("b"), Value(1, VECTOR, ValueState.READY), VECTOR_BYTES, NO_WORK))
    report = world.next_report()
    assert isinstance(report, Wrote)
    assert report.refusal is not None
    world.device.may_end.set()
    assert world.completed(1) == [LONG]
    assert len(world.device.begun) == 1


def test_the_rows_of_a_long_run_follow_one_another(world: LongWorld) -> None:
    world.device.may_end.set()
    rows = world.run_long(LONG, session("a"), session("b"), session("c"))
    assert world.completed(1) == [LONG]
    outputs = [row.outputs[0].block for row in rows]
    assert [int(table[0, -1]) for table in world.device.tables] == [block.address for block in outputs if block]


def test_a_long_plan_is_completed_in_slices_before_the_thread_ends(
    world: LongWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    most_ns: list[int] = []
    go_on = SlicedPlan.go_on

    def noted(plan: SlicedPlan, until_ns: int) -> bool:
        most_ns.append(until_ns - time.perf_counter_ns())
        return go_on(plan, until_ns)

    monkeypatch.setattr(SlicedPlan, "go_on", noted)
    world.begin_long(LONG, session("a"))
    world.thread.stop(0)
    world.device.may_end.set()
    world.thread.stop(DEADLINE_S)
    assert world.completed(1) == [LONG]
    assert max(most_ns) <= FOREIGN_SLICE_NS


def test_a_long_plan_goes_on_for_as_long_as_those_took_that_overtook_it(monkeypatch: pytest.MonkeyPatch) -> None:
    here, clock, events = LongWorld(SlicingDevice()), Clock(), list[str]()

    def pass_ns(ns: int) -> None:
        clock.now_ns += ns
        here.device.clock_ns += ns

    def launch(*_: object) -> None:
        events.append("whole")
        pass_ns(4 * FOREIGN_SLICE_NS)

    def go_on(*_: object) -> bool:
        events.append("slice")
        pass_ns(FOREIGN_SLICE_NS)
        return len(events) >= 21

    monkeypatch.setattr("fusewire_server.device.device_thread.time", clock)
    monkeypatch.setattr("fusewire_server.device.completion.time", clock)
    monkeypatch.setattr(here.device, "launch", launch)
    monkeypatch.setattr(SlicedPlan, "go_on", go_on)
    here.run_long(LONG, session("a"))
    for number in range(20, 24):
        here.run(number, session("b"))
    here.thread.start()
    reports = [report for report in (here.next_report() for _ in range(5)) if isinstance(report, Ran)]
    used_ns = {report.number: report.device_ns for report in reports}
    assert used_ns == {LONG: 17 * FOREIGN_SLICE_NS} | dict.fromkeys(range(20, 24), 4 * FOREIGN_SLICE_NS)
    assert events == ["slice", *["whole", *["slice"] * 4] * 4]
    here.thread.stop(DEADLINE_S)
