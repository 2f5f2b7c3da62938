"""What schemas and fields get: by name, type and other schemas, and never in place of what they have."""

from __future__ import annotations

from typing import Any

import pytest

from fusewire_server.inspect.field_examples import complete

OTHER = {"description": "Another.", "examples": [{"rows": 9}]}


def completed(name: str, field: dict[str, Any]) -> dict[str, Any]:
    complete({"Any": {"properties": {name: field}}, "Other": OTHER})
    return field


@pytest.mark.parametrize(
    ("name", "field", "example"),
    [
        ("live_bytes", {"type": "integer"}, 65536),
        ("age_s", {"type": "number"}, 0.25),
        ("rows", {"type": "integer"}, 3),
        ("is_fragment", {"type": "boolean"}, False),
        ("tenant", {"type": "string"}, "lab"),
        ("op", {"anyOf": [{"type": "integer"}, {"type": "null"}]}, 3),
        ("shape", {"type": "array", "items": {"type": "integer"}}, [64, 256]),
    ],
)
def test_a_field_gets_an_example_of_its_unit_and_type(name: str, field: dict[str, Any], example: Any) -> None:
    assert completed(name, field)["examples"] == [example]


def test_a_title_is_the_name_in_words() -> None:
    assert completed("live_bytes", {"type": "integer"})["title"] == "Live bytes"


def test_what_a_field_has_stays() -> None:
    given = {"type": "integer", "title": "Mine", "examples": [7]}
    assert completed("rows", dict(given)) == given


@pytest.mark.parametrize(
    ("field", "example"),
    [
        ({"$ref": "#/components/schemas/Other"}, {"rows": 9}),
        ({"type": "array", "items": {"$ref": "#/components/schemas/Other"}}, [{"rows": 9}]),
        ({"anyOf": [{"$ref": "#/components/schemas/Other"}, {"type": "null"}]}, {"rows": 9}),
    ],
)
def test_a_field_that_refers_to_a_schema_has_the_example_of_that_schema(field: dict[str, Any], example: Any) -> None:
    assert completed("device", field)["examples"] == [example]


def test_a_field_that_is_a_schema_has_the_description_of_that_schema() -> None:
    assert completed("device", {"$ref": "#/components/schemas/Other"})["description"] == "Another."


def test_the_example_of_a_schema_has_the_examples_of_its_fields() -> None:
    schema: dict[str, Any] = {"properties": {"rows": {"type": "integer"}, "state": {"type": "string"}}}
    complete({"SessionView": schema})
    assert schema["examples"] == [{"rows": 3, "state": "open"}]
