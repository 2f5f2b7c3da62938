"""Long plans in slices on the device thread: who overtakes them, and what they keep until they end."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from fusewire_server.orders import Lasts, Ran, Release, Run, Write, Wrote
from fusewire_server.session import Session, SessionState
from fusewire_server.work import NO_WORK, Row, Submission, Value, ValueState
from tests.server.parts import VECTOR, VECTOR_BYTES, session
from tests.server.test_device_thread import DEADLINE_S, FAST, World
from tests.server.world import SlicingDevice

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


def test_one_long_plan_at_a_time_has_the_arena_and_others_overtake_both(world: LongWorld) -> None:
    world.begin_long(LONG, session("a"))
    world.run_long(OTHER_LONG, session("b"))
    world.run(FAST, session("c"))
    assert world.completed(1) == [FAST]
    assert len(world.device.begun) == 1
    world.device.may_end.set()
    assert world.completed(2) == [LONG, OTHER_LONG]


def test_a_long_plan_that_waits_for_the_arena_lasts(world: LongWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusewire_server.sliced_run.LASTING_NS", 1 << 60)
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


def test_a_long_plan_is_completed_before_the_thread_ends(world: LongWorld) -> None:
    world.begin_long(LONG, session("a"))
    world.device.may_end.set()
    world.thread.stop(DEADLINE_S)
    assert world.completed(1) == [LONG]
