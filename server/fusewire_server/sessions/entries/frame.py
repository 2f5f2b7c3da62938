"""Describes a frame that is being applied: its items, the tables that the items use, and their effects. Plain data."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import NamedTuple

from fusewire_protos.frames import Entry, NewProgram
from fusewire_protos.in_steps import InSteps
from fusewire_protos.programs.program import Program
from fusewire_server.config.config import Limits
from fusewire_server.programs.claim import Rejected
from fusewire_server.programs.program_table import ProgramTable
from fusewire_server.sessions.effects import Effects
from fusewire_server.sessions.session import Session


class UnreadProgram(NamedTuple):
    """A new program whose bytes are being read."""

    new: NewProgram
    reading: InSteps[Program | Rejected]


class Unfinished(NamedTuple):
    """An entry of which some steps are done. Each further step is sent the frame that it is a part of."""

    steps: Generator[None, Frame, None]


# A frame's new programs come before its entries.
Item = NewProgram | UnreadProgram | Entry | Unfinished


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


def begin(steps: Generator[None, Frame, None]) -> Unfinished | None:
    """Does the first step of an entry. Returns what is left of the entry, or None if nothing is."""
    for _ in steps:
        return Unfinished(steps)
    return None


def go_on(frame: Frame, unfinished: Unfinished) -> Unfinished | None:
    """Does the next step of an entry. Returns what is left of the entry, or None if nothing is."""
    try:
        unfinished.steps.send(frame)
    except StopIteration:
        return None
    return unfinished
