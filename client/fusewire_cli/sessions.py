"""`fusewire sessions show`: one session of a server, and its arrays."""

from __future__ import annotations

import argparse
from itertools import islice
from typing import Any

from fusewire._transport.inspection import inspect, inspect_all
from fusewire_cli.answers import quoted, tell
from fusewire_cli.listings import ARRAYS
from fusewire_cli.text import duration, properties, size

_MOST_ARRAYS = 1000  # that `show` lists


def show(parsed: argparse.Namespace) -> int:
    """Prints a session and its arrays, the first thousand. Raises FusewireError."""
    path = quoted("/v1/sessions/{}", parsed.session)
    session = inspect(path, parsed.http, parsed.tls_ca)
    arrays = list(islice(inspect_all(path + ARRAYS.path, ARRAYS.entries, parsed.http, parsed.tls_ca), _MOST_ARRAYS))
    answer = {"session": session, "arrays": arrays}
    return tell(
        parsed,
        answer,
        lambda answer: f"{session_text(answer['session'])}\n\n{ARRAYS.text_of(answer['arrays'])}",
    )


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
