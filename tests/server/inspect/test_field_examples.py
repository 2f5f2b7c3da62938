"""Titles and examples of fields: from name and type, and never in place of what a field has."""

from __future__ import annotations

from typing import Any

import pytest

from fusewire_server.inspect.field_examples import add_examples


def completed(name: str, field: dict[str, Any]) -> dict[str, Any]:
    add_examples({"Any": {"properties": {name: field}}})
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
    "field", [{"$ref": "#/x"}, {"type": "array", "items": {"$ref": "#/x"}}, {"anyOf": [{"$ref": "#/x"}]}]
)
def test_a_field_that_refers_to_a_schema_has_the_example_of_that_schema(field: dict[str, Any]) -> None:
    assert "examples" not in completed("sessions", field)
