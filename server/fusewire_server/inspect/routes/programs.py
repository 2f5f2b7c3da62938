"""The routes of programs: all, and one, as JSON or as text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from enum import Enum
from heapq import nlargest
from http import HTTPStatus
from typing import Annotated

from fastapi import APIRouter, Path, Query, Request, Response
from pydantic import TypeAdapter

from fusewire_server.inspect.pages import MOST_ON_A_PAGE, NOT_MODIFIED, After, Limit, page_of, sort_by, with_etag
from fusewire_server.inspect.program_text import bounded, program_text
from fusewire_server.inspect.requests.guard import tenant_of
from fusewire_server.inspect.requests.problems import Refused, responses
from fusewire_server.inspect.routes.fresh import Fresh
from fusewire_server.inspect.snapshots.program_view import AlikeView, ProgramDetail, ProgramView
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.inspect.views import Programs
from fusewire_server.inspect.watching import Watching
from fusewire_server.programs.structure import difference

_Sort = Annotated[str, sort_by(ProgramView)]
_JSON = TypeAdapter(ProgramDetail)
_MOST_ALIKE = 20


class Format(Enum):
    JSON = "json"
    TEXT = "text"


def program_routes(watching: Watching) -> APIRouter:
    """Returns the routes. `watching` knows which programs a tenant has run."""
    router = APIRouter(tags=["programs"], responses=responses())

    @router.get("/v1/programs", responses=responses(404))
    async def programs(
        snapshot: Fresh,
        limit: Limit = MOST_ON_A_PAGE,
        after: After = None,
        sort: _Sort = "",
        tier: Annotated[int | None, Query(ge=0, le=2, description="only those of this tier")] = None,
    ) -> Programs:
        """Every program: its size, tier, hits and times."""
        chosen = (detail.program for detail in snapshot.programs if tier in {None, detail.program.tier})
        page, following = page_of(chosen, lambda program: program.digest, after, limit, sort)
        return Programs(programs=page, next=following)

    @router.get(
        "/v1/programs/{digest}",
        response_model=ProgramDetail,
        responses=responses(404) | NOT_MODIFIED,
    )
    async def one_program(
        request: Request,
        snapshot: Fresh,
        digest: Annotated[str, Path(max_length=64, description="digest, as `/v1/programs` tells it")],
        form: Annotated[Format, Query(alias="format", description="text: for people")] = Format.JSON,
    ) -> Response:
        """One program: also its groups, which ops were fused, why other ops were not, and its generated source.

        A token of the scope `use` gets the programs that its tenant has run since somebody watches.
        """
        seen = await _seen_by(tenant_of(request), snapshot, watching)
        known = next((each for each in seen if each.program.digest == digest), None)
        if known is None:
            text = f"there is no program {digest!r}; /v1/programs lists those that there are"
            raise Refused(HTTPStatus.NOT_FOUND, "unknown_program", text)
        detail = replace(bounded(known), alike=_alike(known.program, seen))
        if form is Format.TEXT:
            return with_etag(request, program_text(detail), "text/plain; charset=utf-8")
        return with_etag(request, _JSON.dump_json(detail).decode())

    return router


async def _seen_by(tenant: str | None, snapshot: Snapshot, watching: Watching) -> Sequence[ProgramDetail]:
    """Returns the programs that somebody may see who may see one tenant's sessions, or all."""
    if tenant is None:
        return snapshot.programs
    await watching.read_records()
    own = watching.programs_of(tenant)
    return [each for each in snapshot.programs if each.program.digest in own]


def _alike(program: ProgramView, seen: Iterable[ProgramDetail]) -> tuple[AlikeView, ...]:
    """Returns those of the seen programs that have the ops of this one."""
    alike = [each.program for each in seen if each.program.structure == program.structure != ""]
    return tuple(
        [
            AlikeView(each.digest, difference(program.inputs, program.results, each.inputs, each.results), each.rows)
            for each in nlargest(_MOST_ALIKE + 1, alike, key=lambda each: each.rows)
            if each.digest != program.digest
        ][:_MOST_ALIKE]
    )
