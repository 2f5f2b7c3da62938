"""The recorders of one session: one a thread that has recorded in it."""

from __future__ import annotations

import threading
from threading import get_ident

from fusewire._recorder import Owner, Recorder
from fusewire_protos.frames import HANDLES_PER_RECORDER


class Recorders:
    """Grows only. A thread that inherits the identifier of an ended one inherits its recorder."""

    def __init__(self, owner: Owner, *, is_debugging: bool) -> None:
        self._owner = owner
        self._is_debugging = is_debugging
        self._adding = threading.Lock()
        self._by_thread: dict[int, Recorder] = {}

    def own(self) -> Recorder:
        """The calling thread's."""
        recorder = self._by_thread.get(get_ident())
        return recorder if recorder is not None else self._add(get_ident())

    def all(self) -> tuple[Recorder, ...]:
        return tuple(self._by_thread.values())

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
        self._adding = threading.Lock()
        for recorder in self.all():
            recorder.lock = threading.Lock()

    def _add(self, thread: int) -> Recorder:
        self._owner.check_open()
        with self._adding:
            recorder = Recorder(self._owner, len(self._by_thread) + 1, thread, is_debugging=self._is_debugging)
            self._by_thread[thread] = recorder
        return recorder
