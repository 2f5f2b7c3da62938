"""What the server in memory keeps of what it receives."""

from __future__ import annotations

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing import MemoryServer, memory_server, session_in_memory


def test_a_long_test_needs_no_more_and_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_server, "_MOST_KEPT", 5)
    server = MemoryServer()
    with session_in_memory(server) as session:
        for length in range(1, 21):
            (session.array(np.zeros(length)) + 1).numpy()
    assert len(server.entries) == 5
    assert [new.number for new in server.new_programs] == list(range(15, 20))


def loop(session: fw.Session, iterations: int) -> fw.Array:
    result: fw.Array = fw.fori_loop(iterations, lambda i, carry: carry + 1, session.array(np.zeros(3)))
    return result


def failing_loop(iterations: int) -> MemoryServer:
    """A server on which the first segment of `loop` fails."""
    known, server = MemoryServer(), MemoryServer()
    with session_in_memory(known) as session:
        loop(session, iterations).numpy()
    server.failing[known.segments[0].base] = "out_of_memory"
    return server


@pytest.mark.parametrize("iterations", [1, 5])
def test_a_segment_that_is_to_fail_has_no_result_however_often_it_repeats(iterations: int) -> None:
    server = failing_loop(iterations)
    with session_in_memory(server) as session, pytest.raises(MemoryError, match="it failed"):
        loop(session, iterations).numpy()
    assert [segment.repetition.iterations for segment in server.segments] == [iterations]


def test_a_loop_that_depends_on_a_failed_segment_fails_too() -> None:
    with session_in_memory(failing_loop(4)) as session, pytest.raises(fw.FusewireError):
        fw.fori_loop(3, lambda i, carry: carry * 2, loop(session, 4)).numpy()
