"""The session of the device, and the recorder that its kernels share.

Autograd runs backward kernels in a thread of its own while the thread that called `backward` waits. If each thread had
a recorder, a training step would be cut in two, and its loop would not be found. So the kernels of all threads record
by one recorder, which a kernel has for itself while it runs (see `storage.Kernel`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import fusewire as fw
from fusewire import Array, Session
from fusewire._api.ops.filled import filled
from fusewire_protos.ops import dtypes


class Connection:
    """The device's session, once there is one, and whose turn it is to record."""

    def __init__(self) -> None:
        self.session: Session | None = None
        self.recorder: Any = None
        self._something: Array | None = None
        self.waiting = 0  # how many threads wait for their turn
        self._opening = threading.RLock()
        self._was_released = threading.Condition()
        self.on_use: Callable[[Session], object] = lambda session: None

    def use(self, session: Session) -> None:
        with self._opening:
            self.session, self.recorder = session, session.shared_recorder()
            self.on_use(session)

    def opened(self) -> Session:
        if self.session is None:
            with self._opening:
                if self.session is None:
                    self.use(fw.default_session())
        assert self.session is not None
        return self.session

    def something(self) -> Array:
        """Returns an array of the session. A known call is found by its arrays, so one is needed to make others."""
        session = self.opened()
        if self._something is None or self._something.session is not session:
            self._something = filled(session, (), 0, dtypes.float32)
        return self._something

    def wait_for(self, recorder: Any) -> None:
        """Returns when the calling thread has the recorder for itself. Another kernel has it for as long as it runs."""
        with self._was_released:
            self.waiting += 1
            try:
                self._was_released.wait_for(recorder.take)
            except BaseException:
                if recorder.thread == threading.get_ident():
                    recorder.release()
                raise
            finally:
                self.waiting -= 1

    def wake(self) -> None:
        """Wakes a thread that waits for a recorder that has become free."""
        with self._was_released:
            self._was_released.notify()


CONNECTION = Connection()


def connect(target: str | None = None, **options: Any) -> Session:
    """Connects the device to a server, and returns the session. Takes what `fusewire.connect` takes.

    Tensors that were made before stay in the session in which they were made, and cannot meet new ones.
    """
    opened = fw.connect(target, **options)
    CONNECTION.use(opened)
    return opened


def session() -> Session:
    """Returns the session in which the device's tensors are. Connects to `FUSEWIRE_TARGET` if there is none."""
    return CONNECTION.opened()


def device_recorder() -> Any:
    """Returns the recorder that the kernels share. Called within a kernel, which has it for itself."""
    return CONNECTION.recorder
