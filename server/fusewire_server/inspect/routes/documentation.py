"""Routes that document all others: the OpenAPI document, and a page that shows it."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib import resources

from fastapi import FastAPI, Request, Response

from fusewire_server.inspect.routes.description import document
from fusewire_server.inspect.routes.tagged import tagged


def add_routes(app: FastAPI) -> None:
    app.get("/v1/openapi.json", include_in_schema=False)(openapi)
    app.get("/docs", include_in_schema=False)(docs)


async def openapi(request: Request) -> Response:
    """The description of all routes, as OpenAPI has it."""
    return tagged(request, json.dumps(document(request.app)).encode(), "application/json")


async def docs(request: Request) -> Response:
    """A page that asks for the token, shows the routes and sends requests. It holds no data, and needs no token."""
    return tagged(request, _PAGE.encode(), "text/html", _PAGE_HEADERS)


def _policy(page: str) -> str:
    """Returns the content security policy of the page: its own script, its own style, and requests to this server."""
    return (
        f"default-src 'none'; script-src '{_hash_of(page, 'script')}'; style-src '{_hash_of(page, 'style')}'; "
        "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    )


def _hash_of(page: str, tag: str) -> str:
    """Returns the hash by which a policy allows the only element of a page with this tag."""
    text = page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


_PAGE = resources.files(__package__).joinpath("docs.html").read_text(encoding="utf-8")
_PAGE_HEADERS = {
    "Content-Security-Policy": _policy(_PAGE),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
