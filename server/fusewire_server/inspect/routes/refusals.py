"""Turns the exceptions of a request into problems, so that no answer shows a traceback."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException

from fusewire_server.inspect.loop_calls import LoopBusy
from fusewire_server.inspect.problems import Refused, problem


def add_refusals(app: FastAPI) -> None:
    app.add_exception_handler(HTTPException, _answer_refused)
    app.add_exception_handler(RequestValidationError, _answer_bad_parameter)
    app.add_exception_handler(LoopBusy, _answer_busy)
    app.add_exception_handler(Exception, _answer_fault)


async def _answer_refused(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    if isinstance(error, Refused):
        return problem(status, error.kind, error.detail, error.headers)
    kind = status.phrase.lower().replace(" ", "_")
    return problem(status, kind, _expected(request, error), error.headers)


def _expected(request: Request, error: HTTPException) -> str:
    """Returns what the router found wrong, and what it expected."""
    if error.status_code == HTTPStatus.METHOD_NOT_ALLOWED:
        return f"{request.method} is not a method of this route; its methods: {(error.headers or {}).get('Allow')}"
    if error.status_code == HTTPStatus.NOT_FOUND:
        return f"there is no route {request.scope['path']}; /v1/openapi.json lists the routes"
    return error.detail


async def _answer_bad_parameter(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    details = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad_parameter", details)


async def _answer_busy(_request: Request, error: Exception) -> Response:
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "busy", str(error))


async def _answer_fault(_request: Request, _error: Exception) -> Response:
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "server_fault", "the server failed; its log tells why")
