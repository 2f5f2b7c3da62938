"""Routes that tell of programs and their plans."""

from __future__ import annotations

from http import HTTPStatus

from fastapi import FastAPI
from pydantic import BaseModel

from fusewire_server.inspect.problems import Problem, Refused
from fusewire_server.inspect.routes.sources import Fresh
from fusewire_server.inspect.snapshot import ProgramDetail, ProgramView


class Programs(BaseModel):
    """All programs that the server knows."""

    programs: tuple[ProgramView, ...]


def add_routes(app: FastAPI) -> None:
    app.get("/v1/programs")(programs)
    app.get("/v1/programs/{digest}", responses={404: {"model": Problem}})(one_program)


async def programs(snapshot: Fresh) -> Programs:
    """Every program: its size, tier, hits and times."""
    return Programs(programs=tuple(detail.program for detail in snapshot.programs))


async def one_program(snapshot: Fresh, digest: str) -> ProgramDetail:
    """One program: also its groups, which ops were fused, why other ops were not, and its generated source."""
    for detail in snapshot.programs:
        if detail.program.digest == digest:
            return detail
    raise Refused(HTTPStatus.NOT_FOUND, "unknown_program", f"there is no program {digest}")
