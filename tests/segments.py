"""Makes segments that repeat, and finds them among entries."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fusewire_protos.frames import NO_REPETITION, Entry, Repetition, Segment


def loop_of(first: Segment, *repetition: Any, **stepped: Any) -> Segment:
    """A segment that repeats. `first` has what the first iteration binds."""
    return first._replace(repetition=Repetition(*repetition, **stepped))


def loops_among(entries: Iterable[Entry]) -> list[Segment]:
    """The segments that repeat."""
    return [each for each in entries if isinstance(each, Segment) and each.repetition is not NO_REPETITION]
