"""Gives each field of an OpenAPI document a title and an example, by its name and its type. Pure."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_OF_UNITS = {"_bytes": 65536, "_ns": 1_500_000, "_ms": 250, "_s": 0.25}
_OF_TYPES: dict[str, Any] = {"integer": 3, "number": 0.25, "boolean": False, "array": [64, 256], "object": {}}
_PROGRAM, _SESSION = "6f1ed002ab5595859014ebf0951522d9", "9f86d081884c7d659a2feaa0c55ad015"
_OF_TEXTS = {
    "at": "2026-05-04T09:30:00+00:00",
    "client": "fusewire-python 0.1.0",
    "detail": "gcc 12.2",
    "device": "NVIDIA H200",
    "digest": _PROGRAM,
    "form": "persistent",
    "instance": "4bf5122f344554c53bde2ebb8cd2b7e3",
    "kernel": "fw_6d333f5499d5470015ac",
    "name": "cuda",
    "peer": "ipv4:10.0.0.7:50412",
    "program": _PROGRAM,
    "refusal": "",
    "session": _SESSION,
    "started_at": "2026-05-04T08:00:00+00:00",
    "state": "ready",
    "tenant": "lab",
    "text": "void fw_6d333f5499d5470015ac(const int64_t *sizes) {}",
    "trouble": "",
    "version": "0.1.0",
    "why_no_graph": "",
}


def add_examples(schemas: dict[str, Schema]) -> None:
    """Adds what is missing to the fields of all schemas. A field that refers to another schema has that one's."""
    for schema in schemas.values():
        for name, field in schema.get("properties", {}).items():
            field.setdefault("title", name.replace("_", " ").capitalize())
            if not _refers(field):
                field.setdefault("examples", [_example(name, field)])


def _refers(field: Schema) -> bool:
    """Returns whether the field, or an element of it, is described by another schema."""
    parts = [field, field.get("items", {}), field.get("additionalProperties", {}), *field.get("anyOf", ())]
    return any(isinstance(part, dict) and "$ref" in part for part in parts)


def _example(name: str, field: Schema) -> Any:
    """Returns a plausible value. A field that may be null has the example of its other type."""
    kind = field.get("type") or next((each["type"] for each in field.get("anyOf", ()) if each["type"] != "null"), None)
    if kind == "string":
        return _OF_TEXTS.get(name, name)
    unit = next((value for end, value in _OF_UNITS.items() if name.endswith(end)), None)
    return unit if unit is not None and kind in {"integer", "number"} else _OF_TYPES.get(str(kind), name)
