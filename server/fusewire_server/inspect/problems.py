"""Makes the answer to a refused request: a problem as RFC 9457 has it, of a bounded length."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from fastapi.responses import JSONResponse
from starlette.exceptions import HTTPException

from fusewire_server.inspect.described import DescribedModel

TYPE_PREFIX = "urn:fusewire:problem:"
MEDIA_TYPE = "application/problem+json"
_MOST_DETAIL = 1000


class Problem(DescribedModel):
    """The reason for a refusal, as RFC 9457 has it."""

    type: str
    """A fixed word for programs, behind `urn:fusewire:problem:`."""
    title: str
    """The same word for people."""
    status: int
    """The status of the answer."""
    detail: str
    """What was wrong and what was expected, for people; at most 1000 characters."""


class Refused(HTTPException):
    """Raised by a route, or by the reader of its body, to refuse the request. `kind` is the word for programs."""

    def __init__(self, status: HTTPStatus, kind: str, detail: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(status, detail, headers)
        self.kind = kind


def problem(status: HTTPStatus, kind: str, detail: str, headers: Mapping[str, str] | None = None) -> JSONResponse:
    """Returns the answer that refuses a request. Cuts a long detail, because it may repeat what was asked."""
    sendable = detail[:_MOST_DETAIL].encode(errors="replace").decode()
    content = Problem(type=TYPE_PREFIX + kind, title=kind.replace("_", " "), status=status, detail=sendable)
    return JSONResponse(content.model_dump(), status, headers, media_type=MEDIA_TYPE)
