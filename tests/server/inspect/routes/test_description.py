"""The OpenAPI document describes every route, field and parameter."""

from __future__ import annotations

from typing import Any

from fastapi.routing import APIRoute
from pydantic import TypeAdapter

from fusewire_server.inspect.routes.guard import OPEN_PATHS
from tests.server.inspect.examples import Client
from tests.server.inspect.routes.applications import ALL_ROUTES


def test_the_description_of_the_api_covers_every_route_but_itself(client: Client) -> None:
    described = client.get("/v1/openapi.json").json()["paths"]
    assert {(method.upper(), path) for path, methods in described.items() for method in methods} == ALL_ROUTES - {
        ("GET", "/v1/openapi.json"),
        ("GET", "/docs"),
    }


def test_every_operation_has_a_summary_a_description_and_its_refusals(client: Client) -> None:
    for operation in operations(client):
        assert operation["summary"]
        assert operation["description"]
        assert operation["responses"]["4XX"]["content"].keys() == {"application/problem+json"}


def test_every_parameter_is_described(client: Client) -> None:
    parameters = [each for operation in operations(client) for each in operation.get("parameters", ())]
    assert len(parameters) > 10
    assert all(parameter["description"] for parameter in parameters)


def test_every_field_is_described(client: Client) -> None:
    schemas = described(client)["components"]["schemas"]
    fields = {
        f"{name}.{field}": told
        for name, schema in schemas.items()
        for field, told in schema.get("properties", {}).items()
    }
    assert len(fields) > 100
    # A description that repeats that of the field's own schema is left out.
    assert [name for name, told in fields.items() if not told.get("description") and "$ref" not in told] == []


def test_operations_need_a_token_but_the_open_ones(client: Client) -> None:
    document = described(client)
    assert document["components"]["securitySchemes"] == {"token": {"type": "http", "scheme": "bearer"}}
    for path, methods in document["paths"].items():
        for operation in methods.values():
            assert ("security" in operation) == (path not in OPEN_PATHS)


def test_every_answer_in_json_has_an_example_that_is_as_described(client: Client) -> None:
    paths = described(client)["paths"]
    routes = [route for route in client.app.routes if isinstance(route, APIRoute) and route.include_in_schema]
    shown = 0
    for route in routes:
        method = min(route.methods or {"GET"})
        answer = paths[route.path][method.lower()]["responses"][str(route.status_code or 200)]
        example = answer["content"].get("application/json", {}).get("example")
        if example is not None:
            TypeAdapter(route.response_model).validate_python(example, extra="forbid")
            shown += 1
    assert shown == len(routes) - len({"livez", "readyz", "metrics"})


def described(client: Client) -> dict[str, Any]:
    document: dict[str, Any] = client.get("/v1/openapi.json").json()
    return document


def operations(client: Client) -> list[dict[str, Any]]:
    return [operation for methods in described(client)["paths"].values() for operation in methods.values()]
