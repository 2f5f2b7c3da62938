"""The times of tenants."""

from __future__ import annotations

from fusewire_server.sessions.session import Session
from fusewire_server.sessions.tenant_times import TenantTimes, times_by_tenant
from tests.server import parts


def session_of(tenant: str, loop_ns: int, device_ns: int) -> Session:
    session = parts.session(tenant, tenant=tenant)
    session.loop_ns, session.device_ns = loop_ns, device_ns
    return session


def test_the_times_of_a_tenant_are_those_of_all_its_sessions() -> None:
    before = {"lab": TenantTimes(1, 2), "gone": TenantTimes(5, 6)}
    more = [session_of("lab", 10, 20), session_of("lab", 100, 200), session_of("new", 7, 8)]
    assert times_by_tenant(before, more) == {
        "lab": TenantTimes(111, 222),
        "gone": TenantTimes(5, 6),
        "new": TenantTimes(7, 8),
    }
    assert before["lab"] == TenantTimes(1, 2)
