"""Route that tells the settings of the server."""

from __future__ import annotations

from collections.abc import Mapping

from fastapi import FastAPI
from pydantic import BaseModel

from fusewire_server.inspect.routes.sources import Served, SettingView


class Settings(BaseModel):
    """All settings of the server by `section.key`. They hold no secrets, only the names of files that do."""

    settings: Mapping[str, SettingView]


def add_routes(app: FastAPI) -> None:
    app.get("/v1/config")(config)


async def config(sources: Served) -> Settings:
    """Every setting, its value and its origin."""
    return Settings(settings=sources.settings)
