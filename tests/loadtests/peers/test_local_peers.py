"""The local libraries: which of them run a loop, and which are skipped and named."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from multiprocessing.connection import Connection

import pytest

from loadtests.measuring.errors import WrongResult
from loadtests.measuring.workers import answer_commands
from loadtests.microbenchmarks.catalogue import MICROBENCHMARKS
from loadtests.peers import local_peers, numpy_loops
from loadtests.peers.library_process import commands_of, imported
from loadtests.peers.local_peers import LOCAL_PEERS, LocalPeer, LocalPeers, Way
from loadtests.workloads.loops import Loop, draw_rnn, result_in_numpy, run_rnn

_LOOP = Loop(draw_rnn(2, 8, seed=1), run_rnn)
_LOOPS = {"rnn": _LOOP}


def _serve_absent(connection: Connection, _loops: Mapping[str, Loop]) -> None:
    answer_commands(connection, commands_of(lambda: imported("no_such_library"), "result", "run_ns"))


def _serve_silently(connection: Connection, _loops: Mapping[str, Loop]) -> None:
    """Answers nothing until the other end is closed."""
    with suppress(EOFError, ConnectionError):
        while True:
            connection.recv()


_NUMPY = LocalPeer(numpy_loops.serve, (Way("NumPy", "result", "run_ns", 10),))
_ABSENT = LocalPeer(_serve_absent, (Way("one", "result", "run_ns", 10), Way("another", "result", "run_ns", 10)))


def test_every_backend_has_local_libraries_and_the_first_runs_op_by_op() -> None:
    assert LOCAL_PEERS.keys() == MICROBENCHMARKS.keys()
    assert [LOCAL_PEERS[backend][0].ways[0].name for backend in ("cpu", "cuda")] == ["NumPy", "torch eager"]


def test_no_two_ways_have_the_same_name() -> None:
    names = [way.name for peer in LOCAL_PEERS["cuda"] for way in peer.ways]
    assert len(set(names)) == len(names)


@pytest.mark.slow
def test_a_library_that_is_absent_is_skipped_by_name_and_the_others_are_timed() -> None:
    with LocalPeers((_ABSENT, _NUMPY), _LOOPS) as peers:
        checked = peers.checked("rnn", 5, result_in_numpy(_LOOP, 5))
        assert checked.ways["NumPy"]() > 0
    assert list(checked.ways) == ["NumPy"]
    (skipped,) = checked.skipped
    assert skipped.startswith("skipped: one, another: no_such_library is not installed here")


@pytest.mark.slow
def test_a_library_that_does_not_answer_is_ended_and_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_peers, "_FIRST_DEADLINE_S", 0.01)
    with LocalPeers((_ABSENT._replace(serve=_serve_silently),), _LOOPS) as peers:
        checked = peers.checked("rnn", 5, result_in_numpy(_LOOP, 5))
    assert checked.ways == {}
    first, second = checked.skipped
    assert first.startswith("skipped: one: a worker process did not answer")
    assert second.startswith("skipped: another: a worker process died")


@pytest.mark.slow
def test_a_wrong_result_is_not_skipped() -> None:
    with LocalPeers((_NUMPY,), _LOOPS) as peers, pytest.raises(WrongResult, match="the loop by NumPy"):
        peers.checked("rnn", 5, result_in_numpy(_LOOP, 6))


def test_the_first_command_makes_the_object_and_later_ones_use_it() -> None:
    made: list[list[int]] = []

    def make() -> list[int]:
        made.append([])
        return made[-1]

    commands = commands_of(make, "append", "copy")
    assert made == []
    commands["append"](1)
    assert (commands["copy"](), len(made)) == ([1], 1)


def test_what_making_the_object_raises_is_raised_by_every_command() -> None:
    commands = commands_of(partial(int, "no number"), "bit_length")
    for _ in range(2):
        with pytest.raises(ValueError, match="no number"):
            commands["bit_length"]()
