"""The routes that describe the others: OpenAPI, and a page that shows it."""

from __future__ import annotations

import base64
import hashlib
import json
from functools import cache
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from fastapi.openapi.utils import get_openapi
from pydantic import TypeAdapter

from fusewire_server import inspect
from fusewire_server.inspect.field_examples import complete
from fusewire_server.inspect.pages import with_etag
from fusewire_server.inspect.requests.problems import Problem
from fusewire_server.inspect.views import Readiness

_UNITS = {"_bytes": "bytes", "_ns": "nanoseconds", "_ms": "milliseconds", "_s": "seconds"}
_FASTAPI_REFUSALS = ("HTTPValidationError", "ValidationError")  # in their place the routes answer with problems
_OPEN_PATHS = ("/", "/livez", "/readyz")


def documentation_routes(app: FastAPI, version: str) -> APIRouter:
    """Returns the routes. The description needs a token like the data; the page holds nothing and needs none."""
    router = APIRouter(include_in_schema=False)
    page = files(inspect).joinpath("docs.html").read_text(encoding="utf-8")
    headers = {"Content-Security-Policy": _policy(page), "X-Content-Type-Options": "nosniff"}

    @cache
    def description() -> str:
        return json.dumps(_description(app, version))

    @router.get("/v1/openapi.json")
    async def openapi(request: Request) -> Response:
        """The description of all routes, as OpenAPI has it."""
        return with_etag(request, description())

    @router.get("/docs")
    async def docs() -> Response:
        """A page that asks for a token, and shows the description."""
        return Response(page, media_type="text/html; charset=utf-8", headers=headers)

    return router


def _policy(page: str) -> str:
    """Returns the content security policy of the page: it runs its own script only, and asks this server only."""
    return (
        f"default-src 'none'; script-src '{_hash_of(page, 'script')}'; style-src '{_hash_of(page, 'style')}'; "
        "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )


def _hash_of(page: str, tag: str) -> str:
    """Returns the hash by which a policy allows the only element of a page with this tag."""
    text = page.partition(f"<{tag}>")[2].partition(f"</{tag}>")[0]
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _description(app: FastAPI, version: str) -> dict[str, Any]:
    """Returns the description of all routes. A number's unit, which its name ends with, is told as `x-unit` too."""
    described = get_openapi(
        title="Fusewire inspection",
        version=version,
        description="Reads the state of a Fusewire server, and operates it.",
        routes=app.routes,
    )
    schemas = described["components"]["schemas"]
    schemas["Problem"] = Problem.model_json_schema()
    schemas["Readiness"] = TypeAdapter(Readiness).json_schema(ref_template="#/components/schemas/{model}")
    del schemas["Readiness"]["$defs"]  # the schemas that it refers to are those of other routes too
    for name in _FASTAPI_REFUSALS:
        schemas.pop(name, None)
    for schema in schemas.values():
        for name, field in schema.get("properties", {}).items():
            unit = next((unit for end, unit in _UNITS.items() if name.endswith(end)), None)
            if unit is not None:
                field["x-unit"] = unit
    complete(schemas)
    described["components"]["securitySchemes"] = {"token": {"type": "http", "scheme": "bearer"}}
    described["security"] = [{"token": []}]
    for path in _OPEN_PATHS:
        described["paths"][path]["get"]["security"] = []
    return described
