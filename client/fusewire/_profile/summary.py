"""Says in six lines where the time of a block went. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from fusewire._profile.timeline import NO_SEGMENT, Block, Timeline

_ALL = 0.95  # of the time: if a line has so much of it, it is told as the line of all
_WHY = {
    "way_ns": "each a round trip",
    "run_ns": "mostly for the device's work",
    "queue_ns": "mostly in the server's queue",
}


class Share(NamedTuple):
    """A share of the time of all threads that recorded or waited. `kind` is that of `Block`."""

    kind: str
    share: float
    text: str


def summary_of(timeline: Timeline) -> tuple[str, ...]:
    """Returns six lines: what was done, how the threads' time was spent (the greatest part first), and the device."""
    return (_head(timeline), *[each.text for each in shares_of(timeline)], _device(timeline))


def shares_of(timeline: Timeline) -> list[Share]:
    """Returns how the threads' time was spent, the greatest part first."""
    whole_ns = max(timeline.length_ns * max(timeline.counts["threads"], 1), 1)
    by_kind: dict[str, list[Block]] = {"read": [], "credit": [], "cut": [], "code": []}
    for block in timeline.blocks:
        by_kind.get(block.kind, []).append(block)
    spent_ns = {kind: sum(each.ended_ns - each.began_ns for each in blocks) for kind, blocks in by_kind.items()}
    spent_ns["code"] = max(whole_ns - spent_ns["read"] - spent_ns["credit"] - spent_ns["cut"], 0)
    texts = {
        "read": ("waiting for reads", _reads(by_kind["read"])),
        "credit": ("waiting for the device to catch up", _waits(by_kind["credit"])),
        "cut": ("cutting and sending", _sent(timeline)),
        "code": ("your code and recording", _code(timeline, spent_ns["code"], by_kind["code"])),
    }
    order = sorted(texts, key=lambda kind: -spent_ns[kind])
    shares = [(kind, spent_ns[kind] / whole_ns) for kind in order]
    return [Share(kind, share, f"{texts[kind][0]} {share:.0%}: {texts[kind][1]}") for kind, share in shares]


def duration(ns: float) -> str:
    """Returns a duration with three digits."""
    for unit, scale in (("s", 1e9), ("ms", 1e6), ("µs", 1e3)):
        if ns >= scale:
            return f"{ns / scale:.3g} {unit}" if ns < 1000 * scale else f"{ns / scale:.0f} {unit}"
    return f"{ns:.0f} ns"


def size(count: float) -> str:
    for unit, scale in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if count >= scale:
            return f"{count / scale:.1f} {unit}"
    return f"{count:.0f} bytes"


def _head(timeline: Timeline) -> str:
    counts, error_ns = timeline.counts, timeline.error_ns
    clocks = "with clocks that could not be aligned" if error_ns is None else f"clocks aligned to ±{duration(error_ns)}"
    threads = f" in {counts['threads']} threads" if counts["threads"] > 1 else ""
    of_sessions = f" of {counts['sessions']} sessions" if counts["sessions"] != 1 else ""
    ops, segments = counts.get("ops", 0), counts.get("segments", 0)
    return f"{duration(timeline.length_ns)}{threads}: {ops:,} ops in {segments:,} segments{of_sessions}, {clocks}"


def _reads(waits: Sequence[Block]) -> str:
    if not waits:
        return "none"
    parts: Counter[str] = Counter()
    for block in waits:
        parts.update(dict(block.facts))
    each = "1 read" if len(waits) == 1 else f"{len(waits):,} reads"
    most = max(_WHY, key=lambda part: parts[part])
    return f"{each}, {_WHY[most]}{_at(waits)}"


def _waits(waits: Sequence[Block]) -> str:
    return f"{len(waits):,} times{_at(waits)}" if waits else "none"


def _code(timeline: Timeline, code_ns: int, blocks: Sequence[Block]) -> str:
    ops = timeline.counts.get("ops", 0)
    return f"{duration(code_ns / ops)} an op{_at(blocks)}" if ops else "no op"


def _sent(timeline: Timeline) -> str:
    counts = timeline.counts
    uploads = f", {counts['uploads']:,} uploads of {size(counts['upload_bytes'])}" if counts.get("uploads") else ""
    return f"{counts.get('frames', 0):,} frames of {size(counts.get('frame_bytes', 0))}{uploads}"


def _device(timeline: Timeline) -> str:
    counts = timeline.counts
    by_label: Counter[str] = Counter()
    for block in timeline.blocks:
        if block.kind == "submission":
            line = timeline.segments[block.segment].line if block.segment != NO_SEGMENT else ""
            by_label[f"{block.label} ({line})" if line else block.label] += block.ended_ns - block.began_ns
    most = "".join([f", most for {label}" for label, _ in by_label.most_common(1)])
    share = counts.get("device_ns", 0) / max(timeline.length_ns, 1)
    memory = size(counts.get("memory_bytes", 0))
    submissions = counts.get("submissions", 0)
    return f"the device computed for {share:.0%} of it: {submissions:,} submissions{most}; at most {memory} of memory"


def _at(blocks: Sequence[Block]) -> str:
    """Names the line at which most of the time of these blocks was spent."""
    by_line: Counter[str] = Counter()
    for block in blocks:
        by_line[block.line] += block.ended_ns - block.began_ns
    (line, line_ns), *_ = by_line.most_common(1) or [("", 0)]
    most = "" if line_ns >= _ALL * sum(by_line.values()) else "most at "
    return f"; {most}your line {line}" if line else ""
