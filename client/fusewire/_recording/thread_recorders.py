"""Holds the recorders of one session: one for each thread that has recorded in the session."""

from __future__ import annotations

from itertools import count
from threading import RLock, get_ident

from fusewire._recording.recorder import Owner, Recorder
from fusewire._recording.source_lines import SourceLine
from fusewire_protos.frames import HANDLES_PER_RECORDER

_NO_THREAD = 0


class ThreadRecorders:
    """Drops no recorder. A thread that gets the identifier of an ended thread gets the recorder of that thread."""

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._indexes = count(1)
        self._by_thread: dict[int, Recorder] = {}
        self._shared: Recorder | None = None

    def own(self) -> Recorder:
        """Returns the recorder of the calling thread, and makes it at the thread's first call."""
        shared = self._shared
        if shared is not None and shared.thread == get_ident():
            return shared
        recorder = self._by_thread.get(get_ident())
        return recorder if recorder is not None else self._add(get_ident())

    def shared(self) -> Recorder:
        """Returns the recorder that threads use in turns: a thread takes it, and leaves it (see `ThreadTape.take`)."""
        if self._shared is None:
            self._shared = self._add(_NO_THREAD)
        return self._shared

    def all(self) -> tuple[Recorder, ...]:
        return tuple(self._by_thread.values())

    @property
    def have_unsent(self) -> bool:
        """Returns whether any recorder has ops that are in no segment yet."""
        return any(recorder.has_unsent for recorder in self.all())

    def source_line(self, number: int) -> SourceLine | None:
        """Returns the line of the user's code that recorded op `number`; None if the line is not known."""
        recorder = self.of(number)
        return None if recorder is None else recorder.source_line(number)

    def of(self, handle: int) -> Recorder | None:
        """Returns the recorder that minted a handle, or None if none of this session did."""
        index = handle // HANDLES_PER_RECORDER
        return next((each for each in self.all() if each.first // HANDLES_PER_RECORDER == index), None)

    def end(self) -> None:
        """Makes every further op check whether the session is open. The check raises."""
        for recorder in self.all():
            recorder.end()

    def renew_locks(self) -> None:
        """Makes new locks in a forked child, where a lock that another thread of the parent held stays locked."""
        for recorder in self.all():
            recorder.lock = RLock()

    def _add(self, thread: int) -> Recorder:
        """Adds a recorder, unless a finaliser that has interrupted this code has added one for this thread already."""
        self._owner.check_open()
        recorder = Recorder(self._owner, next(self._indexes), thread)
        return self._by_thread.setdefault(thread, recorder)
