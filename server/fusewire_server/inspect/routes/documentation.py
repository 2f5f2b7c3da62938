"""Route that tells the schema of all others."""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI, Request


def add_routes(app: FastAPI) -> None:
    app.get("/v1/openapi.json", include_in_schema=False)(openapi)


async def openapi(request: Request) -> dict[str, Any]:
    """The description of all routes, as OpenAPI has it."""
    app: FastAPI = request.app
    return app.openapi()
