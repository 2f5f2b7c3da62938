"""Notes what a session does while a profile is on. Any thread calls it, a few times a segment, frame, read or wait."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from types import FrameType
from typing import Any

from fusewire._profile.events import (
    NO_LINE,
    Fetched,
    Framed,
    Line,
    NamedOps,
    ProgramFacts,
    Sealed,
    Uploaded,
    Waited,
)
from fusewire._recording.cutting.drafts import Draft
from fusewire._recording.places import source_line
from fusewire._recording.recorder import Recorder
from fusewire._recording.source_lines import is_internal

MOST_EVENTS = 1 << 18  # of each kind, so that a long profile needs a bounded memory
MOST_NAMED = 1 << 20
_MOST_TOLD_OPS = 256  # of a program
_ASK_AFTER_SEGMENTS = 512  # so that the server's ring, which holds some thousand runs, loses none
_ASK_AFTER_NS = 250_000_000


class Collector:
    """The events of one session. A list grows by one call, which no other thread interrupts."""

    def __init__(self, ask: Callable[[], None]) -> None:
        """`ask` asks the server how segments have run, without waiting for the answer."""
        self._ask = ask
        self._asked_at = (0, time.monotonic_ns())  # segments, and time
        self.threads: dict[int, str] = {}
        self.sealed: list[Sealed] = []
        self.framed: list[Framed] = []
        self.waited: list[Waited] = []
        self.fetched: list[Fetched] = []
        self.answered: dict[int, int] = {}
        self.uploaded: list[Uploaded] = []
        self.named: list[NamedOps] | list[tuple[int, int, str]] = []
        self.programs: dict[int, ProgramFacts] = {}
        self.lines: dict[int, Line] = {}
        self.left_out = 0

    def on_sealed(self, recorder: Recorder, draft: Draft, program: int, trigger: str, began_ns: int) -> None:
        """Notes that a draft was committed and posted. Called under the recorder's lock."""
        now_ns, here = time.monotonic_ns(), self._here()
        place = self._place(recorder, draft.first)
        if program not in self.programs:
            self.programs[program] = self._facts(recorder, draft)
        iterations = draft.rolled.iterations
        ops = draft.piece.ops * (iterations if draft.is_body else 1)
        recorded_by = recorder.thread or here
        event = Sealed(here, recorded_by, began_ns or now_ns, now_ns, draft.first, ops, iterations, program, place, trigger)
        self._add(self.sealed, event)
        segments, asked_ns = self._asked_at
        if len(self.sealed) - segments >= _ASK_AFTER_SEGMENTS or now_ns - asked_ns >= _ASK_AFTER_NS:
            self._asked_at = (len(self.sealed), now_ns)
            self._ask()

    def on_framed(self, number: int, size_bytes: int, bases: Sequence[int]) -> None:
        self._add(self.framed, Framed(time.monotonic_ns(), number, size_bytes, tuple(bases)))

    def on_fetched(self, fetch: int, handle: int) -> None:
        self._add(self.fetched, Fetched(time.monotonic_ns(), fetch, handle, users_line()))

    def on_answered(self, fetch: int) -> None:
        if len(self.answered) < MOST_EVENTS:
            self.answered.setdefault(fetch, time.monotonic_ns())

    def on_waited(self, kind: str, began_ns: int, fetch: int = 0) -> None:
        """Notes that this thread has waited since `began_ns`."""
        line = self.fetched[-1].line if self.fetched and self.fetched[-1].fetch == fetch else users_line()
        self._add(self.waited, Waited(self._here(), kind, began_ns, time.monotonic_ns(), line, fetch))

    def on_uploaded(self, size_bytes: int) -> None:
        self._add(self.uploaded, Uploaded(time.monotonic_ns(), size_bytes))

    def _add(self, events: list[Any], event: Any) -> None:
        if len(events) < MOST_EVENTS:
            events.append(event)
        else:
            self.left_out += 1

    def _here(self) -> int:
        thread = threading.get_ident()
        if thread not in self.threads:
            self.threads[thread] = threading.current_thread().name
        return thread

    def _place(self, recorder: Recorder, number: int) -> int:
        """Returns the number of the place of an op. Looks up its line at once: a place may be dropped later."""
        place: int = recorder.place_of_op(number)
        if place not in self.lines:
            found = source_line(place)
            self.lines[place] = NO_LINE if found is None else Line(*found)
        return place

    def _facts(self, recorder: Recorder, draft: Draft) -> ProgramFacts:
        op_count = draft.piece.ops // max(draft.piece.bodies, 1)
        end = draft.first + min(op_count, _MOST_TOLD_OPS)
        places = [self._place(recorder, number) for number in range(draft.first, end)]
        return ProgramFacts(op_count, recorder.names_of(draft.first, end), tuple([self.lines[each] for each in places]))


def users_line() -> Line:
    """Returns the innermost line on this thread's stack that is neither the client's nor PyTorch's."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and _is_library(frame):
        frame = frame.f_back
    return NO_LINE if frame is None else Line(frame.f_code.co_filename, frame.f_lineno)


def _is_library(frame: FrameType) -> bool:
    return is_internal(frame) or str(frame.f_globals.get("__name__", "")).startswith("torch.")
