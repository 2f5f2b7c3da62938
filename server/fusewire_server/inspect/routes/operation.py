"""Routes that tell and change how the server process runs: its settings, the level of its log, its end."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus
from typing import Literal

from fastapi import FastAPI, Request, Response
from pydantic import ConfigDict
from pydantic_core import to_json

from fusewire_server.inspect.described import DescribedModel
from fusewire_server.inspect.routes.description import refusals, shows
from fusewire_server.inspect.routes.json_body import json_body, takes
from fusewire_server.inspect.routes.sources import Served, SettingView
from fusewire_server.inspect.routes.tagged import tagged


class Settings(DescribedModel):
    """All settings of the server. They hold no secrets, only the names of files that do."""

    settings: Mapping[str, SettingView]
    """The settings by `section.key`."""


class Log(DescribedModel):
    """The log of the server."""

    model_config = ConfigDict(extra="forbid")

    level: Literal["debug", "info", "warning", "error"]
    """Least level of the records that are written."""


class Drain(DescribedModel):
    """Tells that the server has begun to end."""

    is_draining: bool
    """True. The server ends once its sessions have finished their work, after limits.drain_s at the latest."""


_SETTINGS = Settings(settings={"limits.sessions": SettingView(value=256, origin="default")})


def add_routes(app: FastAPI) -> None:
    app.get(
        "/v1/config",
        summary="All settings",
        response_model=Settings,
        responses={**shows(_SETTINGS), 304: {"description": "as the tag tells"}},
    )(config)
    app.get("/v1/log", summary="Level of the log", responses=shows(Log(level="info")))(log)
    app.put(
        "/v1/log",
        summary="Set the level of the log",
        openapi_extra=takes(Log),
        responses={**shows(Log(level="debug")), **refusals(413, 422)},
    )(set_log)
    app.post(
        "/v1/drain",
        summary="End the server",
        status_code=HTTPStatus.ACCEPTED,
        responses=shows(Drain(is_draining=True), HTTPStatus.ACCEPTED),
    )(drain)


async def config(request: Request, sources: Served) -> Response:
    """Tells of each setting its value and where it was set."""
    return tagged(request, to_json(Settings(settings=sources.settings)), "application/json")


async def log(sources: Served) -> Log:
    """Tells the level of the log."""
    return _log_of(sources)


async def set_log(request: Request, sources: Served) -> Log:
    """Changes the level of the log until the next start."""
    wanted = await json_body(request, Log)
    sources.control.set_log_level(wanted.level)
    return _log_of(sources)


async def drain(sources: Served) -> Drain:
    """Takes no more sessions, lets those that there are finish their work, and ends the server."""
    sources.control.drain()
    return Drain(is_draining=True)


def _log_of(sources: Served) -> Log:
    return Log.model_validate({"level": sources.control.log_level()})
