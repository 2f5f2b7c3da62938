"""Reads the JSON body of a request after the token is checked, so that no stranger's body costs the server time."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, TypeVar

from fastapi import Request
from fastapi.exceptions import RequestValidationError
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from fusewire_server.inspect.requests.problems import Refused

_MOST_BYTES = 1 << 20
_M = TypeVar("_M", bound=BaseModel)


async def json_body(request: Request, model: type[_M]) -> _M:
    """Returns the body as the model. Refuses a body that is too long, incomplete, no JSON, or not as the model says."""
    body = bytearray()
    try:
        async for piece in request.stream():
            body += piece
            if len(body) > _MOST_BYTES:
                text = f"a body has at most {_MOST_BYTES} bytes"
                raise Refused(HTTPStatus.REQUEST_ENTITY_TOO_LARGE, "body_too_long", text)
        return model.model_validate_json(bytes(body))
    except ValidationError as error:
        raise RequestValidationError([{**each, "loc": ("body", *each["loc"])} for each in error.errors()]) from None
    except ClientDisconnect:
        raise Refused(HTTPStatus.BAD_REQUEST, "incomplete_body", "the body ends too early") from None


def takes(model: type[BaseModel]) -> dict[str, Any]:
    """Returns what OpenAPI is to say of a route with this body. An answer of the route has the same model."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
