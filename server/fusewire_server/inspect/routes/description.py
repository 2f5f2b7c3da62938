"""Describes the routes as OpenAPI has it: examples, refusals, and the token."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any

from fastapi import FastAPI
from fastapi.openapi.utils import get_openapi
from pydantic_core import to_jsonable_python

from fusewire_server.inspect.problems import MEDIA_TYPE, Problem
from fusewire_server.inspect.routes.guard import OPEN_PATHS

Responses = dict[int | str, dict[str, Any]]

_SCHEME = "token"
_ABOUT = (
    "What a Fusewire server tells about itself, and how it is operated. Reading needs a token of the scope `inspect`, "
    "any other method one of the scope `admin`. A server without a token file needs none. Times of the server begin "
    "with its start; the unit stands at the end of each name: `_ns`, `_s`, `_bytes`."
)
_REFUSED_SCHEMAS = ("HTTPValidationError", "ValidationError")


def shows(example: object, status: int = HTTPStatus.OK, *, has_text: bool = False) -> Responses:
    """Returns the description of a route's answer by an example. `has_text`: the route can also answer with text."""
    content: dict[str, Any] = {"application/json": {"example": to_jsonable_python(example)}}
    if has_text:
        content["text/plain"] = {"schema": {"type": "string"}}
    return {int(status): {"content": content}}


def refusals(*statuses: int) -> Responses:
    """Returns the description of a route's refusals."""
    return {status: _refusal(HTTPStatus(status).phrase) for status in statuses}


def document(app: FastAPI) -> dict[str, Any]:
    """Returns the description of all routes. Makes it once."""
    if app.openapi_schema is None:
        described = get_openapi(title=app.title, version=app.version, description=_ABOUT, routes=app.routes)
        for path, operations in described["paths"].items():
            for operation in operations.values():
                _complete(path, operation)
        components = described["components"]
        schemas = {name: schema for name, schema in components["schemas"].items() if name not in _REFUSED_SCHEMAS}
        components["schemas"] = {**schemas, "Problem": Problem.model_json_schema()}
        components["securitySchemes"] = {_SCHEME: {"type": "http", "scheme": "bearer"}}
        app.openapi_schema = described
    return app.openapi_schema


def _complete(path: str, operation: dict[str, Any]) -> None:
    responses = operation["responses"]
    if "422" in responses:
        responses["422"] = _refusal("A parameter or the body is not as described")
    if path not in OPEN_PATHS:
        operation["security"] = [{_SCHEME: []}]
        responses["401"] = _refusal("No valid token")
        responses["403"] = _refusal("The token has another scope, or a page of another site asks")
    responses["4XX"] = _refusal("Any other refusal")
    responses.setdefault("503", _refusal("The server is too busy to answer"))
    responses["5XX"] = _refusal("A fault of the server")


def _refusal(description: str) -> dict[str, Any]:
    schema = {"$ref": "#/components/schemas/Problem"}
    return {"description": description, "content": {MEDIA_TYPE: {"schema": schema}}}
