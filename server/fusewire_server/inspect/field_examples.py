"""Gives the schemas of an OpenAPI document examples, and each field a title and a description. Pure."""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

_UNNAMED = object()

_OF_UNITS = {"_bytes": 65536, "_ns": 1_500_000, "_ms": 250, "_s": 0.25}
_OF_TYPES: dict[str, Any] = {"integer": 3, "number": 0.25, "boolean": False, "array": [64, 256], "object": {}}
_PROGRAM, _SESSION = "6f1ed002ab5595859014ebf0951522d9", "9f86d081884c"
_OF_NAMES: dict[str, Any] = {  # of fields by name; of a field of one schema by both names
    "CompiledView.persistent": ["kernels"],
    "AlikeView.difference": "input 0 is float32[32,256] in place of float32[64,256]",
    "CompiledView.reads": [[], [0]],
    "CompiledView.reasons": {"of_product": "the kernel of a product reads its operands from memory"},
    "CompiledView.updated": [1],
    "CompiledView.why_launched": "",
    "GroupView.values": [[-1, 0, 1]],
    "OpView.form": "kernels",
    "OpView.groups": [0],
    "OpView.name": "tanh",
    "Problem.detail": "there is no session '9f86d081884c'; /v1/sessions lists those that there are",
    "EndedSession.text": "",
    "RecentFailure.text": "op 3 add: shapes (2,) and (3,) do not broadcast",
    "KernelWaitView.op": "max",
    "KernelWaitView.refusal": "No space left on device",
    "KernelWaitView.sessions": [_SESSION],
    "ProgramView.inputs": ["float32[64,256]"],
    "ProgramView.state": "loaded",
    "ProgramView.structure": "b2d9f4d4f1e2a7c3",
    "DeviceView.name": "NVIDIA H200",
    "EndedSession.name": "ppo-worker-7",
    "SessionView.device": 0,
    "SessionView.labels": {"run": "42"},
    "SessionView.name": "ppo-worker-7",
    "SessionView.state": "open",
    "SeparateView.reason": "other_kernel",
    "SettingView.value": 64,
    "SlowSegment.total_s": 0.75,
    "SessionView.waits_for": ["max"],
    "Totals.refusals": {"token": {"unauthenticated": 3}},
    "UnfusedView.reason": "of_product",
    "SessionView.failures": ["bad_shape: op 3 add: shapes (2,) and (3,) do not broadcast"],
    "batches": {"alone": 3},
    "case": "bad_shape",
    "ended": {"goodbye": 3},
    "failures": {"bad_shape": 3},
    "next": None,
    "settings": {"limits.sessions": {"value": 64, "origin": "default"}},
    "at": "2026-05-04T09:30:00+00:00",
    "client": "fusewire-python 0.1.0",
    "detail": "gcc 12.2",
    "device": "NVIDIA H200",
    "digest": _PROGRAM,
    "form": "persistent",
    "has_compiler": True,
    "instance": "4bf5122f344554c53bde2ebb8cd2b7e3",
    "is_ready": True,
    "kernel": "fw_6d333f5499d5470015ac",
    "name": "cuda",
    "peer": "ipv4:10.0.0.7:50412",
    "program": _PROGRAM,
    "reason": "goodbye",
    "refusal": "",
    "session": _SESSION,
    "started_at": "2026-05-04T08:00:00+00:00",
    "state": "ready",
    "tenant": "lab",
    "text": "void fw_6d333f5499d5470015ac(const int64_t *sizes) {}",
    "threshold_s": 0.01,
    "tier": 1,
    "trouble": "",
    "version": "0.1.0",
    "wait_reason": "kernel of max",
    "why_no_graph": "",
    "why_not_persistent": "",
}


def complete(schemas: dict[str, Schema]) -> None:
    """Adds what is missing: an example to each schema, and to each field a title, a description and an example.

    A field that refers to another schema has the description and the example of that schema.
    """
    for name in schemas:
        _complete(name, schemas)


def _complete(name: str, schemas: dict[str, Schema]) -> Any:
    """Completes a schema, after the schemas to which it refers. Returns its example."""
    schema = schemas[name]
    fields = schema.get("properties", {})
    for field_name, field in fields.items():
        field.setdefault("title", field_name.replace("_", " ").capitalize())
        if "$ref" in field:
            field.setdefault("description", schemas[_referred(field)].get("description"))
        if "examples" not in field:
            field["examples"] = [_example(name, field_name, field, schemas)]
    if "enum" in schema:
        return schema.setdefault("examples", schema["enum"][:1])[0]
    whole = {field_name: field["examples"][0] for field_name, field in fields.items()}
    return schema.setdefault("examples", [whole])[0]


def _example(schema_name: str, name: str, field: Schema, schemas: dict[str, Schema]) -> Any:
    """Returns a plausible value of a field. A field that may be null has the example of its other type."""
    kinds = [field, *field.get("anyOf", ())]
    for kind in kinds:
        if "$ref" in kind:
            return _complete(_referred(kind), schemas)
        if "$ref" in kind.get("items", {}):
            return [_complete(_referred(kind["items"]), schemas)]
    named = _OF_NAMES.get(f"{schema_name}.{name}", _OF_NAMES.get(name, _UNNAMED))
    if named is not _UNNAMED:
        return named
    kind_name = next(kind["type"] for kind in kinds if kind.get("type", "null") != "null")
    unit = next((value for end, value in _OF_UNITS.items() if name.endswith(end)), None)
    return unit if unit is not None and kind_name in {"integer", "number"} else _OF_TYPES.get(kind_name, name)


def _referred(field: Schema) -> str:
    """Returns the name of the schema to which a field refers."""
    return str(field["$ref"]).rpartition("/")[2]
