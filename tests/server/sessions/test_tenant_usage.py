"""What tenants have used."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_server.sessions.session import Session
from fusewire_server.sessions.tenant_usage import (
    MOST_TENANTS,
    OTHERS,
    Durations,
    TenantUsage,
    usage_of,
    usage_with,
)
from tests.server import parts


def session_of(tenant: str, loop_ns: int, device_ns: int) -> Session:
    session = parts.session(tenant, tenant=tenant)
    session.loop_ns, session.device_ns = loop_ns, device_ns
    return session


def test_the_usage_of_a_tenant_is_that_of_all_its_sessions() -> None:
    usages: dict[str, TenantUsage] = {}
    usage_of(usages, "gone").add(session_of("gone", 5, 6))
    usage_of(usages, "lab").add(session_of("lab", 1, 2))
    usage = usage_with(usages, [session_of("lab", 10, 20), session_of("lab", 100, 200)])
    assert {tenant: (each.sessions, each.loop_ns, each.device_ns) for tenant, each in usage.items()} == {
        "gone": (1, 5, 6),
        "lab": (3, 111, 222),
    }
    assert usages["lab"].loop_ns == 1


def test_tenants_beyond_the_bound_count_together() -> None:
    usages: dict[str, TenantUsage] = {}
    for number in range(MOST_TENANTS + 3):
        usage_of(usages, str(number)).add(session_of(str(number), 1, 0))
    assert len(usages) == MOST_TENANTS + 1
    usage = usage_with(usages, [session_of("one more", 7, 0)])
    assert (usage[OTHERS].sessions, usage[OTHERS].loop_ns) == (4, 10)


@given(st.lists(st.integers(0, 1 << 62)))
def test_durations_are_counted_by_their_bits(times_ns: list[int]) -> None:
    durations = Durations()
    for ns in times_ns:
        durations.add(ns)
    assert durations.total_ns == sum(times_ns)
    for bits in range(64):
        assert sum(durations.counts[: bits + 1]) == sum(ns < 1 << bits for ns in times_ns)


def test_a_time_that_no_clock_tells_is_refused() -> None:
    with pytest.raises(IndexError):
        Durations().add(1 << 64)
