"""Adds up what the sessions of each tenant have used of the server's time. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from fusewire_server.sessions.session import Session


class TenantTimes(NamedTuple):
    """The time that sessions of one tenant have used, of the loop thread and of the device."""

    loop_ns: int = 0
    device_ns: int = 0

    def plus(self, session: Session) -> TenantTimes:
        """Returns the times with those of one more session."""
        return TenantTimes(self.loop_ns + session.loop_ns, self.device_ns + session.device_ns)


def times_by_tenant(before: Mapping[str, TenantTimes], sessions: Iterable[Session]) -> dict[str, TenantTimes]:
    """Returns the times of each tenant, with those of more sessions."""
    times = dict(before)
    for session in sessions:
        times[session.tenant] = times.get(session.tenant, TenantTimes()).plus(session)
    return times
