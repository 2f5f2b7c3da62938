"""Makes the HTTP application of inspection from its routes.

If tokens are configured, a request to any route needs a token. Only `/livez`, and `/readyz` without `?verbose`, need
none, because they answer one word, and `/docs`, because that page holds no data. A route answers with data that the
loop thread gives after the request has come, and tells a snapshot's age in the header `snapshot-age-ms`. Or it refuses
with a `Problem`.
"""

from __future__ import annotations

from fastapi import Depends, FastAPI

from fusewire_server.access.tokens import Authenticator
from fusewire_server.inspect.routes import device, documentation, health, operation, programs, sessions
from fusewire_server.inspect.routes.guard import Guard
from fusewire_server.inspect.routes.refusals import add_refusals
from fusewire_server.inspect.routes.request_bounds import RequestBounds
from fusewire_server.inspect.routes.sources import Sources

_TOPICS = (health, sessions, programs, device, operation, documentation)


def create_app(sources: Sources, authenticator: Authenticator | None, *, is_local: bool = False) -> FastAPI:
    """Returns the application. Without an authenticator the application serves everybody who can connect.

    `is_local` says that the application listens on a loopback address only.
    """
    guard = Guard(authenticator, is_local=is_local)
    app = FastAPI(
        title="Fusewire inspection",
        dependencies=[Depends(guard.check)],
        # Off, because FastAPI's own documentation pages would answer without a token.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,
    )
    app.state.sources = sources
    app.state.guard = guard
    app.add_middleware(RequestBounds)
    for topic in _TOPICS:
        topic.add_routes(app)
    add_refusals(app)
    return app
