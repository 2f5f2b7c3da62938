"""The routes of sessions: all, one, its arrays, its end."""

from __future__ import annotations

from enum import Enum
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query

from fusewire_server.inspect.control import Control
from fusewire_server.inspect.pages import MOST_ON_A_PAGE, After, Limit, Newest, Tenant, page_of, sort_by
from fusewire_server.inspect.requests.problems import Refused, responses
from fusewire_server.inspect.routes.fresh import Fresh
from fusewire_server.inspect.snapshots.session_view import SessionView
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.inspect.views import Arrays, EndedSessions, Ending, Sessions
from fusewire_server.programs.recent import MOST_RECENT

_LARGEST_HANDLE = (1 << 63) - 1

_AfterHandle = Annotated[
    int | None, Query(ge=-1, le=_LARGEST_HANDLE, description="`next` of the page before; absent: the first page")
]


class State(Enum):
    OPEN = "open"
    DETACHED = "detached"


_Sort = Annotated[str, sort_by(SessionView)]
_State = Annotated[State | None, Query(description="only those in this state")]
Session = Annotated[str, Path(max_length=64, description="shown id of the session, as `/v1/sessions` tells it")]


def session_routes(control: Control) -> APIRouter:
    """Returns the routes."""
    router = APIRouter(tags=["sessions"], responses=responses())

    @router.get("/v1/sessions", responses=responses(404))
    async def sessions(  # noqa: PLR0913, PLR0917 - one argument for each parameter
        snapshot: Fresh,
        limit: Limit = MOST_ON_A_PAGE,
        after: After = None,
        sort: _Sort = "",
        tenant: Tenant = None,
        state: _State = None,
        name: Annotated[str | None, Query(max_length=64, description="only those of this name")] = None,
        label: Annotated[
            str | None, Query(max_length=130, description="only those with this label, as key=value")
        ] = None,
    ) -> Sessions:
        """Every session: its client, what it waits for, its work in flight, its memory."""
        chosen = (
            view
            for view in snapshot.sessions
            if tenant in {None, view.tenant} and name in {None, view.name}
            if state is None or view.state == state.value
            if label is None or label in {f"{key}={value}" for key, value in view.labels.items()}
        )
        page, following = page_of(chosen, lambda view: view.session, after, limit, sort)
        return Sessions(sessions=page, next=following)

    @router.get("/v1/sessions/{session}", responses=responses(404))
    async def one_session(snapshot: Fresh, session: Session) -> SessionView:
        """One session, by its shown id."""
        return _session_in(snapshot, session)

    @router.get("/v1/sessions/{session}/arrays", responses=responses(404))
    async def arrays(session: Session, limit: Limit = MOST_ON_A_PAGE, after: _AfterHandle = None) -> Arrays:
        """The arrays of a session by handle: shape, dtype, bytes, age and origin, and never their values."""
        found = await control.arrays(session, after=-1 if after is None else after, limit=limit)
        if found is None:
            raise _unknown(session)
        return found

    @router.delete("/v1/sessions/{session}", status_code=HTTPStatus.ACCEPTED, responses=responses(404))
    async def end_session(session: Session) -> Ending:
        """Ends a session; the calls of its client raise an error that says so. Needs the scope `admin`."""
        if not await control.end_session(session):
            raise _unknown(session)
        return Ending(session=session, is_ending=True)

    @router.get("/v1/ended_sessions")
    async def ended_sessions(limit: Newest = MOST_RECENT, tenant: Tenant = None) -> EndedSessions:
        """The sessions that have ended last, and why."""
        ended = [each for each in (await control.details()).ended_sessions if tenant in {None, each.tenant}]
        return EndedSessions(sessions=tuple(ended[:limit]))

    return router


def _session_in(snapshot: Snapshot, session: str) -> SessionView:
    for view in snapshot.sessions:
        if view.session == session:
            return view
    raise _unknown(session)


def _unknown(session: str) -> Refused:
    return Refused(
        HTTPStatus.NOT_FOUND,
        "unknown_session",
        f"there is no session {session!r}; /v1/sessions lists those that there are",
    )
