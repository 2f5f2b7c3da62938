"""Writes a timeline in the trace event format of Chrome, which Perfetto opens. Pure.

The format: https://docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU (Trace Event Format). Times
are in microseconds. An arrow of a segment leads from your code, or from the cutting, to what computed it.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from fusewire._profile.timeline import NO_SEGMENT, Block, Timeline

_CLIENT, _SERVER = 1, 2
_PROCESSES = {_CLIENT: "this process", _SERVER: "server"}


def trace_text(timeline: Timeline) -> str:
    """Returns the trace as JSON."""
    other = {"counts": dict(timeline.counts), "clock_error_ns": timeline.error_ns, "notes": timeline.notes}
    events = [*_names(timeline), *_slices(timeline), *_arrows(timeline), *_counters(timeline)]
    return json.dumps({"displayTimeUnit": "ns", "otherData": other, "traceEvents": events}, separators=(",", ":"))


def _process_of(timeline: Timeline) -> list[int]:
    """Returns the process of each track: submissions are on the server, all else is here."""
    on_server = {block.track for block in timeline.blocks if block.kind == "submission"}
    return [_SERVER if track in on_server else _CLIENT for track in range(len(timeline.tracks))]


def _names(timeline: Timeline) -> Iterator[dict[str, Any]]:
    for process, name in _PROCESSES.items():
        yield {"ph": "M", "pid": process, "name": "process_name", "args": {"name": name}}
    for track, (name, process) in enumerate(zip(timeline.tracks, _process_of(timeline), strict=True)):
        head = {"ph": "M", "pid": process, "tid": track + 1}
        yield {**head, "name": "thread_name", "args": {"name": name}}
        yield {**head, "name": "thread_sort_index", "args": {"sort_index": track}}


def _slices(timeline: Timeline) -> Iterator[dict[str, Any]]:
    processes = _process_of(timeline)
    for block in timeline.blocks:
        yield {
            "ph": "X",
            "pid": processes[block.track],
            "tid": block.track + 1,
            "ts": block.began_ns / 1e3,
            "dur": (block.ended_ns - block.began_ns) / 1e3,
            "cat": block.kind,
            "name": block.label,
            "args": _arguments(timeline, block),
        }


def _arguments(timeline: Timeline, block: Block) -> dict[str, Any]:
    fields: dict[str, Any] = dict(block.facts)
    if block.line:
        fields["line"] = block.line
    if block.segment != NO_SEGMENT:
        segment = timeline.segments[block.segment]
        fields |= {"segment": block.segment, "ops": segment.ops, "line": block.line or segment.line}
        fields |= {"program": segment.label, "iterations": segment.iterations, "why_cut": segment.why_cut}
    return fields


def _arrows(timeline: Timeline) -> Iterator[dict[str, Any]]:
    processes = _process_of(timeline)
    origins: dict[int, Block] = {}
    submissions: dict[int, list[Block]] = defaultdict(list)
    for block in timeline.blocks:
        if block.ended_ns == block.began_ns or block.segment == NO_SEGMENT:
            continue  # an arrow is bound to the block in which its end lies
        if block.kind == "submission":
            submissions[block.segment].append(block)
        elif block.kind == "code" or (block.kind == "cut" and block.segment not in origins):
            origins[block.segment] = block
    for segment in sorted(origins.keys() & submissions.keys()):
        chain = [origins[segment], *sorted(submissions[segment], key=lambda each: each.began_ns)]
        for place, block in enumerate(chain):
            phase = "s" if place == 0 else "f" if place == len(chain) - 1 else "t"
            yield {
                "ph": phase,
                "pid": processes[block.track],
                "tid": block.track + 1,
                "ts": (block.began_ns + block.ended_ns) / 2e3,
                "id": segment + 1,
                "cat": "segment",
                "name": "computed by",
                **({"bp": "e"} if phase != "s" else {}),
            }


def _counters(timeline: Timeline) -> Iterator[dict[str, Any]]:
    for series in timeline.series:
        for at_ns, value in series.points:
            head = {"ph": "C", "pid": _SERVER, "ts": at_ns / 1e3, "name": series.name}
            yield {**head, "args": {series.unit: value}}
