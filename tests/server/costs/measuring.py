"""What a kind of frames costs the engine thread: time and memory for each byte, and the longest step."""

from __future__ import annotations

import cProfile
import pstats
import time
import tracemalloc
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

from fusewire_server.engine.clock import Clock
from tests.server.costs.kinds import Kind
from tests.server.costs.loopback import Client, EngineThread, engine_thread
from tests.server.costs.steps import Step, noted

_PREFIX_BYTES = 5  # before each message, by gRPC
_turns = count()  # of all measurements: what the process has learnt in one does not make the next cheaper


class Cost(NamedTuple):
    """What frames of a kind cost."""

    frame_bytes: int
    loop_ns: int
    charged_ns: int  # of these, to the session that sent the frames
    longest: Step

    @property
    def ns_a_byte(self) -> float:
        return self.loop_ns / self.frame_bytes

    @property
    def is_charged(self) -> float:
        """The part of the time that is charged."""
        return self.charged_ns / self.loop_ns


class Memory(NamedTuple):
    """Host memory that frames take."""

    frame_bytes: int
    peak_bytes: int
    left_bytes: int


def cost_of(kind: Kind, size: int) -> Cost:
    """Measures a round of a kind on a server of its own."""
    with noted() as steps, _begun(kind, size, steps) as (_, client, raws):
        charged_ns = client.session.loop_ns
        steps.reset()
        _send(kind, client, raws)
        return Cost(_wire_bytes(raws), steps.total_ns, client.session.loop_ns - charged_ns, steps.longest)


def memory_of(kind: Kind, size: int) -> Memory:
    """Measures the host memory of one round."""
    with _begun(kind, size) as (_, client, raws):
        tracemalloc.start()
        try:
            _send(kind, client, raws)
            left_bytes, peak_bytes = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    return Memory(_wire_bytes(raws), peak_bytes, left_bytes)


def functions_of(kind: Kind, size: int, most: int = 3) -> list[str]:
    """The functions in which the engine thread spends most of its time, with their part of it."""
    profile = cProfile.Profile()
    with _begun(kind, size) as (server, client, raws):
        server.soon(profile.enable)
        _send(kind, client, raws)
        server.soon(profile.disable)
        client.close()
    stats: dict[tuple[str, int, str], tuple[int, int, float, float, object]] = pstats.Stats(profile).stats  # type: ignore[attr-defined]
    own = {name: figures[2] for name, figures in stats.items() if "poll" not in name[2]}
    total = sum(own.values()) or 1.0
    longest = sorted(own, key=own.__getitem__, reverse=True)[:most]
    return [f"{own[name] / total:.0%} {_shown(*name)}" for name in longest]


@contextmanager
def _begun(kind: Kind, size: int, clock: Clock = time) -> Iterator[tuple[EngineThread, Client, list[bytes]]]:
    """A new server, a client that is ready for a round, and the bytes of the frames of that round."""
    with engine_thread(clock) as server:
        client = Client(server)
        if before := kind.before(size):
            client.send(client.bytes_of(before))
        yield server, client, client.bytes_of(kind.sent(size, next(_turns)))
        client.close()


def _send(kind: Kind, client: Client, raws: Sequence[bytes]) -> None:
    (client.begin_streams if kind.opens else client.send)(raws)


def _wire_bytes(raws: Sequence[bytes]) -> int:
    return sum([len(raw) + _PREFIX_BYTES for raw in raws])


def _shown(path: str, line: int, function: str) -> str:
    return function if path == "~" else f"{Path(path).name}:{line} {function}"
