"""Opens sessions within the limits, gives them streams, resumes them and takes them out."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable

from fusewire_protos.credit import Amount
from fusewire_protos.errors import CaseError
from fusewire_server.config.config import Limits
from fusewire_server.programs.counters import GRACE_PASSED, REPLACED
from fusewire_server.sessions.host_bytes import TenantBytes
from fusewire_server.sessions.session import Session, SessionEvent, SessionState
from fusewire_server.sessions.tables.answers import Answers
from fusewire_server.sessions.tenant_usage import TenantUsage, usage_of

_ID_BYTES = 16  # of a session


class Registry:
    """The sessions that have not ended. The engine thread owns this state.

    `end` is called for a session when its grace period has passed, or when a new session of its tenant takes its place.
    Its second argument is the reason. `limits` may be replaced; sessions keep the credit with which they were opened.
    With a `device_number` the ids of sessions end with it.
    """

    def __init__(self, limits: Limits, end: Callable[[Session, str], None], device_number: int | None = None) -> None:
        self.instance = secrets.token_bytes(16)  # so that a client knows whether it reconnects to the same server
        self.sessions: dict[bytes, Session] = {}
        self.usages: dict[str, TenantUsage] = {}  # by tenant
        self.ended_sessions = 0
        self.limits = limits
        self._end = end
        self._id_end = b"" if device_number is None else bytes([device_number])
        self._wakers: dict[bytes, Callable[[], None]] = {}  # by session; wakes the stream's writer
        self._tenants: dict[str, TenantBytes] = {}  # those that have sessions
        self._grace_timers: dict[bytes, asyncio.TimerHandle] = {}  # timers of grace periods, by detached session

    def open(self, tenant: str, client: str, peer: str) -> Session:
        """Opens a session. Raises CaseError if a limit allows no more sessions."""
        self._make_room(tenant)
        limits = self.limits
        credit = Amount(limits.credit_ops, limits.credit_bytes, limits.credit_segments)
        session_id = secrets.token_bytes(_ID_BYTES - len(self._id_end)) + self._id_end
        session = Session(session_id, tenant, client[:128], peer, credit, Answers(limits.unread_bytes))
        session.usage = usage_of(self.usages, tenant)
        session.opened_at_ns = session.heard_at_ns = time.monotonic_ns()
        self.sessions[session.session_id] = session
        self._tenants.setdefault(tenant, TenantBytes(limits.tenant_host_bytes)).add(session)
        return session

    def _make_room(self, tenant: str) -> None:
        """Ends the tenant's longest-detached sessions while a limit is reached.

        Raises CaseError if a limit is reached and the tenant has no detached session.
        """
        limits = self.limits
        while True:
            own = sum(session.tenant == tenant for session in self.sessions.values())
            if own < limits.tenant_sessions and len(self.sessions) < limits.sessions:
                return
            detached = next((one for one in self._grace_timers if self.sessions[one].tenant == tenant), None)
            if detached is None:
                break
            self._end(self.sessions[detached], REPLACED)
        if own >= limits.tenant_sessions:
            limit = limits.tenant_sessions
            raise CaseError("too_many_sessions", f"{own} sessions of this tenant; limits.tenant_sessions = {limit}")
        raise CaseError("too_many_sessions", f"{len(self.sessions)} sessions; limits.sessions = {limits.sessions}")

    def resume(self, session_id: bytes, instance: bytes, tenant: str, acknowledged: int) -> Session:
        """Returns the session of a client that lost its stream.

        Raises CaseError if the session has ended or belongs to another tenant.
        """
        session = self.sessions.get(session_id) if instance == self.instance else None
        if session is None or session.tenant != tenant:
            raise CaseError("session_lost", "this server holds no such session")
        session.resume(acknowledged)
        session.heard_at_ns = time.monotonic_ns()
        self._stop_grace_timer(session)
        return session

    def attach(self, session: Session, wake: Callable[[], None]) -> None:
        """Gives a session a new stream, and wakes the old stream.

        `wake` is called when the session has something to send, or when it gets another stream.
        """
        self.wake(session)
        self._wakers[session.session_id] = wake

    def wake(self, session: Session) -> None:
        """Wakes the session's stream, because the session has something to send to its client."""
        wake = self._wakers.get(session.session_id)
        if wake is not None:
            wake()

    def detach(self, session: Session, epoch: int) -> None:
        """Keeps the session until its grace period has passed, after the stream of `epoch` broke."""
        if session.epoch != epoch or session.state is not SessionState.OPEN:
            return
        session.on(SessionEvent.DISCONNECT)
        self._wakers.pop(session.session_id, None)
        loop, grace_s = asyncio.get_running_loop(), self.limits.resume_grace_s
        self._grace_timers[session.session_id] = loop.call_later(grace_s, self._end, session, GRACE_PASSED)

    def take_out(self, session: Session) -> None:
        """Removes a session that has ended, and adds it to the totals."""
        session.on(SessionEvent.END)
        del self.sessions[session.session_id]
        session.tenant_bytes.remove(session)
        if not session.tenant_bytes.sessions:
            del self._tenants[session.tenant]
        self.ended_sessions += 1
        session.usage.add(session)
        self._wakers.pop(session.session_id, None)
        self._stop_grace_timer(session)

    def _stop_grace_timer(self, session: Session) -> None:
        """Stops the timer of the session's grace period."""
        timer = self._grace_timers.pop(session.session_id, None)
        if timer is not None:
            timer.cancel()
