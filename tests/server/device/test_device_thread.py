"""The device thread, with runs at tier 0 that go on until the test lets them end."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.devices.base import Block
from fusewire_kernels.devices.null import NullDevice, NullReadback
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.credit import NO_WORK
from fusewire_protos.errors import OutOfMemory
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_server.device.device_thread import DeviceThread
from fusewire_server.device.iteration import Iteration
from fusewire_server.device.large_read import PIECE_BYTES
from fusewire_server.device.memory import Temporaries
from fusewire_server.device.one_ops import OneOp, OneOps
from fusewire_server.device.orders import (
    LARGE_BYTES,
    Brought,
    FailedRow,
    Lacks,
    Lasts,
    Load,
    Loaded,
    Missing,
    NoKernel,
    Ran,
    Read,
    Release,
    Report,
    Run,
    Submission,
    Unloadable,
    Write,
    Wrote,
)
from fusewire_server.device.unfused_program import UnfusedProgram
from fusewire_server.sessions.session import Fetching, Row, Session, SessionState, Value, ValueState
from tests.server.device.runs_alone import KernelDevice
from tests.server.device_world import DEADLINE_S, FAST, OTHER_FAST, OTHER_SLOW, SLOW, World, no_kernels, write
from tests.server.parts import SIZE_BYTES, VECTOR, VECTOR_BYTES, chain, entry_of, session


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch) -> Iterator[World]:
    here = World(NullDevice())
    monkeypatch.setattr("fusewire_server.device.unfused_run.Iteration", here.iteration)
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

    monkeypatch.setattr("fusewire_server.device.unfused_run.Iteration", Noted)
    world.tier0 = entry_of(chain(["negative"] * 5))
    for number, tenant in enumerate(["many", "many", "many", "one"]):
        world.run_at_tier_0(10 + number, session(str(number), tenant=tenant))
    world.run(FAST, session("z"))
    assert world.completed(1) == [FAST]
    _end_slices_at_once(monkeypatch)  # so that each op takes a turn of its own
    world.gate.set()
    assert sorted(world.completed(4)) == [10, 11, 12, 13]
    of_one = [place for place, tenant in enumerate(turns) if tenant == "one"]
    assert len(of_one) > 1
    assert all(later - earlier <= 2 for earlier, later in pairwise(of_one))


def test_a_program_is_made_ready_once_for_all_runs_that_need_it(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    found: list[OneOpCall] = []
    find = OneOps.find

    def counted(one_ops: OneOps, call: OneOpCall) -> OneOp | str | None:
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
    monkeypatch.setattr("fusewire_server.device.unfused_run.LASTING_NS", 0)
    world.run(SLOW, session("a"))
    world.run(FAST, session("b"))
    assert {type(world.reports.get(timeout=DEADLINE_S)) for _ in range(2)} == {Lasts, Ran}
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
    world.thread.order(Read(Fetching(other, 1, value)))
    assert [type(world.next_report()).__name__ for _ in range(2)] == ["Wrote", "Brought"]


def _end_slices_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in ("scheduling.time_shares", "device.device_thread"):
        monkeypatch.setattr(f"fusewire_server.{module}.SLICE_NS", 0)


class PiecesDevice(NullDevice):
    """Notes which pieces are read, each of which takes it 1 ns; `before_piece` is called before each."""

    def __init__(self) -> None:
        super().__init__()
        self.first_bytes: list[int] = []
        self.before_piece: Callable[[], None] = lambda: None

    def read(self, block: Block, size_bytes: int, first_byte: int = 0) -> NullReadback:
        self.before_piece()
        self.first_bytes.append(first_byte)
        self.clock_ns += 1
        return super().read(block, size_bytes, first_byte)


@dataclass
class PiecesWorld(World):
    device: PiecesDevice


@pytest.fixture
def pieces(monkeypatch: pytest.MonkeyPatch) -> Iterator[PiecesWorld]:
    """Not started; what is larger than 8 bytes is read in pieces of 7, each in a turn of its own."""
    here = PiecesWorld(PiecesDevice())
    monkeypatch.setattr("fusewire_server.device.orders.LARGE_BYTES", 8)
    monkeypatch.setattr("fusewire_server.device.large_read.PIECE_BYTES", 7)
    _end_slices_at_once(monkeypatch)
    yield here
    here.device.completes_by_itself = True
    while here.device.complete_next():
        pass
    here.thread.stop(DEADLINE_S)


def fetching_of(world: World, one: Session) -> Fetching:
    """Orders a read of a value of 16 bytes, 0 to 15."""
    value = world.value()
    assert value.block is not None
    value.block.owner[:] = range(SIZE_BYTES)
    fetching = Fetching(one, 1, value)
    world.thread.order(Read(fetching))
    return fetching


def test_others_overtake_a_read_of_a_large_value_between_its_pieces(pieces: PiecesWorld) -> None:
    fetching = fetching_of(pieces, session("a"))
    pieces.run(FAST, session("b"))
    pieces.thread.start()
    assert pieces.completed(1) == [FAST]
    report = pieces.next_report()
    assert isinstance(report, Brought)
    assert (report.fetching, bytes(report.data)) == (fetching, bytes(range(SIZE_BYTES)))
    assert report.device_ns == 3
    assert pieces.device.first_bytes == [0, 7, 14]


def test_a_large_value_is_not_given_back_before_it_is_read(pieces: PiecesWorld) -> None:
    one = session("a")
    fetching = fetching_of(pieces, one)
    pieces.thread.order(Release(frozenset([one]), (fetching.value,)))
    pieces.run(FAST, session("b"))
    was_there: list[bool] = []
    pieces.device.before_piece = lambda: was_there.append(fetching.value.block is not None)
    pieces.thread.start()
    assert pieces.completed(1) == [FAST]
    assert isinstance(pieces.next_report(), Brought)
    pieces.thread.stop(DEADLINE_S)
    assert was_there == [True] * 3
    assert fetching.value.block is None


def test_at_most_two_pieces_are_on_their_way_and_nobody_waits_for_them(pieces: PiecesWorld) -> None:
    device = pieces.device
    device.completes_by_itself = False
    fetching_of(pieces, session("a"))
    pieces.thread.start()
    for count in range(1, 4):
        for _ in range(2):  # between which the read has had a turn
            pieces.thread.order(write(0, session("b")))
            assert isinstance(pieces.next_report(), Wrote)
        assert device.first_bytes == [0, 7, 14][: count + 1]
        assert device.complete_next()


@pytest.mark.parametrize("why", ["abandoned", "ended"])
def test_a_large_value_that_nobody_wants_any_more_is_not_read_to_its_end(pieces: PiecesWorld, why: str) -> None:
    fetching = fetching_of(pieces, session("a"))

    def leave() -> None:
        fetching.is_abandoned = why == "abandoned"
        fetching.session.state = SessionState.CLOSED if why == "ended" else SessionState.OPEN

    pieces.device.before_piece = leave
    pieces.thread.start()
    report = pieces.next_report()
    assert isinstance(report, Missing)
    assert report.device_ns == 2
    assert pieces.device.first_bytes == [0, 7]


def test_a_large_value_that_is_not_there_is_missing(pieces: PiecesWorld) -> None:
    fetching = Fetching(session("a"), 1, Value(1, VECTOR, ValueState.READY))
    pieces.thread.order(Read(fetching))
    pieces.thread.start()
    assert isinstance(pieces.next_report(), Missing)


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

    monkeypatch.setattr("fusewire_server.device.unfused_run.Iteration", fail)
    here = World(NullDevice(completes_by_itself=False))
    (row,) = here.run(SLOW, session("a"))
    here.thread.order(Read(Fetching(row.session, 1, row.outputs[0])))
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
    world.thread.order(Read(Fetching(session("a"), 1, value)))
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
    fetching = Fetching(one, 7, row.outputs[0])
    submission = Submission(world.tier1, world.tier1.loaded, (row,), ((),), (row.outputs[0],), (fetching,))
    world.thread.order(Run(FAST, submission))
    report = world.next_report()
    assert isinstance(report, Ran)
    (read,) = report.reads
    assert isinstance(read, Brought)
    assert (read.fetching, len(read.data), row.outputs[0].block) == (fetching, VECTOR.size_bytes, None)


def test_a_run_that_finds_no_room_says_that_what_it_was_to_bring_is_missing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def allocate(size_bytes: int) -> Block:
        raise OutOfMemory("full")

    one = session("a")
    row = Row(one, world.tier1, 1, [world.value()], [Value(2, VECTOR, ValueState.READY)], (), (), 0)
    fetching = Fetching(one, 7, row.outputs[0])
    monkeypatch.setattr(world.device, "allocate", allocate)
    world.thread.order(Run(FAST, Submission(world.tier1, world.tier1.loaded, (row,), ((),), (), (fetching,))))
    report = world.next_report()
    assert isinstance(report, Ran)
    assert [failed.row for failed in report.failed] == [row]
    assert report.reads == (Missing(fetching),)


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
    here.thread.order(Read(Fetching(session("b"), 1, here.value())))
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


# ---- runs that lack kernels ----

NEGATIVE, EXP = (OneOpCall(catalogue.BY_NAME[name], (VECTOR,), ()) for name in ("negative", "exp"))


@pytest.fixture
def lacking() -> Iterator[World]:
    """A world without kernels, whose program at tier 0 needs two. Nothing holds back its runs."""
    here = World(KernelDevice())
    here.tier0 = entry_of(chain(["negative", "exp"]))
    here.thread.start()
    yield here
    here.thread.stop(DEADLINE_S)


def lacks(*sessions: Session) -> Lacks:
    return Lacks(frozenset([NEGATIVE, EXP]), frozenset(sessions))


def kernels_of(call: OneOpCall) -> Load:
    return Load(call, build_plan(call.program(), "cuda", most_rows=1), ())


def test_a_run_that_lacks_kernels_is_overtaken_until_all_of_them_have_come(lacking: World) -> None:
    one = session("a")
    lacking.run(SLOW, one)
    assert lacking.next_report() == lacks(one)
    lacking.run(FAST, session("b"))
    lacking.thread.order(kernels_of(NEGATIVE))
    assert lacking.completed(1) == [FAST]
    assert isinstance(lacking.next_report(), Loaded)
    lacking.run(OTHER_FAST, session("c"))
    assert lacking.completed(1) == [OTHER_FAST]
    lacking.thread.order(kernels_of(EXP))
    assert isinstance(lacking.next_report(), Loaded)
    assert lacking.completed(1) == [SLOW]


def test_all_runs_that_lack_a_kernel_go_on_when_it_comes(lacking: World) -> None:
    sessions = [session(str(number)) for number in range(3)]
    for number, one in enumerate(sessions):
        lacking.run_at_tier_0(10 + number, one)
        assert lacking.next_report() == lacks(one)
    lacking.thread.order(kernels_of(NEGATIVE), kernels_of(EXP))
    assert [type(lacking.next_report()) for _ in range(2)] == [Loaded] * 2
    assert sorted(lacking.completed(3)) == [10, 11, 12]


def test_a_call_that_is_refused_fails_what_depends_on_it_by_its_name(lacking: World) -> None:
    one = session("a")
    (row,) = lacking.run(SLOW, one)
    assert lacking.next_report() == lacks(one)
    lacking.thread.order(kernels_of(NEGATIVE), NoKernel(EXP, "it cannot be"))
    assert isinstance(lacking.next_report(), Loaded)
    report = lacking.next_report()
    assert isinstance(report, Ran)
    assert report.failed == (FailedRow(row, "server_fault", "no kernel for exp: it cannot be", (1,)),)


def test_a_plan_of_a_program_brings_no_kernels_for_the_runs_before_it(lacking: World) -> None:
    one = session("a")
    lacking.run(SLOW, one)
    assert lacking.next_report() == lacks(one)
    lacking.thread.order(Load(lacking.tier0, build_plan(lacking.tier0.program, "cuda"), ()))
    assert isinstance(lacking.next_report(), Loaded)
    lacking.run(FAST, session("b"))
    assert lacking.completed(1) == [FAST]


def test_a_kernel_that_does_not_load_is_asked_for_again(lacking: World, monkeypatch: pytest.MonkeyPatch) -> None:
    def load(*_: object) -> None:
        raise OutOfMemory("full")

    one = session("a")
    lacking.run(SLOW, one)
    assert lacking.next_report() == lacks(one)
    lacking.thread.order(kernels_of(NEGATIVE))
    assert isinstance(lacking.next_report(), Loaded)
    with monkeypatch.context() as full:
        full.setattr(lacking.device, "load", load)
        lacking.thread.order(kernels_of(EXP))
        assert lacking.next_report() == Unloadable(EXP, "full")
        assert lacking.next_report() == Lacks(frozenset([EXP]), frozenset([one]))
    lacking.thread.order(kernels_of(EXP))
    assert isinstance(lacking.next_report(), Loaded)
    assert lacking.completed(1) == [SLOW]


def test_a_session_that_ends_while_its_run_lacks_kernels_gets_its_memory_back(lacking: World) -> None:
    leaving, staying = session("leaving"), session("staying")
    (row,) = lacking.run(SLOW, leaving)
    lacking.run(OTHER_SLOW, staying)
    assert {lacking.next_report(), lacking.next_report()} == {lacks(leaving), lacks(staying)}
    leaving.state = SessionState.CLOSED
    lacking.thread.order(Release(frozenset([leaving]), (*row.inputs, *row.outputs)))
    lacking.thread.order(NoKernel(NEGATIVE, ""), NoKernel(EXP, ""))
    report = lacking.next_report()
    assert isinstance(report, Ran)
    assert [(failed.row, failed.case) for failed in report.failed] == [(row, "cancelled")]
    lacking.run(FAST, session("b"))  # behind the release
    assert lacking.completed(1) == [FAST]
    assert row.inputs[0].block is None
    lacking.thread.order(kernels_of(NEGATIVE), kernels_of(EXP))
    assert [type(lacking.next_report()) for _ in range(2)] == [Loaded] * 2
    assert lacking.completed(1) == [OTHER_SLOW]


def test_rows_that_lack_kernels_fail_when_the_thread_ends_and_what_they_hold_up_is_completed(lacking: World) -> None:
    one, other = session("a"), session("b")
    rows = lacking.run(SLOW, one, other)
    lacking.run(FAST, one)
    assert lacking.next_report() == lacks(one, other)
    lacking.thread.stop(DEADLINE_S)
    assert not lacking.thread.is_running
    report = lacking.next_report()
    assert isinstance(report, Ran)
    assert [(failed.row, failed.case) for failed in report.failed] == [(row, "cancelled") for row in rows]
    assert lacking.completed(1) == [FAST]
