"""Writes the lines that a load test prints at its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def summary(document: Mapping[str, Any]) -> str:
    """Returns the result in a few lines of text, and a line for each problem."""
    loop = "closed loop" if document["rate_per_s"] is None else f"open loop at {document['rate_per_s']:g} steps/s"
    lines = [
        f"{document['scenario']}: {document['sessions']} sessions in {document['processes']} processes, {loop}",
        f"  rate        {document['steps_per_s']:,.1f} steps/s, {document['ops_per_s']:,.0f} ops/s",
        f"  latency     {_latency(document)}",
        f"              {_time(document['record_s'])} recording and {_time(document['wait_s'])} waiting on average",
        *_schedule_lines(document),
    ]
    lines += _server_lines(document)
    lines += _comparison_lines(document)
    lines.append(f"  measured    {_measured(document)}")
    if document["verified"] is not None:
        outcome = "each is right" if document["verified"] else "NOT each is right"
        against = (
            "the recorded"
            if document["scenario"] == "replay"
            else f"NumPy's and, alone, to the bit (seed {document['seed']})"
        )
        lines.append(f"  verified    {document['verified_values']:,} values against {against}: {outcome}")
    return "\n".join(lines + [f"  FAILED      {problem}" for problem in document["problems"]])


def _latency(document: Mapping[str, Any]) -> str:
    names = (("p50", "p50_s"), ("p90", "p90_s"), ("p99", "p99_s"), ("p99.9", "p999_s"), ("longest", "max_s"))
    return ", ".join(f"{name} {_time(document[field])}" for name, field in names)


def _schedule_lines(document: Mapping[str, Any]) -> list[str]:
    if document["lag_mean_s"] is None:
        return []
    lag = f"{_time(document['lag_mean_s'])} late by the load test itself (p99 {_time(document['lag_p99_s'])})"
    return [f"              {_time(document['queued_s'])} behind steps that were late, {lag}"]


def _server_lines(document: Mapping[str, Any]) -> list[str]:
    if document["rows_per_launch"] is None:
        return []
    ready, fairness = document["rows_per_ready"], document["fairness"]
    text = f"  server      {document['rows_per_launch']:.2f} rows a launch"
    text += "" if ready is None else f", {ready:.2f} of the sessions that were ready"
    text += "" if fairness is None else f"; fairness of device time {fairness:.3f}"
    phases = document["phases"]
    shown = [f"{name.replace('_', ' ')} {_time(phases[name]['mean_s'])}" for name in phases if phases[name]["count"]]
    return [text, f"              {', '.join(shown)} on average"]


def _comparison_lines(document: Mapping[str, Any]) -> list[str]:
    lines = []
    if document["undisturbed"] is not None:
        alone = _time(document["undisturbed"]["p99_s"])
        lines.append(f"  undisturbed p99 {alone}; with the disturber {_ratio(document['p99_to_undisturbed'])} × that")
    if document["peer"] is not None:
        peer = document["peer"]
        lines.append(
            f"  {peer['library']:12}{peer['steps_per_s']:,.1f} steps/s, p50 {_time(peer['p50_s'])};"
            f" Fusewire does {_ratio(document['steps_to_peer'])} × its steps"
        )
    return lines


def _measured(document: Mapping[str, Any]) -> str:
    text = f"{document['steps']:,} steps in {document['measured_s']:.1f} s"
    text += f" after {document['warm_up_s']:.1f} s of warm-up"
    share = document["harness_share"]
    if share is not None:
        text += f"; the harness took {share:.1%} of the clients' processor time"
    return text if document["settled"] else f"{text}; the load never settled, so these numbers are of its last windows"


def _ratio(ratio: float | None) -> str:
    return "–" if ratio is None else f"{ratio:.2f}"


def _time(seconds: float | None) -> str:
    if seconds is None:
        return "–"
    for unit, scale in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= scale:
            return f"{seconds / scale:.3g} {unit}"
    return f"{seconds * 1e9:.0f} ns"
