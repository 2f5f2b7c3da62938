"""Counts the HTTP requests that are refused, by case. The cases are a closed set, so that no client adds a series."""

from __future__ import annotations

from starlette.types import ASGIApp, Message, Receive, Scope, Send

INSPECTION_DOOR = "inspection"

_OTHER = "other"
_LEAST_REFUSAL = 400
_CASE_OF_STATUS = {
    400: "bad_request",
    401: "unauthenticated",
    403: "forbidden",
    404: "not_found",
    405: "method_not_allowed",
    413: "too_large",
    414: "uri_too_long",
    421: "wrong_host",
    422: "bad_parameter",
    431: "headers_too_large",
    500: "server_fault",
    503: "unavailable",
}
CASES = (*_CASE_OF_STATUS.values(), _OTHER)
_STATE = ("/readyz", 503)  # tells a state of the server and refuses nothing


class RefusalCounts(dict[str, int]):
    """The number of refused requests by case. One thread counts. Any thread may read, because the keys never change."""

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(CASES, 0))

    def add(self, status: int) -> None:
        """Counts an answer if its status is a refusal."""
        if status >= _LEAST_REFUSAL:
            self[_CASE_OF_STATUS.get(status, _OTHER)] += 1


class CountedRefusals:
    """An ASGI application that counts the refusals of the application inside it."""

    def __init__(self, app: ASGIApp, counts: RefusalCounts) -> None:
        self._app = app
        self._counts = counts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def count(message: Message) -> None:
            if message["type"] == "http.response.start" and (scope["path"], message["status"]) != _STATE:
                self._counts.add(message["status"])
            await send(message)

        await self._app(scope, receive, count)
