"""`fusewire tenants`: the tenants that have sessions on a server."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable
from typing import Any

from fusewire._transport.inspection import checked_answer, inspect_all
from fusewire_cli.text import duration, size, table


def run(parsed: argparse.Namespace) -> int:
    """Prints the tenants. Raises FusewireError."""
    tenants = list(inspect_all("/v1/tenants", "tenants", parsed.http, parsed.tls_ca))
    with checked_answer(parsed.http):
        text = tenants_text(tenants)
    print(json.dumps(tenants, indent=2) if parsed.json else text)
    return 0


def tenants_text(tenants: Iterable[dict[str, Any]]) -> str:
    """Returns a table of tenants, with one tenant on each line."""
    rows = (
        (
            one["tenant"],
            one["sessions"],
            f"{one['in_flight_ops']:,}",
            f"{one['live_handles']:,}",
            size(one["live_bytes"]),
            duration(one["device_ns"] / 1e9),
            duration(one["loop_ns"] / 1e9),
        )
        for one in tenants
    )
    return table(("tenant", "sessions", "ops in flight", "arrays", "memory", "device time", "loop time"), rows)
