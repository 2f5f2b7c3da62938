"""The recorders of one session: one a thread that has recorded in it."""

from __future__ import annotations

from itertools import count
from threading import RLock, get_ident

from fusewire._recording.recorder import Owner, Recorder
from fusewire_protos.frames import HANDLES_PER_RECORDER


class ThreadRecorders:
    """Grows only. A thread that inherits the identifier of an ended one inherits its recorder."""

    def __init__(self, owner: Owner, *, is_debugging: bool) -> None:
        self._owner = owner
        self._is_debugging = is_debugging
        self._indexes = count(1)
        self._by_thread: dict[int, Recorder] = {}

    def own(self) -> Recorder:
        """The calling thread's."""
        recorder = self._by_thread.get(get_ident())
        return recorder if recorder is not None else self._add(get_ident())

    def all(self) -> tuple[Recorder, ...]:
        return tuple(self._by_thread.values())

    @property
    def have_unsent(self) -> bool:
        """Whether any of them has ops that are in no segment yet."""
        return any(recorder.has_unsent for recorder in self.all())

    def position(self, number: int) -> str:
        """Where in the user's code op `number` was recorded, in words; empty if that is not known."""
        index = number // HANDLES_PER_RECORDER
        found = (recorder for recorder in self.all() if recorder.first // HANDLES_PER_RECORDER == index)
        return next((recorder.position(number) for recorder in found), "")

    def end(self) -> None:
        """Lets every further op ask the session whether it is open."""
        for recorder in self.all():
            recorder.end()

    def renew_locks(self) -> None:
        """In a forked child: another thread of the parent may have held the old ones for ever."""
        for recorder in self.all():
            recorder.lock = RLock()

    def _add(self, thread: int) -> Recorder:
        """Each step is one act: a finaliser that comes between may add this thread's recorder itself."""
        self._owner.check_open()
        recorder = Recorder(self._owner, next(self._indexes), thread, is_debugging=self._is_debugging)
        return self._by_thread.setdefault(thread, recorder)
