"""Says in every answer how old its data are."""

from __future__ import annotations

import time

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from fusewire_server.inspect.snapshots.snapshot import Snapshot

AGE_HEADER = "snapshot-age-ms"
_TAKEN_AT = "snapshot_taken_at_ns"


def answers_from(scope: Scope, snapshot: Snapshot) -> None:
    """Notes that the answer to a request has its data from a snapshot."""
    scope["state"][_TAKEN_AT] = snapshot.taken_at_ns


class AnswerAge:
    """Puts the age of its data into each answer.

    The age is that of the snapshot that a route has noted. All other answers are made at once, so their age is 0.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def send_with_age(message: Message) -> None:
            if message["type"] == "http.response.start":
                now_ns = time.monotonic_ns()
                age_ns = now_ns - state.get(_TAKEN_AT, now_ns)
                MutableHeaders(scope=message)[AGE_HEADER] = f"{age_ns / 1e6:.1f}"
            await send(message)

        state = scope.setdefault("state", {})
        await self._app(scope, receive, send_with_age)
