"""`fusewire status`: what a server is doing, and which kernels its rows wait for."""

from __future__ import annotations

import argparse
from typing import Any

from fusewire._transport.inspection import inspect
from fusewire_cli.answers import tell
from fusewire_cli.text import duration, properties, size

_MOST_SHOWN = 3  # waits for kernels


def run(parsed: argparse.Namespace) -> int:
    """Prints the statistics of a server. Raises FusewireError."""
    return tell(parsed, inspect("/v1/stats", parsed.http, parsed.tls_ca), status_text)


def status_text(stats: dict[str, Any]) -> str:
    """Returns the statistics of a server as lines of text."""
    backend, totals, memory = stats["backend"], stats["totals"], stats["memory"]
    return properties(
        (
            ("server", f"{stats['version']}, instance {stats['instance'][:12]}, since {stats['started_at']}"),
            ("state", state_of(stats)),
            ("rows", "; ".join(waits_of(stats)) or "wait for no kernel"),
            ("device", f"{backend['name']}: {backend['device']} {backend['detail']}"),
            ("sessions", f"{stats['sessions']:,}; {totals['sessions']['resumed']:,} resumed after a lost connection"),
            ("programs", stats["programs"]),
            ("ops", f"{totals['ops']:,} in {totals['segments']:,} segments"),
            ("launches", f"{totals['launches']:,} in {totals['submissions']:,} submissions, {_per_launch(totals)}"),
            ("memory", f"{size(memory['live_bytes'])} live, {size(memory['peak_bytes'])} peak"),
            ("traffic", f"{size(totals['received_bytes'])} in, {size(totals['sent_bytes'])} out"),
            ("failures", ", ".join(f"{name} {count:,}" for name, count in totals["failures"].items()) or "none"),
        )
    )


def state_of(stats: dict[str, Any]) -> str:
    """Returns the state of a server in a few words."""
    if stats["is_draining"]:
        return "draining"
    if stats["is_held"]:
        return "held: the device accepts no new submission"
    if not stats["is_ready"]:
        return "unready"
    return f"ready, but {stats['trouble']}" if stats.get("trouble") else "ready"


def waits_of(stats: dict[str, Any]) -> list[str]:
    """Returns a line for each of the longest waits, and one for all others. Older servers tell of none."""
    waits = stats.get("kernel_waits")
    if not waits:
        return []
    lines = [_line(wait) for wait in waits["oldest"][:_MOST_SHOWN]]
    left_out = waits["kernels"] - len(lines)
    return [*lines, f"and for {_counted(left_out, 'more kernel')}"] if left_out > 0 else lines


def _line(wait: dict[str, Any]) -> str:
    who = _counted(wait["waiting_sessions"], "session")
    why = f": {wait['refusal']}" if wait["refusal"] else ""
    return f"waits for the kernel of {wait['op']}, {duration(wait['waited_s'])}, {who}{why}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _per_launch(totals: dict[str, Any]) -> str:
    return f"{totals['ops'] / totals['launches']:.1f} ops a launch" if totals["launches"] else "no op has run yet"
