"""Answers with an entity tag, so that a client that has the same content already gets only its tag."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from http import HTTPStatus

from fastapi import Request, Response

_TAG_BYTES = 16


def tagged(request: Request, content: bytes, media_type: str, headers: Mapping[str, str] | None = None) -> Response:
    """Returns the content with its tag, or status 304 without content if the request names this tag."""
    tag = f'"{hashlib.blake2b(content, digest_size=_TAG_BYTES).hexdigest()}"'
    headers = {**(headers or {}), "ETag": tag}
    known = {each.strip().removeprefix("W/") for each in request.headers.get("if-none-match", "").split(",")}
    if tag in known or "*" in known:
        return Response(status_code=HTTPStatus.NOT_MODIFIED, headers=headers)
    return Response(content, headers=headers, media_type=media_type)
