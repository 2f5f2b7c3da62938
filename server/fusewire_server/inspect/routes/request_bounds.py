"""Refuses requests that are too long, before any route reads them."""

from __future__ import annotations

from http import HTTPStatus

from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fusewire_server.inspect.problems import Refused, problem

LONGEST_TARGET_BYTES = 8 << 10
LONGEST_HEADERS_BYTES = 16 << 10
LONGEST_BODY_BYTES = 1 << 20
_TOO_LARGE = f"the body has more than {LONGEST_BODY_BYTES} bytes"  # the rest is dropped as it comes


class RequestBounds:
    """An ASGI application that passes requests within the bounds to another."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = _refusal(scope) if scope["type"] == "http" else None
        if refusal is not None:
            await refusal(scope, receive, send)
        else:
            await self._app(scope, _bounded(receive), send)


def _refusal(scope: Scope) -> Response | None:
    target_bytes = len(scope["path"]) + len(scope["query_string"])
    if target_bytes > LONGEST_TARGET_BYTES:
        message = f"the path and query have {target_bytes} bytes; at most {LONGEST_TARGET_BYTES}"
        return problem(HTTPStatus.REQUEST_URI_TOO_LONG, "uri_too_long", message)
    headers_bytes = sum(len(name) + len(value) for name, value in scope["headers"])
    if headers_bytes > LONGEST_HEADERS_BYTES:
        message = f"the headers have {headers_bytes} bytes; at most {LONGEST_HEADERS_BYTES}"
        return problem(HTTPStatus.REQUEST_HEADER_FIELDS_TOO_LARGE, "headers_too_large", message)
    lengths = [value for name, value in scope["headers"] if name == b"content-length"]
    if any(value.isdigit() and int(value) > LONGEST_BODY_BYTES for value in lengths):
        return problem(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body_too_large", _TOO_LARGE)
    return None


def _bounded(receive: Receive) -> Receive:
    """Returns a `receive` that refuses a body once it is too long, for a body whose length was not told."""
    received_bytes = 0

    async def receive_bounded() -> Message:
        nonlocal received_bytes
        message = await receive()
        received_bytes += len(message.get("body", b""))
        if received_bytes > LONGEST_BODY_BYTES:
            raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body_too_large", _TOO_LARGE)
        return message

    return receive_bounded
