"""How the programs of a loop are counted, without a server."""

from __future__ import annotations

from loadtests.measuring.figure import Verdict
from loadtests.microbenchmarks.client.loop_programs import Sent, figures, fragment_ops
from loadtests.microbenchmarks.limits import held_to_limit
from loadtests.system.service import Program
from loadtests.workloads.loops import RNN_OPS


def program(digest: str, hits: int, *, is_fragment: bool) -> Program:
    return Program(digest, 4, is_fragment, 1, "loaded", hits, 0, 0, hits, hits)


def test_ops_in_fragments_are_those_of_the_uses_since_then() -> None:
    before = {"a": program("a", 3, is_fragment=True)}
    after = {
        "a": program("a", 5, is_fragment=True),
        "b": program("b", 1, is_fragment=True),
        "c": program("c", 9, is_fragment=False),
    }
    assert fragment_ops(before, after) == 4 * 2 + 4


def test_one_program_of_all_lengths_is_in_order_and_two_are_not() -> None:
    one, two = frozenset("a"), frozenset("b")
    programs, fragments = figures([Sent(5, one, RNN_OPS), Sent(100, one, 3 * RNN_OPS)])
    assert (programs.value, held_to_limit(programs, "cpu").verdict) == (1, Verdict.OK)
    assert (fragments.value, held_to_limit(fragments, "cpu").verdict) == (3.0, Verdict.OK)
    programs, _ = figures([Sent(5, one, 0), Sent(100, two, 0)])
    assert (programs.value, held_to_limit(programs, "cpu").verdict) == (2, Verdict.MISSED)
