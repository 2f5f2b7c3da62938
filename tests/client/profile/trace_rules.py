"""Checks a trace against the trace event format of Chrome, as strictly as Perfetto's importer of JSON takes it.

Perfetto drops a complete event that overlaps another of its thread without lying in it, a flow event that no slice
encloses, and a step or end of a flow that has not begun; what is dropped is an error here.
"""

from __future__ import annotations

import json
from collections import defaultdict
from itertools import pairwise
from typing import Any

_FLOW: dict[str, Any] = {"name": str, "cat": str, "pid": int, "tid": int, "ts": (int, float), "id": int}
_FIELDS: dict[str, dict[str, Any]] = {
    "M": {"name": str, "pid": int, "args": dict},
    "X": {"name": str, "cat": str, "pid": int, "tid": int, "ts": (int, float), "dur": (int, float), "args": dict},
    "C": {"name": str, "pid": int, "ts": (int, float), "args": dict},
    "s": _FLOW,
    "t": _FLOW,
    "f": _FLOW,
}
_NAMES = {"process_name", "thread_name", "thread_sort_index"}


def checked(text: str) -> list[dict[str, Any]]:
    """Returns the events of a trace that keeps to the format."""
    trace = json.loads(text, parse_constant=_refused)
    assert trace["displayTimeUnit"] in {"ms", "ns"}
    events: list[dict[str, Any]] = trace["traceEvents"]
    for event in events:
        for name, kind in _FIELDS[event["ph"]].items():
            assert isinstance(event[name], kind), (name, event)
        assert event["ph"] != "M" or event["name"] in _NAMES
        assert event["ph"] != "C" or all(isinstance(each, int | float) for each in event["args"].values())
        assert event.get("dur", 0) >= 0
    slices = _slices_by_thread(events)
    named = {(each["pid"], each["tid"]) for each in events if each["name"] == "thread_name"}
    assert slices.keys() <= named
    _check_flows(events, slices)
    return events


def _refused(constant: str) -> None:
    raise AssertionError(f"{constant} is no JSON")


def _slices_by_thread(events: list[dict[str, Any]]) -> dict[tuple[int, int], list[tuple[float, float]]]:
    """The slices of each thread, of which none overlaps another by more than what rounding to floats does."""
    found: dict[tuple[int, int], list[tuple[float, float]]] = defaultdict(list)
    for event in events:
        if event["ph"] == "X":
            found[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
    for slices in found.values():
        slices.sort()
        for (_, end), (begin, _) in pairwise(slices):
            assert end <= begin + 1e-4
    return found


def _check_flows(events: list[dict[str, Any]], slices: dict[tuple[int, int], list[tuple[float, float]]]) -> None:
    flows: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for event in events:
        if event["ph"] in "stf":
            flows[event["id"]].append(event)
            around = slices[event["pid"], event["tid"]]
            assert any(begin < event["ts"] < end for begin, end in around), event
    for chain in flows.values():
        phases = [each["ph"] for each in chain]
        assert phases == ["s", *"t" * (len(chain) - 2), "f"]
        assert all(each["bp"] == "e" for each in chain[1:])
