"""Routes of sessions and their arrays, and of tenants as the sums of their sessions."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from typing import Annotated

from fastapi import FastAPI, Path, Query

from fusewire_protos.frames import MAX_HANDLE
from fusewire_server.inspect.described import DescribedModel
from fusewire_server.inspect.live_views import ArrayPage
from fusewire_server.inspect.problems import Refused
from fusewire_server.inspect.routes import examples
from fusewire_server.inspect.routes.description import refusals, shows
from fusewire_server.inspect.routes.paging import MOST_ITEMS, After, Limit, page_of
from fusewire_server.inspect.routes.sources import Fresh, Served
from fusewire_server.inspect.snapshot import SessionView, Snapshot

SessionId = Annotated[
    str, Path(max_length=64, description="shown id of the session: 12 hexadecimal digits", examples=["0123456789ab"])
]
_AfterHandle = Annotated[
    int, Query(ge=0, le=MAX_HANDLE, description="cursor: `next` of the page before; 0 for the first page")
]


class Sessions(DescribedModel):
    """A page of the sessions, detached ones included."""

    sessions: tuple[SessionView, ...]
    """The sessions, in the order of their ids."""
    next: str | None
    """Pass it as `after` to get the next page. Null on the last page."""


class TenantView(DescribedModel):
    """The sessions of one tenant together."""

    tenant: str
    """Name of the tenant."""
    sessions: int
    """Number of its sessions, detached ones included."""
    in_flight_ops: int
    """Number of ops that the server has and the device has not completed."""
    live_handles: int
    """Number of arrays."""
    live_bytes: int
    """Size of these arrays in bytes."""
    unread_bytes: int
    """Size in bytes of results that clients have not taken."""
    device_ns: int
    """Device time in ns that its present sessions have used."""


class Tenants(DescribedModel):
    """A page of the tenants that have sessions."""

    tenants: tuple[TenantView, ...]
    """The tenants, in the order of their names."""
    next: str | None
    """Pass it as `after` to get the next page. Null on the last page."""


class Ending(DescribedModel):
    """Tells that a session is being ended."""

    session: str
    """Shown id of the session."""
    is_ending: bool
    """True. The session has ended once `/v1/sessions` no longer lists it."""


def add_routes(app: FastAPI) -> None:
    app.get("/v1/sessions", summary="All sessions", responses=shows(examples.SESSIONS))(sessions)
    app.get("/v1/tenants", summary="All tenants", responses=shows(examples.TENANTS))(tenants)
    one = "/v1/sessions/{session}"
    app.get(one, summary="One session", responses={**shows(examples.SESSION), **refusals(404)})(one_session)
    app.get(f"{one}/arrays", summary="Arrays of a session", responses={**shows(examples.ARRAYS), **refusals(404)})(
        arrays
    )
    app.delete(
        one,
        summary="End a session",
        status_code=HTTPStatus.ACCEPTED,
        responses={**shows(examples.ENDING, HTTPStatus.ACCEPTED), **refusals(404)},
    )(end_session)


async def sessions(snapshot: Fresh, limit: Limit = MOST_ITEMS, after: After = "") -> Sessions:
    """Tells of each session its client, its work in flight and its memory."""
    page, cursor = page_of(snapshot.sessions, lambda view: view.session, after, limit)
    return Sessions(sessions=page, next=cursor)


async def one_session(snapshot: Fresh, session: SessionId) -> SessionView:
    """Tells of one session what `/v1/sessions` tells of all."""
    return _session_of(snapshot, session)


async def arrays(sources: Served, session: SessionId, limit: Limit = MOST_ITEMS, after: _AfterHandle = 0) -> ArrayPage:
    """Tells of each array its shape, its size, and the op that computes it. Never tells values."""
    page = await sources.questions.arrays(session, after, limit)
    if page is None:
        raise _unknown(session)
    return page


async def end_session(sources: Served, snapshot: Fresh, session: SessionId) -> Ending:
    """Ends a session and frees its arrays. Its client's calls raise SessionClosed, which says that an operator did so.

    A client that does not read what it is sent loses its session after limits.unread_s at the latest.
    """
    _session_of(snapshot, session)
    sources.control.end_session(session)
    return Ending(session=session, is_ending=True)


async def tenants(snapshot: Fresh, limit: Limit = MOST_ITEMS, after: After = "") -> Tenants:
    """Tells of each tenant that has sessions the sums of these sessions."""
    page, cursor = page_of(_tenants_of(snapshot), lambda view: view.tenant, after, limit)
    return Tenants(tenants=page, next=cursor)


def _session_of(snapshot: Snapshot, session: str) -> SessionView:
    for view in snapshot.sessions:
        if view.session == session:
            return view
    raise _unknown(session)


def _unknown(session: str) -> Refused:
    return Refused(HTTPStatus.NOT_FOUND, "unknown_session", f"there is no session {session}")


def _tenants_of(snapshot: Snapshot) -> Iterator[TenantView]:
    by_tenant: dict[str, list[SessionView]] = {}
    for view in snapshot.sessions:
        by_tenant.setdefault(view.tenant, []).append(view)
    for tenant, views in by_tenant.items():
        yield TenantView(
            tenant=tenant,
            sessions=len(views),
            in_flight_ops=sum(view.in_flight_ops for view in views),
            live_handles=sum(view.live_handles for view in views),
            live_bytes=sum(view.live_bytes for view in views),
            unread_bytes=sum(view.unread_bytes for view in views),
            device_ns=sum(view.device_ns for view in views),
        )
