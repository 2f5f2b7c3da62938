"""Reads the JSON body of a request after the token is checked, so that no stranger's body costs the server time."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, TypeVar

from fastapi import Request
from pydantic import BaseModel, ValidationError
from starlette.requests import ClientDisconnect

from fusewire_server.inspect.requests.problems import Refused

_M = TypeVar("_M", bound=BaseModel)


async def json_body(request: Request, model: type[_M]) -> _M:
    """Returns the body as the model. Refuses a body that is incomplete, no JSON, or not as the model describes."""
    try:
        return model.model_validate_json(await request.body())
    except ValidationError as error:
        details = "; ".join(".".join(["body", *map(str, each["loc"])]) + f": {each['msg']}" for each in error.errors())
        raise Refused(HTTPStatus.UNPROCESSABLE_ENTITY, "bad_parameter", details) from None
    except ClientDisconnect:
        raise Refused(HTTPStatus.BAD_REQUEST, "incomplete_body", "the body ends too early") from None


def takes(model: type[BaseModel]) -> dict[str, Any]:
    """Returns what OpenAPI is to say of a route with this body. An answer of the route has the same model."""
    schema = {"$ref": f"#/components/schemas/{model.__name__}"}
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
