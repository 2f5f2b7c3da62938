"""Describes a frame that is being applied: its items, what they may use, and what they came to. Plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fusewire_protos.frames import Entry, NewProgram
from fusewire_server.config.config import Limits
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import ProgramTable
from fusewire_server.sessions.effects import Effects
from fusewire_server.sessions.session import Row, Session, Value


class FailedResults(NamedTuple):
    """Handles of results that will never exist, and why; when none is left to be minted, the inputs that die do.

    The inputs do not die before, because none of the results may have the handle of one.
    """

    failures: Iterator[tuple[int, Failure]]
    dying: tuple[int, ...] = ()


class PartlyFailed(NamedTuple):
    """A row that is queued when those of its results have failed that will never exist: the ones left, and why."""

    row: Row
    failures: Iterator[tuple[Value, Failure]]


Item = NewProgram | Entry | FailedResults | PartlyFailed  # a frame's new programs are taken before its entries


class Arrival(NamedTuple):
    """What came with a frame beside its items."""

    tensors: Sequence[bytes]
    now_ns: int


class Frame(NamedTuple):
    """A frame, or a part of one, that is being applied to its session. Items add to `effects`."""

    session: Session
    arrival: Arrival
    limits: Limits
    programs: ProgramTable
    effects: Effects
