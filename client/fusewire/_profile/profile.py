"""The profiler that users call: it profiles all sessions of the process while its block runs."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import Any, Protocol, Self
from weakref import WeakKeyDictionary, WeakSet

from fusewire._errors import ArgumentError, RequestError
from fusewire._profile.chrome_trace import trace_text
from fusewire._profile.events import SessionEvents
from fusewire._profile.html_page import page_text
from fusewire._profile.summary import summary_of
from fusewire._profile.timeline import Timeline, timeline_of
from fusewire._recording.recorder import Recorder
from fusewire._transport.deadlines import deadline_after

END_TIMEOUT_S = 60.0
NameOps = Callable[[Recorder, int, str], object]  # takes the number of the first op of a call, and the call's name


class Ending(Protocol):
    """The profile of one session. `on_named` is for another library that records ops."""

    @property
    def on_named(self) -> NameOps: ...

    def end(self, name: str, deadline_s: float | None, *, is_closing: bool = False) -> SessionEvents: ...


class Profilable(Protocol):
    """What a profile needs of a session."""

    @property
    def id(self) -> str: ...

    @property
    def is_open(self) -> bool: ...

    def begin_profile(self) -> Ending: ...


class Profile:
    """Where the time of a block goes; `fusewire.profile` makes it. Its text is six lines for people, and notes.

    Everything else is there once the block has ended: `summary` has the six lines, `timeline` the data.
    """

    def __init__(
        self,
        path: str | Path | None = None,
        *,
        trace: str | Path | None = None,
        timeout: float | None = END_TIMEOUT_S,
    ) -> None:
        deadline_after(timeout)  # raises ArgumentError for what is no timeout
        self.timeout_s = timeout
        self._path, self._trace = (None if each is None else Path(each) for each in (path, trace))
        self._running: WeakKeyDictionary[Profilable, Ending] = WeakKeyDictionary()
        self._ended: list[SessionEvents] = []
        self._began_ns = self._ended_ns = 0
        self._timeline: Timeline | None = None

    @property
    def timeline(self) -> Timeline:
        """What happened when, on one clock. Raises RequestError before the block has ended."""
        if self._timeline is None:
            raise RequestError("a profile is known once its block has ended")
        return self._timeline

    @property
    def summary(self) -> tuple[str, ...]:
        """Six lines that say where the time went. Raises RequestError before the block has ended."""
        return summary_of(self.timeline)

    def save(self, path: str | Path) -> None:
        """Writes the page, one file of HTML that needs nothing else."""
        Path(path).write_text(page_text(self.timeline), encoding="utf-8")

    def save_trace(self, path: str | Path) -> None:
        """Writes the trace, in the format of Chrome, which Perfetto opens (https://ui.perfetto.dev)."""
        Path(path).write_text(trace_text(self.timeline), encoding="utf-8")

    def __str__(self) -> str:
        if self._timeline is None:
            return "a profile that has not ended"
        return "\n".join((*self.summary, *self._timeline.notes))

    def __enter__(self) -> Self:
        with _lock:
            if _active:
                raise RequestError("a profile is on already")
            if self._began_ns:
                raise RequestError("a profile is used once: make another one")
            for path in (self._path, self._trace):
                _check_writable(path)
            _active.append(self)
            try:
                for session in [each for each in _sessions if each.is_open]:
                    self.begin(session)
            except BaseException:
                self._stop()
                raise
            self._began_ns = time.monotonic_ns()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Waits until the device has done what was recorded, and writes the files. Also after an error of the block.

        Waits no longer than the profile's timeout, for all sessions together, and a second more for each that does not
        answer.
        """
        self._ended_ns = time.monotonic_ns()
        self._stop()
        self._timeline = timeline_of(self._began_ns, self._ended_ns, self._ended)
        self._ended.clear()
        if self._path is not None:
            self.save(self._path)
        if self._trace is not None:
            self.save_trace(self._trace)

    def _stop(self) -> None:
        deadline_s = deadline_after(self.timeout_s)
        with _lock, ExitStack() as each_one:  # ends the others too if an end raises
            _active.remove(self)
            for session in [*self._running]:
                each_one.callback(self.end, session, deadline_s)

    def begin(self, session: Profilable) -> None:
        """Begins to profile a session, unless it is profiled already."""
        if session in self._running:
            return
        profiling = self._running[session] = session.begin_profile()
        for listen in listeners:
            listen(session, profiling.on_named)

    def end(self, session: Profilable, deadline_s: float | None, *, is_closing: bool = False) -> None:
        """Ends the profile of a session, which may go on. Waits for its work until `deadline_s` at most."""
        profiling = self._running.pop(session, None)
        if profiling is not None:
            for listen in listeners:
                listen(session, None)
            self._ended.append(profiling.end(session.id, deadline_s, is_closing=is_closing))


def profile(
    path: str | Path | None = None, *, trace: str | Path | None = None, timeout: float | None = END_TIMEOUT_S
) -> Profile:
    """Profiles a `with` block: what this process and its servers do, on one timeline, and where the time goes.

        with fw.profile("run.html", trace="run.json") as p:
            train()
        print(p)

    `path` is a page to be written, which any browser opens and which needs nothing else. `trace` is a file for Perfetto
    (https://ui.perfetto.dev). Of all sessions, those included that are opened in the block, it has the cutting of
    segments, frames, queues, submissions, reads, waits and memory, each with your line. Sends no op earlier than
    without it. The end of the block waits until the device has done what was recorded, for at most `timeout` seconds
    (None: as long as it takes); then the profile notes that the rest is missing.

    Raises RequestError if a profile is on already, and ArgumentError if the folder of a file is not there, or for a
    wrong timeout.
    """
    return Profile(path, trace=trace, timeout=timeout)


# Called with a session and what takes the names of its ops, or None at the end.
listeners: list[Callable[[Any, NameOps | None], None]] = []
_lock = RLock()
_active: list[Profile] = []  # at most one
_sessions: WeakSet[Profilable] = WeakSet()


def note_open(session: Profilable) -> None:
    """Notes that a session has been opened. A profile that is on begins to profile it."""
    _sessions.add(session)
    if _active:
        with _lock:
            for active in _active:
                active.begin(session)


def note_closing(session: Profilable) -> None:
    """Notes that a session is about to be closed. A profile that is on first waits for its rest, as at its end."""
    if _active:
        with _lock:
            for active in _active:
                active.end(session, deadline_after(active.timeout_s), is_closing=True)


def _check_writable(path: Path | None) -> None:
    if path is not None and (path.is_dir() or not path.parent.is_dir()):
        raise ArgumentError(f"{path} cannot be written: it is a folder, or its folder is not there")
