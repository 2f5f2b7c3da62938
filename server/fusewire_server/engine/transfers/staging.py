"""Decides when a large upload may take host memory, which is reserved before its first chunk.

The bytes of an upload are in host memory until they are on the device. All values on the device and all bytes on their
way to it fit in the device's memory, and those of a tenant in the host memory that it may hold, but for one upload of
each tenant. So an upload never waits for other tenants, and whether there is room for it on a full device is decided
when its bytes are there. An upload that may not begin yet waits for others of its tenant to end.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from typing import NamedTuple

from fusewire_protos.errors import CaseError
from fusewire_server.sessions.session import Session


class _Waiting(NamedTuple):
    """An upload that waits for its turn."""

    session: Session
    size_bytes: int
    begins: asyncio.Future[None]


class Staging:
    """The uploads that hold host memory, and those that wait for it, in order. The engine thread owns this state.

    `memory_bytes` is the memory of the device, and `values_bytes` returns how much of it values hold.
    """

    def __init__(self, memory_bytes: int, values_bytes: Callable[[], int]) -> None:
        self._memory_bytes = memory_bytes
        self._values_bytes = values_bytes
        self._staged_bytes: Counter[str] = Counter()  # by tenant
        self._waiting: list[_Waiting] = []

    @property
    def staged_bytes(self) -> int:
        """The host memory that uploads hold."""
        return self._staged_bytes.total()

    async def reserve(self, session: Session, size_bytes: int) -> None:
        """Reserves host memory for an upload, if need be once others have ended. The caller gives it back.

        Raises CaseError if the device could never hold the upload.
        """
        if size_bytes > self._memory_bytes:
            text = f"a value of {size_bytes} bytes; device.memory_bytes = {self._memory_bytes}"
            raise CaseError("out_of_memory", text)
        has_waiting = any(waiting.session.tenant == session.tenant for waiting in self._waiting)
        if not has_waiting and self._may_begin(session, size_bytes):
            self._begin(session, size_bytes)
            return
        waiting = _Waiting(session, size_bytes, asyncio.get_running_loop().create_future())
        self._waiting.append(waiting)
        try:
            await waiting.begins
        except asyncio.CancelledError:
            if waiting.begins.cancelled():
                self._waiting.remove(waiting)
                self._begin_waiting()
            else:  # it has begun in this same turn of the event loop
                self.give_back(session, size_bytes)
            raise

    def give_back(self, session: Session, size_bytes: int) -> None:
        """Gives back what was reserved for an upload that has been written or has failed."""
        session.uploading_bytes -= size_bytes
        self._staged_bytes[session.tenant] -= size_bytes
        if not self._staged_bytes[session.tenant]:
            del self._staged_bytes[session.tenant]
        self._begin_waiting()

    def _begin_waiting(self) -> None:
        """Lets uploads begin for which there is room now. Those of a tenant begin in their order."""
        held_up: set[str] = set()
        for waiting in [*self._waiting]:
            session, size_bytes, begins = waiting
            if session.tenant in held_up or not self._may_begin(session, size_bytes):
                held_up.add(session.tenant)
            elif not begins.done():
                self._waiting.remove(waiting)
                self._begin(session, size_bytes)
                begins.set_result(None)

    def _may_begin(self, session: Session, size_bytes: int) -> bool:
        if session.tenant not in self._staged_bytes:
            return True
        if not session.tenant_bytes.has_room(session, size_bytes):
            return False
        return self._values_bytes() + self.staged_bytes + size_bytes <= self._memory_bytes

    def _begin(self, session: Session, size_bytes: int) -> None:
        session.uploading_bytes += size_bytes
        self._staged_bytes[session.tenant] += size_bytes
        session.tenant_bytes.count(session)
