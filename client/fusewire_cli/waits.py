"""Tells in words which kernels the rows of a server wait for. Pure."""

from __future__ import annotations

from typing import Any

from fusewire_cli.text import duration

_MOST_TOLD = 3


def waits_of(stats: dict[str, Any]) -> list[str]:
    """Returns a line for each of the longest waits, and one for all others. Older servers tell of none."""
    waits = stats.get("kernel_waits")
    if not waits:
        return []
    told = [_line(wait) for wait in waits["oldest"][:_MOST_TOLD]]
    left_out = waits["kernels"] - len(told)
    return [*told, f"and for {_counted(left_out, 'more kernel')}"] if left_out > 0 else told


def _line(wait: dict[str, Any]) -> str:
    who = _counted(wait["waiting_sessions"], "session")
    why = f": {wait['refusal']}" if wait["refusal"] else ""
    return f"waits for the kernel of {wait['op']}, {duration(wait['waited_s'])}, {who}{why}"


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"
