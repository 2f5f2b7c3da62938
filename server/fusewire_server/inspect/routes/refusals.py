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


async def _answer_refused(_request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    status = HTTPStatus(error.status_code)
    kind = error.kind if isinstance(error, Refused) else status.phrase.lower().replace(" ", "_")
    return problem(status, kind, error.detail, error.headers)


async def _answer_bad_parameter(_request: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    details = "; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors())
    return problem(HTTPStatus.UNPROCESSABLE_ENTITY, "bad_parameter", details)


async def _answer_busy(_request: Request, error: Exception) -> Response:
    return problem(HTTPStatus.SERVICE_UNAVAILABLE, "busy", str(error))


async def _answer_fault(_request: Request, _error: Exception) -> Response:
    return problem(HTTPStatus.INTERNAL_SERVER_ERROR, "server_fault", "the server failed; its log tells why")
