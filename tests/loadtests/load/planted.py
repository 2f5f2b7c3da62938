"""Worker processes with a planted fault each. A test passes one of them to `LoadTest` in the place of `serve`."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import numpy.typing as npt

import fusewire as fw
from loadtests.load import session_runner, worker
from loadtests.load.worker import FUSEWIRE, Assignment
from loadtests.scenarios import library, rnn
from loadtests.scenarios.library import Library

Read = Callable[[Any], npt.NDArray[Any]]

_FAULTY_READ = 50


def _serve_with(read_of: Callable[[Read], Read], connection: Connection, assignment: Assignment) -> None:
    """Serves with another way to read in the first session."""
    healthy = library.fusewire
    sessions: list[fw.Session] = []

    def faulty(session: fw.Session) -> Library:
        xp = healthy(session)
        sessions.append(session)
        is_first = len(sessions) == 1 and 0 in assignment.sessions
        return xp._replace(read=read_of(xp.read)) if is_first else xp

    worker.library.fusewire = faulty  # type: ignore[attr-defined]  # this process has the fault
    worker.serve(connection, assignment)


def wrong_bit(connection: Connection, assignment: Assignment) -> None:
    """One bit of one value is wrong."""
    reads = 0

    def read_of(healthy: Read) -> Read:
        def read(array: Any) -> npt.NDArray[Any]:
            nonlocal reads
            reads += 1
            value = np.array(healthy(array))
            if reads == _FAULTY_READ:
                value.view(np.uint32).reshape(-1)[0] ^= 1
            return value

        return read

    _serve_with(read_of, connection, assignment)


def stall(connection: Connection, assignment: Assignment) -> None:
    """A read takes 300 ms longer, once a second."""
    stalled_at_s = time.monotonic()

    def read_of(healthy: Read) -> Read:
        def read(array: Any) -> npt.NDArray[Any]:
            nonlocal stalled_at_s
            if time.monotonic() > stalled_at_s + 1:
                time.sleep(0.3)
                stalled_at_s = time.monotonic()
            return healthy(array)

        return read

    _serve_with(read_of, connection, assignment)


def leak(connection: Connection, assignment: Assignment) -> None:
    """The process takes 4 MiB a second more."""
    kept: list[bytes] = []

    def grow() -> None:
        while True:
            kept.append(b"x" * (1 << 20))
            time.sleep(0.25)

    threading.Thread(target=grow, daemon=True).start()
    worker.serve(connection, assignment)


def lost_wake_up(connection: Connection, assignment: Assignment) -> None:
    """A read never returns."""
    reads = 0
    worker.END_DEADLINE_S = 2.0

    def read_of(healthy: Read) -> Read:
        def read(array: Any) -> npt.NDArray[Any]:
            nonlocal reads
            reads += 1
            if reads == _FAULTY_READ:
                threading.Event().wait(60)
            return healthy(array)

        return read

    _serve_with(read_of, connection, assignment)


def half_the_work(connection: Connection, assignment: Assignment) -> None:
    """The peer does half of the iterations."""
    if assignment.library != FUSEWIRE:
        rnn._ITERATIONS //= 2
    worker.serve(connection, assignment)


def death(connection: Connection, assignment: Assignment) -> None:
    """The process ends while its sessions run."""
    runner = session_runner.SessionRunner
    healthy = runner.start

    def start(self: session_runner.SessionRunner, began_ns: int) -> None:
        healthy(self, began_ns)
        threading.Timer(0.5, lambda: os._exit(3)).start()

    runner.start = start  # type: ignore[method-assign]  # this process has the fault
    worker.serve(connection, assignment)
