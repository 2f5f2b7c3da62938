"""Describes a frame that is being applied: its items, the tables that the items use, and their effects. Plain data."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from fusewire_protos.frames import Entry, NewProgram
from fusewire_protos.in_steps import InSteps
from fusewire_protos.programs.program import Program
from fusewire_server.config.config import Limits
from fusewire_server.programs.claim import Rejected
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.program_table import ProgramTable
from fusewire_server.sessions.effects import Effects
from fusewire_server.sessions.session import Row, Session, Value


class UnreadProgram(NamedTuple):
    """A new program whose bytes are being read."""

    new: NewProgram
    reading: InSteps[Program | Rejected]


class PartlyFailed(NamedTuple):
    """A row that is queued once some of its results have failed. `failures` yields the results that must still fail."""

    row: Row
    failures: Iterator[tuple[Value, Failure]]


# A frame's new programs come before its entries.
Item = NewProgram | UnreadProgram | Entry | PartlyFailed


class Arrival(NamedTuple):
    """What comes with the items of a frame: the bytes of its small uploads, and the time."""

    tensors: Sequence[bytes]
    now_ns: int


class Frame(NamedTuple):
    """A frame, or a part of one, that is being applied to its session. Each item adds its actions to `effects`."""

    session: Session
    arrival: Arrival
    limits: Limits
    programs: ProgramTable
    effects: Effects
