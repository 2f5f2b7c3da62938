"""Sessions that do mixed work, each in a thread; every value is compared with NumPy's, bit for bit.

A round is a known loop, a loop that is recorded once, a new program that is used until it is compiled, and values that
travel within frames and in calls of their own. All ops have one result by IEEE 754, so NumPy has the bits.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

import fusewire as fw
from tests.faults.server import until
from tests.patience import HANGS_S

_READ_WITHIN_S = 120.0  # bounds a wait that takes much less on a quiet machine
_ELEMENTS, _LARGE = 64, 100_000
_LOOP, _RECORDED = 20, 50  # iterations
_OPS_OF_NEW = 8
OFTEN = 4  # uses of a new program; it is compiled when it has been used three times
_AGAIN_S = 0.05
_RESTARTS = "has ended, and is started again"  # which a server says of a device

Random = np.random.Generator

_OPS: Sequence[Callable[[Any, Any, Any], Any]] = (
    lambda xp, y, x: y + x,
    lambda xp, y, x: y - x,
    lambda xp, y, x: y * 0.5,
    lambda xp, y, x: xp.minimum(y, x),
    lambda xp, y, x: xp.maximum(y, x),
    lambda xp, y, x: xp.sqrt(abs(y)),
    lambda xp, y, x: -y,
)


class WrongValue(AssertionError):
    """Raised if a value is not what NumPy computes."""


def do_round(session: fw.Session, random: Random) -> None:
    """Does work of each kind. Raises WrongValue, and what the session raises."""
    for kind in random.permutation(len(_KINDS)):
        _KINDS[kind](session, random)


def _known_loop(session: fw.Session, random: Random) -> None:
    host = _drawn(random, _ELEMENTS)

    def loop(x: Any) -> Any:
        y = x
        for _ in range(_LOOP):
            y = y * 0.5 + x
        return y

    _compare("the known loop", loop(session.array(host)), loop(host))


def _recorded_loop(session: fw.Session, random: Random) -> None:
    host = _drawn(random, _ELEMENTS)
    x = session.array(host)
    expected = host
    for _ in range(_RECORDED):
        expected = expected * 0.25 - host
    _compare("the recorded loop", fw.fori_loop(_RECORDED, lambda _, y: y * 0.25 - x, x), expected)


def _new_program(session: fw.Session, random: Random) -> None:
    ops = random.integers(len(_OPS), size=_OPS_OF_NEW)

    def compute(xp: Any, x: Any) -> Any:
        y = x
        for op in ops:
            y = _OPS[op](xp, y, x)
        return y

    for _ in range(OFTEN):
        host = _drawn(random, _ELEMENTS)
        _compare(f"the program {ops}", compute(fw, session.array(host)), compute(np, host))


def _values(session: fw.Session, random: Random) -> None:
    for elements in (1, _LARGE):
        host = _drawn(random, elements)
        array = session.array(host)
        _compare(f"{elements} elements", array, host)
        _compare(f"{elements} elements, doubled", array * 2.0, host * 2.0)


_KINDS = (_known_loop, _recorded_loop, _new_program, _values)


def _drawn(random: Random, elements: int) -> Any:
    return random.normal(size=elements).astype(np.float32)


def _compare(what: str, found: fw.Array, expected: Any) -> None:
    value = found.numpy(timeout=_READ_WITHIN_S)
    if value.dtype != expected.dtype or value.tobytes() != expected.tobytes():
        raise WrongValue(f"{what}: {value} is not {expected}")


class Loss(NamedTuple):
    """When a session told that it was lost, on the monotonic clock, and what it said."""

    at_s: float
    text: str


@dataclass
class Seen:
    """What the sessions have done and seen so far. `failures` are wrong values and all errors but expected losses."""

    rounds_of: dict[int, int] = field(default_factory=dict)  # by the number of the client
    worst_round_s: float = 0.0
    failures: list[str] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)

    @property
    def rounds(self) -> int:
        return sum(self.rounds_of.values())

    def wait_until_work(self, within_s: float, numbers: Collection[int] | None = None) -> float:
        """Waits until each of these clients, or all, has done one more round. Returns the seconds that this took."""
        before = {number: self.rounds_of[number] for number in (numbers or self.rounds_of)}
        return until(
            lambda: bool(self.failures) or all(self.rounds_of[each] > rounds for each, rounds in before.items()),
            within_s,
        )


class Connect(NamedTuple):
    """How each session is opened, and whether it may be lost; then another is opened."""

    target: str
    token: str
    tls_ca: str | None = None
    may_be_lost: bool = False
    rounds: int = 0  # after which a session is closed, and another one opened; 0 for never
    local: bool = True  # whether it may go on over local calls
    device: int | None = None  # which the session is to be on
    pause_s: float = 0.0  # between rounds

    def session(self) -> fw.Session:
        return fw.connect(
            self.target,
            token=self.token,
            tls_ca=self.tls_ca,
            timeout=_READ_WITHIN_S,
            local=self.local,
            device=self.device,
        )


@contextmanager
def mixed_load(*connects: Connect, seed: int = 0) -> Iterator[Seen]:
    """Lets a session work for each of `connects` while the `with` body runs, which begins after the first rounds."""
    seen, stop = Seen(), threading.Event()
    clients = [_Client(number, connect, seed, seen, stop) for number, connect in enumerate(connects)]
    threads = [threading.Thread(target=client.work, name="mixed load") for client in clients]
    for thread in threads:
        thread.start()
    try:
        for client in clients:
            assert client.has_begun.wait(HANGS_S), "a session hangs in its first round"
        yield seen
    finally:
        stop.set()
        for thread in threads:
            thread.join(HANGS_S)
    assert not any(thread.is_alive() for thread in threads), "a session hangs"


class _Client:
    """One session after another, in one thread."""

    def __init__(self, number: int, connect: Connect, seed: int, seen: Seen, stop: threading.Event) -> None:
        self.has_begun = threading.Event()  # or has failed
        self._number = number
        self._connect = connect
        self._random = np.random.default_rng((seed, number))
        self._seen = seen
        seen.rounds_of[number] = 0
        self._stop = stop

    def work(self) -> None:
        try:
            while not self._stop.is_set():
                self._work_until_lost()
        except Exception as error:  # noqa: BLE001 - whatever a client sees is told
            self._seen.failures.append(repr(error))
        finally:
            self.has_begun.set()

    def _work_until_lost(self) -> None:
        try:
            session = self._connect.session()
        except (fw.SessionLost, fw.ConfigurationError) as refusal:
            if not self._connect.may_be_lost or not (isinstance(refusal, fw.SessionLost) or _RESTARTS in str(refusal)):
                raise
            self._stop.wait(_AGAIN_S)  # there is no server now, or no engine of the device
            return
        try:
            with session:
                self._work_in(session)
        except fw.SessionLost as loss:
            if not self._connect.may_be_lost:
                raise
            self._seen.losses.append(Loss(time.monotonic(), str(loss)))

    def _work_in(self, session: fw.Session) -> None:
        rounds = 0
        while not self._stop.is_set() and (rounds < self._connect.rounds or not self._connect.rounds):
            began_s = time.monotonic()
            do_round(session, self._random)
            rounds += 1
            self._seen.rounds_of[self._number] += 1
            self._seen.worst_round_s = max(self._seen.worst_round_s, time.monotonic() - began_s)
            self.has_begun.set()
            self._stop.wait(self._connect.pause_s)
