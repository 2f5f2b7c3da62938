"""Runs at tier 0 that lack kernels: the device thread sets them aside until the kernels have come or never will."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.errors import OutOfMemory
from fusewire_server.device.orders import FailedRow, Lacks, Load, Loaded, NoKernel, Ran, Release, Unloadable
from fusewire_server.sessions.session import Session, SessionState
from tests.server.device.runs_alone import KernelDevice
from tests.server.device_world import DEADLINE_S, FAST, OTHER_FAST, OTHER_SLOW, SLOW, World
from tests.server.parts import EXP, NEGATIVE, chain, entry_of, session


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
