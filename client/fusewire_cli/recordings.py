"""`fusewire record` and `fusewire replay`: keeps what the sessions of a program send, and sends it again."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import fusewire
from fusewire_cli.text import duration, properties
from fusewire_protos.errors import ConfigurationError


def record(parsed: argparse.Namespace) -> int:
    """Runs a program whose sessions are recorded; returns its exit status."""
    command = parsed.command[1:] if parsed.command[:1] == ["--"] else parsed.command
    if not command:
        raise ConfigurationError("which program? fusewire record FILE -- python program.py")
    variables = {"FUSEWIRE_RECORD": str(parsed.path.absolute()), "FUSEWIRE_RECORD_VALUES": str(int(parsed.values))}
    try:
        return subprocess.run(command, env={**os.environ, **variables}, check=False).returncode
    except OSError as reason:
        raise ConfigurationError(f"cannot run {command[0]}: {reason.strerror}") from None


def replay(parsed: argparse.Namespace) -> int:
    """Replays a recording; returns 1 if an answer differs from a kept one. Raises FusewireError."""

    def one(number: int) -> fusewire.Replayed:
        return fusewire.replay(
            parsed.path, parsed.target, tls_ca=parsed.tls_ca, speed=parsed.speed, seed=parsed.seed + number
        )

    with ThreadPoolExecutor(parsed.sessions) as threads:
        replayed = list(threads.map(one, range(parsed.sessions)))
    told = summary(replayed)
    print(json.dumps(told, indent=2) if parsed.json else _text(told))
    return 1 if told["differences"] else 0


def summary(replayed: list[fusewire.Replayed]) -> dict[str, Any]:
    """Returns the sums over all sessions, the quantiles of the latencies, and the first differences."""
    latencies_s = sorted((came_ns - sent_ns) / 1e9 for each in replayed for sent_ns, came_ns in each.answered)
    differences = [text for each in replayed for text in each.differences]
    return {
        "sessions": len(replayed),
        "segments": sum(each.segments for each in replayed),
        "ops": sum(each.ops for each in replayed),
        "duration_s": max(each.duration_s for each in replayed),
        "fetches": len(latencies_s),
        "p50_s": _quantile(latencies_s, 0.5),
        "p99_s": _quantile(latencies_s, 0.99),
        "compared": sum(each.compared for each in replayed),
        "differences": differences[:20],
    }


def _quantile(ascending: list[float], share: float) -> float | None:
    return ascending[min(int(share * len(ascending)), len(ascending) - 1)] if ascending else None


def _text(told: dict[str, Any]) -> str:
    latency = "none"
    if told["p50_s"] is not None:
        latency = f"p50 {duration(told['p50_s'])}, p99 {duration(told['p99_s'])} of {told['fetches']:,} fetches"
    lines = properties(
        (
            ("work", f"{told['ops']:,} ops in {told['segments']:,} segments, {told['sessions']} sessions"),
            ("time", duration(told["duration_s"])),
            ("latency", latency),
            ("compared", f"{told['compared']:,} values, {len(told['differences'])} differ"),
        )
    )
    return "\n".join((lines, *told["differences"]))
