"""The routes of the page: its files, which hold no data and need no token."""

from __future__ import annotations

from collections.abc import Iterator
from http import HTTPStatus
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import PurePosixPath

from fastapi import APIRouter, Request, Response

from fusewire_server import inspect
from fusewire_server.inspect.pages import with_etag
from fusewire_server.inspect.requests.problems import Refused

_MEDIA_TYPES = {
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
# Runs and shows what comes from this server only, talks to this server only, and lies in no other page's frame.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
)
_HEADERS = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
_FIRST = "index.html"


def page_routes() -> APIRouter:
    """Returns the routes. The files are read once."""
    router = APIRouter(include_in_schema=False)
    texts = dict(_files_in(files(inspect).joinpath("page")))

    def answer(request: Request, name: str) -> Response:
        if name not in texts:
            raise Refused(HTTPStatus.NOT_FOUND, "not_found", "the page has no such file")
        found = with_etag(request, texts[name], _MEDIA_TYPES[PurePosixPath(name).suffix])
        found.headers.update(_HEADERS)
        return found

    @router.get("/ui/")
    async def page(request: Request) -> Response:
        """The page that shows the server live."""
        return answer(request, _FIRST)

    @router.get("/ui/{file:path}")
    async def part(request: Request, file: str) -> Response:
        """A file of the page."""
        return answer(request, file)

    return router


def _files_in(folder: Traversable, path: str = "") -> Iterator[tuple[str, str]]:
    """Yields the files in a folder and in those in it: their paths and their texts."""
    for each in folder.iterdir():
        if each.is_dir():
            yield from _files_in(each, f"{path}{each.name}/")
        elif PurePosixPath(each.name).suffix in _MEDIA_TYPES:
            yield path + each.name, each.read_text(encoding="utf-8")
