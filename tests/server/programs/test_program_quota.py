"""What sessions and their tenants hold of the programs that all share."""

from __future__ import annotations

from fusewire_server.programs.program_quota import ProgramQuota


def of_tenants() -> ProgramQuota:
    """Sessions of the tenant that their first letter names."""
    return ProgramQuota(lambda session: session[0])


def test_a_program_counts_once_for_each_session_and_once_for_their_tenant() -> None:
    held = of_tenants()
    for session in ("a1", "a2", "b1"):
        held.add(session, "one", 100)
    assert [held.session_bytes(session) for session in ("a1", "a2", "b1", "b2")] == [100, 100, 100, 0]
    assert [held.tenant_bytes_with(session, "one", 100) for session in ("a1", "b1", "c1")] == [100, 100, 100]
    assert [held.tenant_bytes_with(session, "two", 10) for session in ("a1", "b2", "c1")] == [110, 110, 10]


def test_a_tenant_holds_a_program_until_its_last_session_lets_go_of_it() -> None:
    held = of_tenants()
    for session in ("a1", "a1", "a2"):
        held.add(session, "one", 100)
    left = []
    for session in ("a1", "a2", "a1"):
        held.remove(session, "one", 100)
        left.append(held.tenant_bytes_with("a3", "two", 10))
    assert left == [110, 110, 10]
    assert held.session_bytes("a1") == 0


def test_a_session_that_holds_nothing_is_asked_for_its_tenant_anew() -> None:
    held = of_tenants()
    held.add("a1", "one", 100)
    held.tenant_of = lambda _: "b"
    assert held.tenant_bytes_with("a1", "two", 10) == 110
    held.remove("a1", "one", 100)
    held.add("a1", "one", 100)
    assert held.tenant_bytes_with("b1", "two", 10) == 110
