"""`fusewire sessions ls|show|kill`: the sessions of a server."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from itertools import islice
from typing import Any
from urllib.parse import quote

from fusewire._transport.inspection import checked_answer, inspect, inspect_all
from fusewire_cli.text import duration, properties, size, table

_MOST_ARRAYS = 1000  # that `show` lists


def list_all(parsed: argparse.Namespace) -> int:
    """Prints the sessions of a server. Raises FusewireError."""
    sessions = list(inspect_all("/v1/sessions", "sessions", parsed.http, parsed.tls_ca))
    with checked_answer(parsed.http):
        text = sessions_text(sessions)
    print(json.dumps(sessions, indent=2) if parsed.json else text)
    return 0


def show(parsed: argparse.Namespace) -> int:
    """Prints a session and its arrays, the first thousand. Raises FusewireError."""
    path = _path(parsed.session)
    session = inspect(path, parsed.http, parsed.tls_ca)
    arrays = list(islice(inspect_all(f"{path}/arrays", "arrays", parsed.http, parsed.tls_ca), _MOST_ARRAYS))
    with checked_answer(parsed.http):
        text = f"{session_text(session)}\n\n{arrays_text(arrays)}"
    print(json.dumps({"session": session, "arrays": arrays}, indent=2) if parsed.json else text)
    return 0


def kill(parsed: argparse.Namespace) -> int:
    """Ends a session. Raises FusewireError."""
    answer = inspect(_path(parsed.session), parsed.http, parsed.tls_ca, method="DELETE")
    print(json.dumps(answer) if parsed.json else f"{parsed.session} ends")
    return 0


def sessions_text(sessions: Iterable[dict[str, Any]]) -> str:
    """Returns a table of sessions, with one session on each line."""
    heading = ("session", "name", "tenant", "state", "ops", "in flight", "live", "unread", "idle", "waits for")
    rows = (
        (
            one["session"],
            one.get("name", ""),
            one["tenant"],
            one["state"],
            f"{one['ops']:,}",
            one["in_flight_ops"],
            size(one["live_bytes"]),
            size(one["unread_bytes"]),
            duration(one["idle_s"]),
            one.get("wait_reason", ""),  # older servers do not tell
        )
        for one in sessions
    )
    return table(heading, rows, left=4)


def session_text(one: dict[str, Any]) -> str:
    """Returns a session as lines of text."""
    return properties(
        (
            ("session", f"{one['session']}, {one['state']}, epoch {one['epoch']}"),
            (
                "name",
                " ".join([one.get("name", ""), *[f"{key}={text}" for key, text in one.get("labels", {}).items()]]),
            ),
            ("tenant", one["tenant"]),
            ("client", f"{one['client']} at {one['peer']}"),
            ("work", f"{one['ops']:,} ops in {one['segments']:,} segments, {one['in_flight_ops']:,} ops in flight"),
            ("waits for", _waits_of(one)),
            ("memory", f"{one['live_handles']:,} arrays, {size(one['live_bytes'])}"),
            ("traffic", f"{size(one['received_bytes'])} in, {size(one['sent_bytes'])} out"),
            ("unread", size(one["unread_bytes"])),
            ("device", duration(one["device_ns"] / 1e9)),
            ("loop time", duration(one["loop_ns"] / 1e9)),
            ("idle", duration(one["idle_s"])),
        )
    )


def _waits_of(one: dict[str, Any]) -> str:
    kernels = ", ".join(f"the kernel of {op}" for op in one.get("waits_for", ()))
    return kernels or one.get("wait_reason") or "no kernel"


def arrays_text(arrays: Iterable[dict[str, Any]]) -> str:
    """Returns a table of arrays, with one array on each line."""
    rows = (
        (
            one["handle"],
            one["dtype"],
            "×".join(map(str, one["shape"])) or "scalar",
            size(one["bytes"]),
            one["state"],
            duration(one["age_s"]),
            "upload" if one["op"] is None else f"op {one['op']} of {one['base']}",
        )
        for one in arrays
    )
    return table(("handle", "dtype", "shape", "size", "state", "age", "made by"), rows)


def _path(session: str) -> str:
    return f"/v1/sessions/{quote(session, safe='', errors='surrogateescape')}"
