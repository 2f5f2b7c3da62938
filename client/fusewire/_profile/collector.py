"""Notes what a session does while a profile is on. Any thread calls it, a few times a segment, frame, read or wait."""

from __future__ import annotations

import sys
import threading
import time
from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from fusewire._profile.events import (
    NO_LINE,
    Asked,
    Fetched,
    Framed,
    Line,
    ProgramFacts,
    Sealed,
    SessionEvents,
    Uploaded,
    Waited,
)
from fusewire._recording.cutting.drafts import Draft
from fusewire._recording.places import NOT_KNOWN, source_line
from fusewire._recording.recorded_ops import user_place
from fusewire._recording.recorder import Recorder
from fusewire_protos.frames import HANDLES_PER_RECORDER

MOST_EVENTS = 1 << 16  # of each kind, the first ones, so that a long profile needs a bounded memory
_MOST_SHOWN_OPS = 256  # of a program
_MOST_PROGRAMS = 1 << 12  # that are told
_ASK_AFTER_SEGMENTS = 512  # so that the server's ring, which holds some thousand runs, loses none
_NAMED_CALLS = 1 << 12  # of another library that are named after each new program
_ASK_AFTER_NS = 250_000_000


# One call of another library, such as PyTorch: the number of its first op, that behind the last, and its name.
NamedOps = tuple[int, int, str]


class Collector:
    """The events of one session. A list grows by one call, which no other thread interrupts."""

    def __init__(self, ask: Callable[[], object]) -> None:
        """`ask` asks the server how segments have run, without waiting for the answer."""
        self._ask = ask
        self._asked_at = (0, time.monotonic_ns())  # segments, and time
        self._named: list[NamedOps] = []  # of ops that are not sent yet, in order
        self._users_threads: dict[int, int] = {}  # recorder that threads share -> the thread of the user's code
        self._calls_left = _NAMED_CALLS  # of another library that are to be named
        self._named_from: dict[int, int] = {}  # recorder -> the number of the first op since which all calls are named
        self._told_early: set[int] = set()  # programs of which all uses so far had ops before that
        self.threads: dict[int, str] = {}
        # Of these events the fields, as plain tuples take a fifth of the time: `events` makes what they are.
        self._sealed: list[tuple[Any, ...]] = []
        self._framed: list[tuple[Any, ...]] = []
        self._waited: list[tuple[Any, ...]] = []
        self._fetched: list[tuple[Any, ...]] = []
        self._uploaded: list[tuple[Any, ...]] = []
        self.answered: dict[int, int] = {}
        self.programs: dict[int, ProgramFacts] = {}
        self.lines: dict[int, Line] = {}
        self.left_out = 0

    def on_begin(self, recorders: Iterable[Recorder]) -> None:
        """Notes which ops were recorded before the block."""
        self._named_from = {_index(each.first): each.next_number for each in recorders}

    def on_sealed(self, recorder: Recorder, draft: Draft, program: int, trigger: str, began_ns: int) -> None:
        """Notes that a draft was committed and posted. Called under the recorder's lock."""
        now_ns, here, index = time.monotonic_ns(), self._here(), _index(draft.first)
        place, end = recorder.place_of_op(draft.first), draft.first + draft.piece.ops
        self._line(place)
        self._tell_program(recorder, draft, program)
        of_recorder = bisect_left(self._named, (recorder.first,))  # before them are those of other recorders
        del self._named[of_recorder : bisect_left(self._named, (end,))]
        ops = draft.piece.ops * (draft.loop_form.iterations if draft.is_body else 1)
        recorded_by, iterations = self._users_threads.get(index) or recorder.thread, draft.loop_form.iterations
        event = (here, recorded_by, began_ns or now_ns, now_ns, draft.first, ops, iterations, program, place, trigger)
        self._add(self._sealed, event)
        self._ask_sometimes(now_ns)

    def on_named(self, recorder: Recorder, first: int, name: str) -> None:
        """Notes that another library has recorded the ops from number `first` on by a recorder that threads share.

        A thread without places in the user's code, such as autograd's, works for the thread that had one last.
        """
        if self._calls_left <= 0:
            return
        self._calls_left -= 1
        end, index = recorder.next_number, _index(first)
        self._named.append((first, end, name))
        if recorder.place_of_op(first) != NOT_KNOWN:
            self._users_threads[index] = self._here()
        elif (waiting := sys._current_frames().get(self._users_threads.get(index, 0))) is not None:
            recorder.put_places(first, [user_place(waiting)] * (end - first))

    def on_framed(self, number: int, size_bytes: int, bases: Sequence[int]) -> None:
        self._add(self._framed, (time.monotonic_ns(), number, size_bytes, tuple(bases)))

    def on_fetched(self, fetch: int, handle: int) -> None:
        self._add(self._fetched, (time.monotonic_ns(), fetch, handle, self._line_here()))

    def on_answered(self, fetch: int) -> None:
        if len(self.answered) < MOST_EVENTS:
            self.answered.setdefault(fetch, time.monotonic_ns())

    def on_waited(self, kind: str, began_ns: int, fetch: int = 0) -> None:
        """Notes that this thread has waited since `began_ns`."""
        now_ns, last = time.monotonic_ns(), self._fetched[-1] if self._fetched else None
        line = last[3] if last is not None and last[1] == fetch else self._line_here()  # most reads ask, and then wait
        self._add(self._waited, (self._here(), kind, began_ns, now_ns, line, fetch))

    def on_uploaded(self, size_bytes: int) -> None:
        self._add(self._uploaded, (time.monotonic_ns(), size_bytes))

    def events(self, name: str, asked: Sequence[Asked], notes: tuple[str, ...]) -> SessionEvents:
        """Returns all that was noted of the session `name`, with what its server answered."""
        return SessionEvents(
            name,
            self.threads,
            [Sealed(*each) for each in self._sealed],
            [Framed(*each) for each in self._framed],
            [Waited(*each) for each in self._waited],
            [Fetched(*each) for each in self._fetched],
            self.answered,
            [Uploaded(*each) for each in self._uploaded],
            self.programs,
            self.lines,
            asked,
            self.left_out,
            notes,
        )

    def _ask_sometimes(self, now_ns: int) -> None:
        segments, asked_ns = self._asked_at
        if len(self._sealed) - segments >= _ASK_AFTER_SEGMENTS or now_ns - asked_ns >= _ASK_AFTER_NS:
            self._asked_at = (len(self._sealed), now_ns)
            self._ask()

    def _add(self, events: list[tuple[Any, ...]], event: tuple[Any, ...]) -> None:
        if len(events) < MOST_EVENTS:
            events.append(event)
        else:
            self.left_out += 1

    def _here(self) -> int:
        thread = threading.get_ident()
        if thread not in self.threads:
            self.threads[thread] = threading.current_thread().name
        return thread

    def _line_here(self) -> Line:
        return self._line(user_place(sys._getframe()))

    def _line(self, place: int) -> Line:
        """Returns the line of a place, and notes it: the place may be dropped later."""
        if place not in self.lines:
            found = source_line(place)
            self.lines[place] = NO_LINE if found is None else Line(*found)
        return self.lines[place]

    def _tell_program(self, recorder: Recorder, draft: Draft, program: int) -> None:
        """Notes what a program is, at its first use, and once more at the first use of which all calls are named.

        Calls are named again for a while after each new program: a name is needed once, and takes a while to find.
        """
        if program not in self.programs and len(self.programs) == _MOST_PROGRAMS:
            return
        is_early = draft.first < self._named_from.get(_index(draft.first), 0)
        if program in self.programs and (is_early or program not in self._told_early):
            return
        if self._calls_left <= 0:
            self._named_from[_index(draft.first)], is_early = recorder.next_number, True
        self._calls_left = _NAMED_CALLS
        self.programs[program] = self._facts(recorder, draft)
        (self._told_early.add if is_early else self._told_early.discard)(program)

    def _facts(self, recorder: Recorder, draft: Draft) -> ProgramFacts:
        op_count = draft.piece.ops // max(draft.piece.bodies, 1)
        end = draft.first + min(op_count, _MOST_SHOWN_OPS)
        lines = tuple(self._line(recorder.place_of_op(number)) for number in range(draft.first, end))
        names = recorder.names_of(draft.first, end)
        return ProgramFacts(op_count, named_otherwise(names, draft.first, self._named_within(draft.first, end)), lines)

    def _named_within(self, first: int, end: int) -> list[NamedOps]:
        """Returns the calls with ops from number `first` up to `end`. The first one may have begun before."""
        return self._named[max(bisect_left(self._named, (first,)) - 1, 0) : bisect_left(self._named, (end,))]


def named_otherwise(names: Sequence[str], first: int, named: Iterable[NamedOps]) -> tuple[str, ...]:
    """Returns the names of the ops from number `first` on, with those that another library has told of some.

    Its name stands at the first op of each of its calls. The call's other ops have empty names.
    """
    new_names = [*names]
    for begin, end, name in named:
        for index in range(max(begin - first, 0), min(end - first, len(new_names))):
            new_names[index] = name if first + index == begin else ""
    return tuple(new_names)


def _index(handle: int) -> int:
    """Returns the index of the recorder that gave a handle."""
    return handle // HANDLES_PER_RECORDER
