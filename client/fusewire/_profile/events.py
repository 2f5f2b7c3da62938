"""What is noted of one session while a profile is on: plain data, on the clock of this process."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from fusewire_protos.profiled import Profiled


class Line(NamedTuple):
    """A line of the user's code."""

    file: str
    line: int


NO_LINE = Line("", 0)


class Sealed(NamedTuple):
    """A segment was cut and posted, by the thread `thread`, for ops that the thread `recorded_by` recorded.

    `recorded_by` is 0 if it is not known. Its ops have the numbers from `base` on; `program` is the program's number,
    and `place` that of the first op.
    """

    thread: int
    recorded_by: int
    began_ns: int
    ended_ns: int
    base: int
    ops: int
    iterations: int
    program: int
    place: int
    trigger: str


class Framed(NamedTuple):
    """A frame was made; `bases` are those of its segments."""

    at_ns: int
    number: int
    size_bytes: int
    bases: tuple[int, ...]


class Waited(NamedTuple):
    """A thread waited for a value ("read", with the number of the fetch) or for credit ("credit")."""

    thread: int
    kind: str
    began_ns: int
    ended_ns: int
    line: Line
    fetch: int = 0


class Fetched(NamedTuple):
    """A value was asked for."""

    at_ns: int
    fetch: int
    handle: int
    line: Line


class Uploaded(NamedTuple):
    """A value was posted."""

    at_ns: int
    size_bytes: int


class ProgramFacts(NamedTuple):
    """What is known of a program: the names of its first ops, their lines at its first use, and how many it has."""

    op_count: int
    names: tuple[str, ...]
    lines: tuple[Line, ...]


class Asked(NamedTuple):
    """A question to the server, with its answer."""

    posted_ns: int
    answered_ns: int
    answer: Profiled


class SessionEvents(NamedTuple):
    """All that was noted of a session. `answered` has the time of the answer of each fetch."""

    name: str
    threads: Mapping[int, str]
    sealed: Sequence[Sealed] = ()
    framed: Sequence[Framed] = ()
    waited: Sequence[Waited] = ()
    fetched: Sequence[Fetched] = ()
    answered: Mapping[int, int] = {}
    uploaded: Sequence[Uploaded] = ()
    programs: Mapping[int, ProgramFacts] = {}
    lines: Mapping[int, Line] = {}  # by the number of a place
    asked: Sequence[Asked] = ()
    left_out: int = 0  # events for which there was no room
    notes: tuple[str, ...] = ()
