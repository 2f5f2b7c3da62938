"""Routes of programs and their plans."""

from __future__ import annotations

from enum import Enum
from http import HTTPStatus
from typing import Annotated

from fastapi import FastAPI, Path, Query, Request, Response
from pydantic_core import to_json

from fusewire_server.inspect.described import DescribedModel
from fusewire_server.inspect.problems import Refused
from fusewire_server.inspect.program_text import bounded, program_text
from fusewire_server.inspect.routes import examples
from fusewire_server.inspect.routes.description import refusals, shows
from fusewire_server.inspect.routes.paging import MOST_ITEMS, After, Limit, page_of
from fusewire_server.inspect.routes.sources import Fresh, age_header
from fusewire_server.inspect.routes.tagged import tagged
from fusewire_server.inspect.snapshot import ProgramDetail, ProgramView, Snapshot

Digest = Annotated[
    str, Path(max_length=128, description="digest of the program, in hexadecimal digits", examples=["5c" * 16])
]


class Format(Enum):
    """The form of an answer: for programs or for people."""

    JSON = "json"
    TEXT = "text"


_Format = Annotated[Format, Query(alias="format", description="json for programs, text for people")]


class Programs(DescribedModel):
    """A page of the programs that the server knows."""

    programs: tuple[ProgramView, ...]
    """The programs, in the order of their digests."""
    next: str | None
    """Pass it as `after` to get the next page. Null on the last page."""


def add_routes(app: FastAPI) -> None:
    app.get("/v1/programs", summary="All programs", responses=shows(examples.PROGRAMS))(programs)
    app.get(
        "/v1/programs/{digest}",
        summary="One program and its plan",
        response_model=ProgramDetail,
        responses={**shows(examples.PROGRAM, has_text=True), **refusals(404), 304: {"description": "as the tag tells"}},
    )(one_program)


async def programs(snapshot: Fresh, limit: Limit = MOST_ITEMS, after: After = "") -> Programs:
    """Tells of each program its size, tier, uses and times."""
    views = (detail.program for detail in snapshot.programs)
    page, cursor = page_of(views, lambda view: view.digest, after, limit)
    return Programs(programs=page, next=cursor)


async def one_program(request: Request, snapshot: Fresh, digest: Digest, form: _Format = Format.JSON) -> Response:
    """Tells also the program's launches, which ops were fused, why others were not, and the generated sources."""
    detail = bounded(_program_of(snapshot, digest))
    if form is Format.TEXT:
        return tagged(request, program_text(detail).encode(), "text/plain", age_header(snapshot))
    return tagged(request, to_json(detail), "application/json", age_header(snapshot))


def _program_of(snapshot: Snapshot, digest: str) -> ProgramDetail:
    for detail in snapshot.programs:
        if detail.program.digest == digest:
            return detail
    raise Refused(HTTPStatus.NOT_FOUND, "unknown_program", f"there is no program {digest}")
