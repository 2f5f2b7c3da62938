"""`fusewire why SESSION`: in one line what a session waits for, how long it has waited, and why it failed or ended."""

from __future__ import annotations

import argparse
import json
from typing import Any

from fusewire._transport.inspection import checked_answer, inspect, inspect_all
from fusewire_cli.text import duration, harmless, size
from fusewire_protos.errors import ConfigurationError


def run(parsed: argparse.Namespace) -> int:
    """Prints a line for each session of this id or name. Raises FusewireError."""
    sessions = list(inspect_all("/v1/sessions", "sessions", parsed.http, parsed.tls_ca))
    ended = inspect("/v1/ended_sessions", parsed.http, parsed.tls_ca)
    with checked_answer(parsed.http):
        found = [each for each in (*sessions, *ended["sessions"]) if parsed.session in {each["session"], each["name"]}]
        lines = [why(each) for each in found]
    if not found:
        raise ConfigurationError(f"no session {parsed.session!r}; `fusewire sessions ls` lists those that there are")
    print(json.dumps(found, indent=2) if parsed.json else "\n".join(lines))
    return 0


def why(session: dict[str, Any]) -> str:
    """Returns the line of a session, open or ended."""
    who = f"{session['name']} ({session['session']})" if session["name"] else session["session"]
    if "reason" in session:
        text = f": {session['text']}" if session["text"] else ""
        return harmless(f"{who} ended at {session['at']}: {session['reason']}{text}")
    age_s = max(session["age_s"], 1e-9)
    parts = [
        f"waits for {session['wait_reason']}" if session["wait_reason"] else f"sends nothing, {_idle(session)}",
        f"its client waited for answers in {_share(session['waiting_ns'], age_s)} of {duration(age_s)}",
        f"the device worked for it in {_share(session['device_ns'], age_s)}",
        f"{session['in_flight_segments']:,} segments in flight, {size(session['live_bytes'])} of arrays",
        *[f"last failure: {failure}" for failure in session["failures"][:1]],
    ]
    return harmless(f"{who} {'; '.join(parts)}")


def _idle(session: dict[str, Any]) -> str:
    return f"heard of {duration(session['idle_s'])} ago"


def _share(ns: int, of_s: float) -> str:
    return f"{min(ns / 1e9 / of_s, 1):.0%}"
