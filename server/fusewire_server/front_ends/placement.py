"""Chooses the engine of a new session. Pure: chance is passed in.

The engine that was asked for the least device time comes first, then the one with the fewest bytes. Of many engines two
are drawn and compared, because several front ends choose by the same figures, which are a little old. An engine that
runs the programs of the client's last session is compared too, with a bonus: it has their plans, and may join rows.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from random import Random
from typing import NamedTuple

MOST_PROGRAMS = 64  # of an engine that are told
DIGEST_BYTES = 8  # of each
_DRAWN = 2
_SESSION_NS = 10_000_000  # what a session is expected to ask for in a second, whatever it has asked for
_BONUS_NS = 100_000_000
_STEP_NS = 10_000_000  # less does not count


class Load(NamedTuple):
    """What an engine has to do. `programs` are beginnings of the digests of programs that its sessions hold."""

    asked_ns: int = 0  # device time: used in the last second, or waited for
    live_bytes: int = 0
    sessions: int = 0
    programs: tuple[str, ...] = ()


class EngineAt(NamedTuple):
    """An engine that takes calls on the abstract socket `name`. The ids of its sessions end with its device."""

    device: int
    name: str
    secret: bytes
    load: Load = Load()


def choose(engines: Sequence[EngineAt], programs: Collection[str], random: Random) -> EngineAt:
    """Returns one of the engines. `programs` are those of the client's last session, as engines tell theirs."""
    wanted = frozenset(programs)
    drawn = random.sample(engines, min(len(engines), _DRAWN))
    sharing = [each for each in engines if not wanted.isdisjoint(each.load.programs)]

    def rank(engine: EngineAt) -> tuple[int, int]:
        load = engine.load
        asked_ns = load.asked_ns + load.sessions * _SESSION_NS - (_BONUS_NS if engine in sharing else 0)
        return (asked_ns + random.randrange(_STEP_NS)) // _STEP_NS, load.live_bytes

    return min([*drawn, *sharing], key=rank)


def with_one_more(engine: EngineAt) -> EngineAt:
    """Returns an engine as it will be once it has a session more, which it has not told yet."""
    return engine._replace(load=engine.load._replace(sessions=engine.load.sessions + 1))


def short_digest(digest: bytes) -> str:
    """Returns the beginning of a program's digest, in hexadecimal digits, as engines report it."""
    return digest[:DIGEST_BYTES].hex()
