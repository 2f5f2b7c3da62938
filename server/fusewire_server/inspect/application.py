"""Puts the REST application of inspection together. Most routes read, from fresh snapshots; some operate the server.

If tokens are configured, a request to any route needs a token. Only `/`, `/livez`, `/readyz` without `?verbose`,
and the pages `/docs` and `/ui/` need none, because they hold no data. A route answers with data that are taken after
the request has come, or it refuses with a problem (RFC 9457). Every answer says how old its data are.
"""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import Depends, FastAPI

from fusewire_server.access.tokens import Authenticator
from fusewire_server.config.version import installed_version
from fusewire_server.inspect.control import Control
from fusewire_server.inspect.requests.guard import HeadAsGet, refuse_foreign_names, token_check
from fusewire_server.inspect.requests.problems import handle_problems, refuse_wrong_parameters
from fusewire_server.inspect.routes.device import device_routes
from fusewire_server.inspect.routes.documentation import documentation_routes
from fusewire_server.inspect.routes.fresh import Snapshots
from fusewire_server.inspect.routes.health import health_routes
from fusewire_server.inspect.routes.live import live_routes
from fusewire_server.inspect.routes.page import page_routes
from fusewire_server.inspect.routes.programs import program_routes
from fusewire_server.inspect.routes.server import server_routes
from fusewire_server.inspect.routes.sessions import session_routes
from fusewire_server.inspect.routes.tenants import tenant_routes
from fusewire_server.inspect.snapshots.answer_age import AnswerAge
from fusewire_server.inspect.views import SettingView
from fusewire_server.inspect.watching import Watching


def create_app(
    snapshots: Snapshots,
    authenticator: Authenticator | None,
    control: Control,
    *,
    settings: Mapping[str, SettingView] | None = None,
    is_local: bool = False,
) -> FastAPI:
    """Returns the application. Without an authenticator the application serves everybody who can connect.

    `settings` are read at each request. `is_local` says that the application listens on a loopback address only.
    """
    app = FastAPI(
        dependencies=[
            *([Depends(refuse_foreign_names)] if is_local else []),
            Depends(token_check(authenticator)),
            Depends(refuse_wrong_parameters),
        ],
        # Off, because FastAPI's own pages would answer without a token, and load their scripts from elsewhere.
        docs_url=None,
        redoc_url=None,
        openapi_url=None,
        redirect_slashes=False,  # a redirection would lead to where the Host header says
    )
    app.state.snapshots = snapshots
    watching = Watching(snapshots, control)
    app.add_middleware(HeadAsGet)
    app.add_middleware(AnswerAge)
    app.include_router(health_routes(snapshots, authenticator))
    app.include_router(server_routes(control, settings or {}))
    app.include_router(session_routes(control))
    app.include_router(tenant_routes())
    app.include_router(program_routes(watching))
    app.include_router(live_routes(watching, authenticator))
    app.include_router(page_routes())
    app.include_router(device_routes(control))
    app.include_router(documentation_routes(app, installed_version()))
    handle_problems(app)
    return app
