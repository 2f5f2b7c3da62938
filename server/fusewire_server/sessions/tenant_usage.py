"""Adds up what the sessions of each tenant have used, ended ones too, and how long their work took. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fusewire_server.sessions.session import Session

MOST_TENANTS = 256  # that are told apart; further ones count together
OTHERS = "(others)"
_FIELDS = (
    *("sessions", "ops", "segments", "received_bytes", "sent_bytes", "credit_used_up"),
    *("loop_ns", "device_ns", "planner_ns", "queue", "launch", "device", "answer", "wait"),
)


class Durations:
    """How often something took how long. `counts[n]` counts times of `n` bits in ns: from 2^(n-1) to 2^n - 1."""

    def __init__(self) -> None:
        self.counts = [0] * 64
        self.total_ns = 0

    def add(self, ns: int) -> None:
        self.counts[ns.bit_length()] += 1
        self.total_ns += ns


class TenantUsage:
    """What the sessions of one tenant have used. The engine thread owns it.

    Of sessions that have not ended only the time of the planner and the durations count here. The durations are those
    of segments: from their coming to their order (`queue`), on the device (`device`), and from the order to the end
    without that (`launch`); and those of fetches: from the order to the answer (`answer`), and from their coming to
    the answer (`wait`).
    """

    def __init__(self) -> None:
        self.sessions = 0
        self.ops = 0
        self.segments = 0
        self.received_bytes = 0
        self.sent_bytes = 0
        self.credit_used_up = 0
        self.loop_ns = 0
        self.device_ns = 0
        self.planner_ns = 0
        self.queue = Durations()
        self.launch = Durations()
        self.device = Durations()
        self.answer = Durations()
        self.wait = Durations()

    def add(self, session: Session) -> None:
        """Adds what a session has used."""
        self.sessions += 1
        self.ops += session.ops_total
        self.segments += session.admitted.segments
        self.received_bytes += session.bytes_in
        self.sent_bytes += session.bytes_out
        self.credit_used_up += session.credit_used_up
        self.loop_ns += session.loop_ns
        self.device_ns += session.device_ns

    def copy(self) -> TenantUsage:
        """Returns a copy with the same durations."""
        copied = TenantUsage()
        for name in _FIELDS:
            setattr(copied, name, getattr(self, name))
        return copied


def usage_with(usages: Mapping[str, TenantUsage], sessions: Iterable[Session]) -> dict[str, TenantUsage]:
    """Returns what each tenant has used, with what more sessions have. Does not change `usages`."""
    by_tenant = {tenant: usage.copy() for tenant, usage in usages.items()}
    for session in sessions:
        by_tenant[session.tenant if session.tenant in by_tenant else OTHERS].add(session)
    return by_tenant


def usage_of(usages: dict[str, TenantUsage], tenant: str) -> TenantUsage:
    """Returns what a tenant has used, from its first session on."""
    known = tenant if tenant in usages or len(usages) < MOST_TENANTS else OTHERS
    return usages.setdefault(known, TenantUsage())
