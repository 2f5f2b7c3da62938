"""A quiet client whose results are checked, beside an attack, and what the attack costs the server meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.client import HTTPConnection
from multiprocessing import get_context
from multiprocessing.synchronize import Event

import numpy as np
import psutil

import fusewire as fw
from fusewire.testing import ServerProcess
from tests.bounds import Bounded

_ATTACK_S = 5.0
_PAUSE_S = 0.05
_LOOK_S = 0.02
_DEADLINE_S = 30.0
_SETTLED_S = 2.0

STRANGERS_GROWTH_BYTES = 170 << 20
LEFT_BYTES = 80 << 20  # the allocator keeps freed memory for later; floods of messages leave 45 MiB of it
STEP_S = 2.0
NEWCOMER_S = 2.0
HEALTH_S = 1.0

Attack = Callable[[str, str], None]


@dataclass
class Observed:
    """What was seen during an attack, and for the memory also after it. `failures` are errors and wrong results."""

    before_bytes: int = 0  # the server's resident memory before the attack
    growth_bytes: int = 0  # the most by which the server's resident memory grew
    left_bytes: int = 0  # the growth that was left after the attack
    worst_step_s: float = 0.0
    worst_newcomer_s: float = 0.0  # from connecting to a result
    worst_health_s: float = 0.0
    steps: int = 0  # of the quiet client
    failures: list[str] = field(default_factory=list)

    def check(self, bounded: Bounded, growth_bytes: int = STRANGERS_GROWTH_BYTES) -> None:
        """Fails if something has failed, or if a number that was measured exceeds its limit."""
        assert self.failures == []
        for name, (what, limit, unit) in _limits(growth_bytes).items():
            if getattr(self, name) > 0:
                bounded(what, getattr(self, name), limit, unit)

    def faults(self) -> list[str]:
        """Returns the failures, and the name of each number that exceeds its limit."""
        limits = _limits(STRANGERS_GROWTH_BYTES)
        return self.failures + [name for name, (_, limit, _) in limits.items() if getattr(self, name) > limit]


def _limits(growth_bytes: int) -> dict[str, tuple[str, float, str]]:
    """What each number is, its limit, and its unit."""
    return {
        "growth_bytes": ("growth of the server's memory", growth_bytes, "B"),
        "left_bytes": ("growth that is left", LEFT_BYTES, "B"),
        "worst_step_s": ("longest step of a quiet client", STEP_S, "s"),
        "worst_newcomer_s": ("longest time until a newcomer has a result", NEWCOMER_S, "s"),
        "worst_health_s": ("longest answer to a health check", HEALTH_S, "s"),
    }


def observe(server: ServerProcess, token: str, attack: Attack, target: str, attackers_token: str = "") -> Observed:
    """Runs an attack on `target` for a while, beside a quiet client, a newcomer and a health check."""
    process = psutil.Process(server.pid)
    with watching(server, token) as observed:
        with running(attack, target, attackers_token):
            time.sleep(_ATTACK_S)
        ends_at_s = time.monotonic() + _SETTLED_S
        while (left_bytes := process.memory_info().rss - observed.before_bytes) > 0 and time.monotonic() < ends_at_s:
            time.sleep(_LOOK_S)
        observed.left_bytes = left_bytes
    return observed


@contextmanager
def watching(server: ServerProcess, token: str, *, newcomers: bool = True) -> Iterator[Observed]:
    """Lets a quiet client work while the `with` body runs, and looks at the server's memory.

    `newcomers`: also opens sessions and asks for the health of the server, again and again.
    """
    process = psutil.Process(server.pid)
    with fw.connect(server.grpc, token=token) as session:
        step = _Step(session)
        step()
        observed = Observed(before_bytes=process.memory_info().rss)

        def step_and_count() -> None:
            step()
            observed.steps += 1

        acts: dict[str, Callable[[], None]] = {"worst_step_s": step_and_count}
        if newcomers:
            acts["worst_newcomer_s"] = lambda: join(server.grpc, token)
            acts["worst_health_s"] = lambda: _ask_health(server.http)
        stop = threading.Event()
        watches = [threading.Thread(target=_repeat, args=(observed, *act, stop)) for act in acts.items()]
        watches.append(threading.Thread(target=_watch_memory, args=(observed, process, stop)))
        for watch in watches:
            watch.start()
        try:
            yield observed
        finally:
            stop.set()
            for watch in watches:
                watch.join(_DEADLINE_S)


@contextmanager
def working_until_dismissed(server: ServerProcess, token: str) -> Iterator[None]:
    """Lets a quiet client work until its server ends its session, which the `with` body brings about.

    Fails if a result is wrong, or if the server does not tell the client that it ends.
    """
    with fw.connect(server.grpc, token=token) as session, ThreadPoolExecutor(1) as threads:
        stop = threading.Event()
        work = threads.submit(_work_until_dismissed, session, stop)
        try:
            yield
            work.result(_DEADLINE_S)
        finally:
            stop.set()


def _work_until_dismissed(session: fw.Session, stop: threading.Event) -> None:
    with suppress(fw.SessionClosed):
        step = _Step(session)
        while not stop.wait(_PAUSE_S):
            step()


class _Step:
    """A step of the quiet client. Its result depends on the step and on an array of its own."""

    def __init__(self, session: fw.Session) -> None:
        self._host = np.random.default_rng(1).normal(size=64).astype(np.float32)
        self._array = session.array(self._host)
        self._number = 0

    def __call__(self) -> None:
        self._number += 1
        found = (self._array * float(self._number) + 1.0).numpy()
        expected = self._host * np.float32(self._number) + np.float32(1.0)
        assert found.tobytes() == expected.tobytes(), f"step {self._number}: a wrong result"


def join(target: str, token: str) -> None:
    with fw.connect(target, token=token) as session:
        _Step(session)()


def _ask_health(target: str) -> None:
    connection = HTTPConnection(target, timeout=_DEADLINE_S)
    try:
        connection.request("GET", "/livez")
        assert connection.getresponse().status == 200
    finally:
        connection.close()


def _watch_memory(observed: Observed, process: psutil.Process, stop: threading.Event) -> None:
    while not stop.wait(_LOOK_S):
        observed.growth_bytes = max(observed.growth_bytes, process.memory_info().rss - observed.before_bytes)


def _repeat(observed: Observed, worst: str, act: Callable[[], None], stop: threading.Event) -> None:
    while not stop.is_set():
        began_s = time.monotonic()
        try:
            act()
        except Exception as error:  # noqa: BLE001 - whatever a client sees of an attack is told
            observed.failures.append(f"{worst}: {error!r}")
        setattr(observed, worst, max(getattr(observed, worst), time.monotonic() - began_s))
        stop.wait(_PAUSE_S)


@contextmanager
def running(attack: Attack, target: str, token: str) -> Iterator[int]:
    """Runs an attack while the `with` body runs. Yields the id of the attacking process once the attack has begun.

    Fails if the attack ends by itself: it has failed, or the server has answered otherwise than it should.
    """
    context = get_context("spawn")
    begun = context.Event()
    process = context.Process(target=_begin, args=(begun, attack, target, token), daemon=True)
    process.start()
    assert process.pid is not None
    try:
        assert begun.wait(_DEADLINE_S)  # its process takes seconds to import what it needs
        yield process.pid
        assert process.is_alive(), "the attack has ended by itself; its process has written the reason"
    finally:
        process.kill()
        process.join(_DEADLINE_S)


def _begin(begun: Event, attack: Attack, target: str, token: str) -> None:
    begun.set()
    attack(target, token)
