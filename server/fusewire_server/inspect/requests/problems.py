"""Answers refused requests with problems, as RFC 9457 has them."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from functools import cache
from http import HTTPStatus
from re import Pattern
from typing import Any
from urllib.parse import quote

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.routing import compile_path

from fusewire_server.inspect.engine_thread import EngineBusy

_audit = logging.getLogger("fusewire.audit")

_PREFIX = "urn:fusewire:problem:"
_MEDIA_TYPE = "application/problem+json"
_MOST_DETAIL = 1000
_AUDITED = frozenset({HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN, HTTPStatus.MISDIRECTED_REQUEST})
_MOST_AUDITED = 200  # characters of what a stranger chooses
_WHERE_DESCRIBED = "/docs and /v1/openapi.json describe all routes"


class Problem(BaseModel):
    """The reason for a refusal."""

    type: str = Field(description="a fixed word for programs", examples=["urn:fusewire:problem:unknown_session"])
    title: str = Field(description="the same word for people", examples=["unknown session"])
    status: int = Field(description="status of the answer", examples=[404])
    detail: str = Field(description="what was wrong and what was expected, for people")


class Refused(HTTPException):
    """Raised by a route or a check that refuses a request."""

    def __init__(self, status: HTTPStatus, kind: str, detail: str) -> None:
        super().__init__(status, detail)
        self.status = status
        self.kind = kind


def problem(status: HTTPStatus, kind: str, detail: str, headers: Mapping[str, str] | None = None) -> Response:
    """Returns the answer that tells a problem."""
    body = Problem(type=_PREFIX + kind, title=kind.replace("_", " "), status=status, detail=detail[:_MOST_DETAIL])
    return JSONResponse(body.model_dump(), status, headers, media_type=_MEDIA_TYPE)


def handle_problems(app: FastAPI) -> None:
    """Has the application answer every refusal and every fault with a problem."""
    app.add_exception_handler(Refused, _answer_refused)
    app.add_exception_handler(HTTPException, _answer_http_error)
    app.add_exception_handler(RequestValidationError, _answer_bad_parameter)
    app.add_exception_handler(EngineBusy, _answer_busy)
    app.add_exception_handler(Exception, _answer_fault)


def responses(*statuses: int) -> dict[int | str, dict[str, object]]:
    """Returns what OpenAPI is to say of a route: these refusals, beside those that every route knows."""
    known = {status: HTTPStatus(status).phrase for status in (401, 403, 421, 422, 503, *statuses)}
    content = {_MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {status: {"description": phrase, "content": content} for status, phrase in known.items()}


def text_example(text: str) -> dict[int | str, dict[str, object]]:
    """Returns what OpenAPI is to say of a route that answers with text."""
    return {200: {"content": {"text/plain": {"example": text}}}}


async def _answer_refused(request: Request, refused: Exception) -> Response:
    assert isinstance(refused, Refused)
    if refused.status in _AUDITED:
        _audit_refusal(request, refused)
    headers = {"WWW-Authenticate": "Bearer"} if refused.status is HTTPStatus.UNAUTHORIZED else None
    return problem(refused.status, refused.kind, refused.detail, headers)


def _audit_refusal(request: Request, refused: Refused) -> None:
    fields = {
        "case": refused.kind,
        "peer": request.client.host if request.client else "",
        "method": request.method[:_MOST_AUDITED],
        "path": quote(request.scope["path"])[:_MOST_AUDITED],
    }
    _audit.warning("a request was refused: %s", refused.detail[:_MOST_AUDITED], extra=fields)


async def _answer_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status, detail, headers = HTTPStatus(error.status_code), error.detail, error.headers
    if status is HTTPStatus.NOT_FOUND:
        detail = f"there is no route of this path; {_WHERE_DESCRIBED}"
    if status is HTTPStatus.METHOD_NOT_ALLOWED:
        known = {*_operations_of(request)} or {(headers or {})["Allow"]}
        methods = ", ".join(sorted(known | ({"HEAD"} if "GET" in known else set())))
        detail, headers = f"the path takes {methods} and not {request.method}; {_WHERE_DESCRIBED}", {"Allow": methods}
    return problem(status, status.phrase.lower().replace(" ", "_"), detail, headers)


async def refuse_wrong_parameters(request: Request) -> None:
    """Refuses a parameter that the route does not have, or that stands twice: the route would pass over it."""
    known = {each.alias for each in request.scope["route"].dependant.query_params}
    unknown = sorted(set(request.query_params) - known)
    if unknown:
        has = f"has {', '.join(sorted(known))}" if known else "has none"
        text = f"the route has no parameter {unknown[0]!r}; it {has}"
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "unknown_parameter", text)
    for name in known:
        if len(request.query_params.getlist(name)) > 1:
            text = f"the parameter {name!r} is given more than once; a route takes one value of each"
            raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "repeated_parameter", text)


def _operations_of(request: Request) -> dict[str, dict[str, Any]]:
    """Returns the described operations of the path by method, of all its routes. FastAPI itself tells those of one."""
    paths: dict[str, dict[str, Any]] = request.app.openapi()["paths"]
    fitting = [methods for path, methods in paths.items() if _pattern(path).match(request.scope["path"])]
    return {method.upper(): each for methods in fitting for method, each in methods.items()}


@cache
def _pattern(path: str) -> Pattern[str]:
    return compile_path(path)[0]


async def _answer_bad_parameter(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    details = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad_parameter", details)


async def _answer_busy(_request: Request, error: Exception) -> Response:
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "busy", str(error))


async def _answer_fault(_request: Request, _error: Exception) -> Response:
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "server_fault", "the server failed; its log tells why")
