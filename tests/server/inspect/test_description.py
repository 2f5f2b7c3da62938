"""The description of the routes (OpenAPI), and that the routes do what it says, whatever is sent."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Iterator
from typing import Any, ClassVar

import jsonschema  # type: ignore[import-untyped]  # it has no types
import pytest
import schemathesis
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, settings

from fusewire_server.access.tokens import Authenticator, Scope, mint
from fusewire_server.inspect.application import create_app
from fusewire_server.inspect.routes import live
from tests.server.inspect.examples import Client, FixedSnapshots, RememberingControl

_APP = create_app(FixedSnapshots(), None, RememberingControl())
_SCHEMA = schemathesis.openapi.from_asgi("/v1/openapi.json", app=_APP)
_DESCRIPTION = _SCHEMA.raw_schema


@pytest.fixture(autouse=True, scope="module")
def _ending_streams() -> Iterator[None]:
    """Lets a live stream end before its first message, because these tests wait for the end of each answer."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(live, "STREAM_S", 0.0)
        yield


@_SCHEMA.auth()
class _Token:
    """Sends the token with each request, except where the absence of a token is tested."""

    bearer: ClassVar[dict[str, str]] = {}

    def get(self, case: schemathesis.Case[Any], context: object) -> dict[str, str]:
        return self.bearer

    def set(self, case: schemathesis.Case[Any], data: dict[str, str], context: object) -> None:
        case.headers.update(data)


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    """The application of a server with tokens, one of which is sent."""
    tokens = tmp_path_factory.mktemp("tokens") / "tokens"
    _Token.bearer["Authorization"] = f"Bearer {mint(tokens, tenant='lab', scope=Scope.ADMIN)}"
    return create_app(FixedSnapshots(), Authenticator(tokens), RememberingControl())


@pytest.mark.slow
@_SCHEMA.parametrize()
@settings(
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=list(HealthCheck),
    database=None,
)
def test_every_operation_does_what_its_description_says(case: schemathesis.Case[Any], guarded: FastAPI) -> None:
    case.operation.app = guarded
    case.call_and_validate()


def test_every_operation_has_a_summary_and_every_answer_a_schema() -> None:
    for path, methods in _DESCRIPTION["paths"].items():
        for method, operation in methods.items():
            assert operation["summary"], (path, method)
            assert operation["description"], (path, method)
            answer = next(iter(operation["responses"].values()))["content"]
            assert "text/plain" in answer or next(iter(answer.values()))["schema"], (path, method)


def test_every_field_and_every_parameter_is_described() -> None:
    fields = {
        f"{name}.{field}": each
        for name, schema in _DESCRIPTION["components"]["schemas"].items()
        for field, each in schema.get("properties", {}).items()
    }
    assert len(fields) > 150
    assert [name for name, each in fields.items() if not each.get("description")] == []
    for methods in _DESCRIPTION["paths"].values():
        for operation in methods.values():
            assert all(parameter["description"] for parameter in operation.get("parameters", ()))


def test_every_field_has_a_title_a_description_and_an_example() -> None:
    for name, schema in _DESCRIPTION["components"]["schemas"].items():
        for field, each in schema.get("properties", {}).items():
            assert each["title"], (name, field)
            assert each["description"], (name, field)
            assert each["examples"], (name, field)


def test_every_default_is_as_its_schema_says() -> None:
    schemas = _DESCRIPTION["components"]["schemas"]
    for schema in schemas.values():
        for field in schema.get("properties", {}).values():
            if "default" in field:
                jsonschema.Draft202012Validator({**field, "components": {"schemas": schemas}}).validate(
                    field["default"]
                )


def test_every_answer_has_an_example() -> None:
    schemas = _DESCRIPTION["components"]["schemas"]
    for path, methods in _DESCRIPTION["paths"].items():
        for method, operation in methods.items():
            for status, answer in operation["responses"].items():
                for kind, content in answer.get("content", {}).items():
                    name = content.get("schema", {}).get("$ref", "").rpartition("/")[2]
                    assert content.get("example") or schemas[name]["examples"], (method, path, status, kind)


def test_every_example_is_as_its_schema_says() -> None:
    schemas = _DESCRIPTION["components"]["schemas"]
    for name, schema in schemas.items():
        whole = jsonschema.Draft202012Validator(
            {"$ref": f"#/components/schemas/{name}", "components": {"schemas": schemas}}
        )
        for example in schema["examples"]:
            whole.validate(example)
        for field in schema.get("properties", {}).values():
            part = jsonschema.Draft202012Validator({**field, "components": {"schemas": schemas}})
            for example in field["examples"]:
                part.validate(example)


def test_an_answer_that_may_be_unchanged_is_described_where_there_is_an_etag() -> None:
    for path, methods in _DESCRIPTION["paths"].items():
        if "get" in methods:
            answer = Client(_APP).request("GET", path.format(session="0123456789ab", digest="aa"))
            assert ("304" in methods["get"]["responses"]) == ("etag" in answer.headers), path


def test_only_described_schemas_are_referred_to() -> None:
    referred = set(re.findall(r'"#/components/schemas/(\w+)"', json.dumps(_DESCRIPTION)))
    assert referred <= _DESCRIPTION["components"]["schemas"].keys()


def test_units_are_told() -> None:
    stats = _DESCRIPTION["components"]["schemas"]["PhaseTotal"]["properties"]
    assert stats["total_ns"]["x-unit"] == "nanoseconds"


def test_a_token_is_asked_for_where_it_is_needed() -> None:
    assert _DESCRIPTION["security"] == [{"token": []}]
    assert _DESCRIPTION["paths"]["/livez"]["get"]["security"] == []


def test_the_page_loads_nothing_from_elsewhere() -> None:
    answer = Client(_APP).get("/docs")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = dict(rule.split(" ", 1) for rule in answer.headers["content-security-policy"].split("; "))
    assert policy["default-src"] == "'none'"
    for tag in ("script", "style"):
        (text,) = re.findall(rf"<{tag}>(.*?)</{tag}>", answer.text, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert policy[f"{tag}-src"] == f"'sha256-{digest}'"
    assert not re.search(r"innerHTML|localStorage|sessionStorage|cookie| on\w+=| style=", answer.text)
    assert "http://" not in answer.text
    assert "https://" not in answer.text
