"""A quiet client in a process of its own: it works a little, again and again, and says how long each step takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import NamedTuple

import numpy as np

import fusewire as fw

_PAUSE_S = 0.002
_WARMING_S = 0.5
_DEADLINE_S = 120.0


class Steps(NamedTuple):
    """How long steps took, ascending. `failure` says how the last of them has failed, if it has."""

    times_s: list[float]
    failure: str = ""

    def share_s(self, share: float) -> float:
        """Returns the time that this share of the steps does not exceed."""
        return self.times_s[min(int(len(self.times_s) * share), len(self.times_s) - 1)]


class QuietClient:
    """A client that keeps its session, unless a step fails."""

    def __init__(self, pipe: Connection, process: int) -> None:
        self._pipe = pipe
        self.process = process  # its id

    def work(self, for_s: float) -> Steps:
        """Works for so long, or until a step fails."""
        self._pipe.send(for_s)
        assert self._pipe.poll(_DEADLINE_S), "the quiet client hangs"
        steps: Steps = self._pipe.recv()
        return steps


@contextmanager
def quiet_client(target: str, token: str, *, local: bool = True) -> Iterator[QuietClient]:
    """Starts a quiet client. `local` says whether it may go on over local calls."""
    context = get_context("spawn")
    own, other = context.Pipe()
    process = context.Process(target=_serve, args=(other, target, token, local), daemon=True)
    process.start()
    assert process.pid is not None
    try:
        client = QuietClient(own, process.pid)
        assert client.work(_WARMING_S).failure == ""
        yield client
    finally:
        process.kill()
        process.join(_DEADLINE_S)


def _serve(pipe: Connection, target: str, token: str, local: bool) -> None:
    with suppress(EOFError):  # the test has ended
        while True:
            _serve_session(pipe, target, token, local=local)


def _serve_session(pipe: Connection, target: str, token: str, *, local: bool) -> None:
    """Works in one session until a step fails."""
    for_s = pipe.recv()
    with fw.connect(target, token=token, local=local) as session:
        array = session.array(np.arange(4, dtype=np.float32))
        while not (steps := _work(array, for_s)).failure:
            pipe.send(steps)
            for_s = pipe.recv()
    pipe.send(steps)


def _work(array: fw.Array, for_s: float) -> Steps:
    times_s: list[float] = []
    failure, ends_at_s = "", time.monotonic() + for_s
    while not failure and (began_s := time.monotonic()) < ends_at_s:
        failure = _failure_of_step(array, len(times_s))
        times_s.append(time.monotonic() - began_s)
        time.sleep(_PAUSE_S)
    return Steps(sorted(times_s), failure)


def _failure_of_step(array: fw.Array, number: int) -> str:
    """Does a step. Returns what went wrong, or an empty text."""
    try:
        found = (array * 2.0 + float(number)).numpy().tolist()
    except Exception as error:  # noqa: BLE001 - whatever a client sees of an attack is told
        return repr(error)
    return "" if found == [number, number + 2.0, number + 4.0, number + 6.0] else f"step {number}: {found}"
