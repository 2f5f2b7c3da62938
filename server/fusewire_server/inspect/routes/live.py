"""The routes of those who watch: a live stream of the state and of the launches, and the company of a session."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack
from http import HTTPStatus
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request, Response
from fastapi.responses import StreamingResponse
from starlette.types import Receive, Send
from starlette.types import Scope as AsgiScope

from fusewire_server.access.tokens import Authenticator, Scope
from fusewire_server.inspect.launches.company import CompanyView, company_of
from fusewire_server.inspect.launches.reduce import reduced
from fusewire_server.inspect.live_message import Names, message, seen_by, state_of
from fusewire_server.inspect.requests.guard import IS_HEAD, check_scope, may_operate, refuse_other_sites, tenant_of
from fusewire_server.inspect.requests.problems import Refused, responses
from fusewire_server.inspect.routes.sessions import Session
from fusewire_server.inspect.server import STREAMS
from fusewire_server.inspect.watching import Look, Watching

STREAM_S = 600.0  # then the watcher asks again, by the token that it has now
_LARGEST_PIXEL_NS = 10**12
_MEDIA_TYPE = "application/vnd.fusewire.live"
_HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff"}
_STREAM: dict[int | str, Any] = {
    200: {
        "description": "messages: two lengths of 32 bits, a state as JSON, records of 64 bytes",
        "content": {_MEDIA_TYPE: {"schema": {"type": "string", "format": "binary"}, "example": "messages"}},
    }
}
_Pixel = Annotated[
    int | None,
    Query(
        ge=0,
        le=_LARGEST_PIXEL_NS,
        description="also records of launches, reduced so that those of a program within so many ns are one; 0: all",
    ),
]


def live_routes(watching: Watching, authenticator: Authenticator | None) -> APIRouter:
    """Returns the routes."""
    router = APIRouter(tags=["live"], responses=responses())

    @router.get("/v1/live", response_class=Response, responses=_STREAM)
    async def live(request: Request, pixel_ns: _Pixel = None) -> Response:
        """A stream of the server's state and launches, a message about twice a second, for ten minutes.

        A token of the scope `use` sees its tenant's sessions and programs; others are counts. At most 16 may watch.
        """
        refuse_other_sites(request)
        if request.scope.get(IS_HEAD):
            return Response(media_type=_MEDIA_TYPE)
        stream = _Stream(watching, tenant_of(request), pixel_ns, may_operate=may_operate(request))
        place = AsyncExitStack()
        await place.enter_async_context(watching.place())
        request.scope.get(STREAMS, lambda: None)()
        messages = stream.messages(lambda: _is_known(authenticator, request))
        return _Placed(place, messages)

    @router.get("/v1/sessions/{session}/company", responses=responses(404))
    async def company(request: Request, session: Session) -> CompanyView:
        """Who shared the launches of a session lately, what that saved it, and how long it waited for others.

        It is known from launches since somebody watches: by `/v1/live`, or by asking this route every second.
        """
        await watching.read_records()
        found = _company_of(watching, session, tenant_of(request))
        if found is None:
            text = f"no launch of a session {session!r} was seen lately; /v1/sessions lists those that there are"
            raise Refused(HTTPStatus.NOT_FOUND, "unknown_session", text)
        return found

    return router


class _Placed(StreamingResponse):
    """A stream that leaves its place however it ends."""

    def __init__(self, place: AsyncExitStack, messages: AsyncIterator[bytes]) -> None:
        super().__init__(messages, media_type=_MEDIA_TYPE, headers=_HEADERS)
        self._place = place

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        async with self._place:
            await super().__call__(scope, receive, send)


class _Stream:
    """The messages to one watcher."""

    def __init__(self, watching: Watching, tenant: str | None, pixel_ns: int | None, *, may_operate: bool) -> None:
        self._watching = watching
        self._tenant = tenant
        self._pixel_ns = pixel_ns
        self._names = Names(tenant)
        self._may_operate = may_operate

    async def messages(self, is_known: Callable[[], bool]) -> AsyncIterator[bytes]:
        """Yields messages until the time is over, or the token is no longer known.

        A watcher that reads slowly misses ticks, but no records that are still kept. The first message has all of them.
        """
        loop = asyncio.get_running_loop()
        ends_s, number = loop.time() + STREAM_S, -1
        while loop.time() < ends_s and is_known():
            look = await self._watching.next_look(number)
            ticks = None if number < 0 else look.number - number
            number = look.number
            yield self._message(look, ticks)

    def _message(self, look: Look, ticks: int | None) -> bytes:
        devices, tenant = self._watching.history.devices, self._tenant
        own = {number: set() if tenant is None else each.programs_of(tenant) for number, each in devices.items()}
        names = tuple([self._names.new(number, each, own[number]) for number, each in devices.items()])
        own_programs = set().union(*own.values())
        state = state_of(look.snapshot, look.steps, names, tenant, own_programs, may_operate=self._may_operate)
        if self._pixel_ns is None:
            return message(state, ())
        return message(
            state, [reduced(seen_by(each, each.rows(ticks), tenant), self._pixel_ns) for each in devices.values()]
        )


def _is_known(authenticator: Authenticator | None, request: Request) -> bool:
    """Tells whether the caller's token is still valid."""
    try:
        check_scope(authenticator, Scope.INSPECT, request, Scope.USE)
    except Refused:
        return False
    return True


def _company_of(watching: Watching, session: str, tenant: str | None) -> CompanyView | None:
    """Returns the company of a session that a tenant, or None for all, may see and of which launches were seen."""
    for device in watching.history.devices.values():
        for known in device.sessions.values():
            if known.session == session and tenant in {None, known.tenant}:
                return company_of(device.rows(), known.bit, device.programs.values(), device.sessions, tenant)
    return None
