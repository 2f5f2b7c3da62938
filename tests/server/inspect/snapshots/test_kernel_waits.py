"""How the kernels that rows wait for are described: the longest waits, within bounds."""

from __future__ import annotations

from fusewire_server.inspect.snapshots.kernel_waits import described, ops_by_session
from fusewire_server.inspect.snapshots.stats import KernelWaits, KernelWaitView
from fusewire_server.planning.plans import KernelWait
from tests.server.parts import session

A, B = session("a"), session("b")
S = 1_000_000_000
WAITS = [
    KernelWait("max", frozenset((B, A)), since_ns=1 * S, refusal="no space"),
    KernelWait("exp", frozenset((B,)), since_ns=3 * S, refusal=""),
]


def test_without_waits_there_is_nothing_to_tell() -> None:
    assert described([], 4 * S) == KernelWaits()
    assert ops_by_session([]) == {}


def test_each_wait_is_told_with_its_sessions_its_age_and_the_last_refusal() -> None:
    a, b = A.shown_id, B.shown_id
    assert described(WAITS, 4 * S) == KernelWaits(
        kernels=2,
        sessions=2,
        oldest_s=3.0,
        oldest=(KernelWaitView("max", 2, (a, b), 3.0, "no space"), KernelWaitView("exp", 1, (b,), 1.0, "")),
    )


def test_each_session_is_told_what_it_waits_for() -> None:
    assert ops_by_session(WAITS) == {A: ("max",), B: ("max", "exp")}


def test_an_op_of_several_kernels_is_told_once_for_a_session() -> None:
    twice = [KernelWait("max", frozenset((A,)), since_ns, "") for since_ns in (1, 2)]
    assert ops_by_session(twice) == {A: ("max",)}


def test_only_the_longest_of_many_waits_and_few_of_many_sessions_are_listed() -> None:
    many = frozenset(session(str(number)) for number in range(101))
    waits = described([KernelWait(f"op{number}", many, number, "") for number in range(101)], S)
    assert (waits.kernels, waits.sessions, len(waits.oldest)) == (101, 101, 100)
    assert (waits.oldest[0].op, waits.oldest[-1].op) == ("op0", "op99")
    assert (waits.oldest[0].waiting_sessions, len(waits.oldest[0].sessions)) == (101, 100)


def test_few_of_the_many_ops_that_a_session_waits_for_are_listed() -> None:
    waits = [KernelWait(f"op{number}", frozenset((A,)), number, "") for number in range(11)]
    assert ops_by_session(waits)[A] == tuple(f"op{number}" for number in range(10))
