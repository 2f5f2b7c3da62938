"""Worker processes with a planted fault each. A test passes one of them to `LoadTest` in the place of `serve`."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from functools import partial
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import numpy.typing as npt

import fusewire as fw
from loadtests.load import worker
from loadtests.load.runners.clock import MONOTONIC_CLOCK, Clock
from loadtests.load.runners.reads import digest_of
from loadtests.load.runners.session_runner import SessionRunner
from loadtests.load.worker import FUSEWIRE, Assignment
from loadtests.scenarios import library
from loadtests.scenarios.library import Library
from loadtests.scenarios.networks import rnn

Read = Callable[[Any], npt.NDArray[Any]]

_FAULTY_READ = 50


def _serve_all_with(read_of: Callable[[Read], Read], connection: Connection, assignment: Assignment) -> None:
    """Serves with another way to read in every session, also in those that run alone."""
    healthy = library.fusewire

    def faulty(session: fw.Session) -> Library:
        xp = healthy(session)
        return xp._replace(read=read_of(xp.read))

    worker.library.fusewire = faulty  # type: ignore[attr-defined]  # this process has the fault
    worker.serve(connection, assignment)


def _serve_with(read_of: Callable[[Read], Read], connection: Connection, assignment: Assignment) -> None:
    """Serves with another way to read in the first session, which is healthy when it runs alone."""
    opened = 0

    def read_of_first(healthy: Read) -> Read:
        nonlocal opened
        opened += 1
        return read_of(healthy) if opened == 1 and 0 in assignment.sessions else healthy

    _serve_all_with(read_of_first, connection, assignment)


def _with_a_wrong_bit(value: npt.NDArray[Any]) -> npt.NDArray[Any]:
    wrong = np.array(value)
    wrong.view(np.uint32).reshape(-1)[0] ^= 1
    return wrong


def _wrong_where(is_faulty: Callable[[int], bool]) -> Callable[[Read], Read]:
    """Makes the lowest bit of a session's k-th value wrong, where `is_faulty(k)`."""

    def read_of(healthy: Read) -> Read:
        reads = 0

        def read(array: Any) -> npt.NDArray[Any]:
            nonlocal reads
            reads += 1
            value = healthy(array)
            return _with_a_wrong_bit(value) if is_faulty(reads) else value

        return read

    return read_of


def wrong_bit(connection: Connection, assignment: Assignment) -> None:
    """One bit of one value is wrong."""
    _serve_with(_wrong_where(lambda reads: reads == _FAULTY_READ), connection, assignment)


def wrong_bit_again_and_again(connection: Connection, assignment: Assignment) -> None:
    """The same bit is wrong in each 50th value of each session, whether it runs in company or alone."""
    _serve_all_with(_wrong_where(lambda reads: reads % _FAULTY_READ == 0), connection, assignment)


def wrong_bit_of_some_values(connection: Connection, assignment: Assignment) -> None:
    """The same bit is wrong in one value of 16, wherever this value is read, in company or alone."""

    def read_of(healthy: Read) -> Read:
        def read(array: Any) -> npt.NDArray[Any]:
            value = healthy(array)
            return _with_a_wrong_bit(value) if digest_of(value)[0] < 1 << 4 else value

        return read

    _serve_all_with(read_of, connection, assignment)


def value_of_another_session(connection: Connection, assignment: Assignment) -> None:
    """A session gets a value that another session of its process has read; one that runs alone has no other."""
    others: list[npt.NDArray[Any]] = []
    opened = 0

    def read_of(healthy: Read) -> Read:
        nonlocal opened
        opened += 1
        is_first, reads = opened == 1, 0

        def read(array: Any) -> npt.NDArray[Any]:
            nonlocal reads
            reads += 1
            value = healthy(array)
            if not is_first:
                others.append(value)
            return others[-1] if is_first and others and reads == _FAULTY_READ else value

        return read

    _serve_all_with(read_of, connection, assignment)


def slow_generator(connection: Connection, assignment: Assignment) -> None:
    """A session sleeps 50 ms longer than it should before it begins a step."""

    def sleep_until(time_ns: int, stops: threading.Event) -> bool:
        return MONOTONIC_CLOCK.sleep_until(time_ns + 50_000_000, stops)

    slow = partial(SessionRunner, clock=Clock(time.monotonic_ns, sleep_until))
    worker.SessionRunner = slow  # type: ignore[assignment, attr-defined]  # this process has the fault
    worker.serve(connection, assignment)


def stall(connection: Connection, assignment: Assignment) -> None:
    """A read takes 300 ms longer, again and again with 300 ms between."""
    stalled_at_s = time.monotonic()

    def read_of(healthy: Read) -> Read:
        def read(array: Any) -> npt.NDArray[Any]:
            nonlocal stalled_at_s
            if time.monotonic() > stalled_at_s + 0.3:
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
    healthy = SessionRunner.start

    def start(self: SessionRunner, began_ns: int) -> None:
        healthy(self, began_ns)
        threading.Timer(0.5, lambda: os._exit(3)).start()

    SessionRunner.start = start  # type: ignore[assignment, method-assign]  # this process has the fault
    worker.serve(connection, assignment)
