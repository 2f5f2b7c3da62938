"""What an engine tells when somebody asks for it: too much for each snapshot, of which most readers want the counts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from fusewire_server.engine.engine import Engine
from fusewire_server.figures import Described, fact, gauge, joined, newest, together
from fusewire_server.programs.recent import EndedSession, RecentFailure, SlowSegment


@dataclass(frozen=True)
class BlockView(Described):
    """The blocks of one size in the device's memory pool."""

    size_bytes: int = fact(default=0)
    """Size of each block; of those that the pool does not keep, the next power of two."""
    free: int = gauge()
    """Blocks that are kept for later allocations."""
    live: int = gauge()
    """Blocks in use."""


def _blocks(lists: Sequence[Iterable[BlockView]]) -> tuple[BlockView, ...]:
    sizes: dict[int, list[BlockView]] = {}
    for block in together(lists):
        sizes.setdefault(block.size_bytes, []).append(block)
    return tuple([joined(sizes[size]) for size in sorted(sizes)])


@dataclass(frozen=True)
class Details(Described):
    """The blocks of the device's memory by size, and what happened last in all sessions, the newest first."""

    blocks: tuple[BlockView, ...] = gauge(join=_blocks, default=())
    failures: tuple[RecentFailure, ...] = gauge(join=newest, default=())
    ended_sessions: tuple[EndedSession, ...] = gauge(join=newest, default=())
    slow_segments: tuple[SlowSegment, ...] = gauge(join=newest, default=())


def details_of(engine: Engine) -> Details:
    """Returns the details of an engine. Runs on the engine thread; sizes of blocks and events are few."""
    counters = engine.counters
    return Details(
        blocks=tuple([BlockView(*each) for each in engine.device.block_counts()]),
        failures=tuple(reversed(counters.recent_failures)),
        ended_sessions=tuple(reversed(counters.recently_ended)),
        slow_segments=tuple([row.shown() for row in reversed(counters.slow_rows)]),
    )
