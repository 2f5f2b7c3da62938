"""Routes that operate the server."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI
from pydantic import BaseModel

from fusewire_server.inspect.routes.sources import Served


class Gate(BaseModel):
    """Tells whether the device is held after the request."""

    is_held: bool


class Drain(BaseModel):
    """Tells that the server has begun to end."""

    is_draining: bool


def add_routes(app: FastAPI) -> None:
    app.post("/v1/device/hold")(hold)
    app.post("/v1/device/release")(release)
    app.post("/v1/drain", status_code=HTTPStatus.ACCEPTED)(drain)


async def hold(sources: Served) -> Gate:
    """Stops new submissions until the device is released. Sessions go on filling their credit."""
    sources.control.hold()
    return Gate(is_held=True)


async def release(sources: Served) -> Gate:
    """Lets the device take submissions again."""
    sources.control.release()
    return Gate(is_held=False)


async def drain(sources: Served) -> Drain:
    """Takes no more sessions, lets those that there are finish their work, and ends the server."""
    sources.control.drain()
    return Drain(is_draining=True)
