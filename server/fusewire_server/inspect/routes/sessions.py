"""Routes that tell of sessions, and of tenants as the sums of their sessions."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus

from fastapi import FastAPI
from pydantic import BaseModel

from fusewire_server.inspect.problems import Problem, Refused
from fusewire_server.inspect.routes.sources import Fresh
from fusewire_server.inspect.snapshot import SessionView, Snapshot


class Sessions(BaseModel):
    """All sessions, detached ones included."""

    sessions: tuple[SessionView, ...]


class TenantView(BaseModel):
    """The sessions of one tenant together."""

    tenant: str
    sessions: int
    in_flight_ops: int
    live_handles: int
    live_bytes: int
    unread_bytes: int
    device_ns: int


class Tenants(BaseModel):
    """All tenants that have sessions."""

    tenants: tuple[TenantView, ...]


def add_routes(app: FastAPI) -> None:
    app.get("/v1/sessions")(sessions)
    app.get("/v1/sessions/{session}", responses={404: {"model": Problem}})(one_session)
    app.get("/v1/tenants")(tenants)


async def sessions(snapshot: Fresh) -> Sessions:
    """Every session: its client, its work in flight, its memory."""
    return Sessions(sessions=snapshot.sessions)


async def one_session(snapshot: Fresh, session: str) -> SessionView:
    """One session, by its shown id."""
    for view in snapshot.sessions:
        if view.session == session:
            return view
    raise Refused(HTTPStatus.NOT_FOUND, "unknown_session", f"there is no session {session}")


async def tenants(snapshot: Fresh) -> Tenants:
    """Every tenant that has sessions: their work in flight, their memory, their device time."""
    return Tenants(tenants=tuple(_tenants_of(snapshot)))


def _tenants_of(snapshot: Snapshot) -> Iterator[TenantView]:
    by_tenant: dict[str, list[SessionView]] = {}
    for view in snapshot.sessions:
        by_tenant.setdefault(view.tenant, []).append(view)
    for tenant, views in sorted(by_tenant.items()):
        yield TenantView(
            tenant=tenant,
            sessions=len(views),
            in_flight_ops=sum(view.in_flight_ops for view in views),
            live_handles=sum(view.live_handles for view in views),
            live_bytes=sum(view.live_bytes for view in views),
            unread_bytes=sum(view.unread_bytes for view in views),
            device_ns=sum(view.device_ns for view in views),
        )
