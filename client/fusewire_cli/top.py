"""`fusewire top`: watches the sessions of a server in a terminal."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Iterator

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fusewire._transport.inspection import checked_answer, inspect, inspect_all
from fusewire_cli.activity import Activity, Look, activity_between, as_json
from fusewire_cli.status import state_of
from fusewire_cli.text import harmless, rate, size
from fusewire_protos.errors import ServerFault


def run(parsed: argparse.Namespace) -> int:
    """Shows the activity until it is interrupted; with `--json` a line of JSON for each look. Raises FusewireError."""
    if parsed.json or parsed.once:
        for activity in _activities(parsed):
            _print(activity, is_json=parsed.json)
            if parsed.once:
                return 0
    with Live(Text(f"looks at {parsed.http} …"), auto_refresh=False, screen=True) as live:
        while True:
            try:
                for activity in _activities(parsed):
                    live.update(screen_of(activity, parsed.http), refresh=True)
            except ServerFault as fault:  # the server may come back
                live.update(Text(harmless(fault), style="red"), refresh=True)
                time.sleep(parsed.every)


def screen_of(activity: Activity, address: str) -> Group:
    """Returns what the terminal shows: some lines about the server, and a table of its sessions."""
    stats, memory = activity.stats, activity.stats["memory"]
    server = (address, harmless(stats["backend"]["device"]), state_of(stats))
    work = (
        f"{rate(activity.ops_per_s)} ops",
        f"{rate(activity.segments_per_s)} segments",
        f"{activity.rows_per_submission:.1f} rows together",
        f"device {activity.device_share:.0%}",
    )
    load = (
        f"memory {size(memory['live_bytes'])} live, {size(memory['peak_bytes'])} peak",
        f"in {size(activity.received_bytes_per_s)}/s",
        f"out {size(activity.sent_bytes_per_s)}/s",
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("session", "tenant", "client"):
        table.add_column(name, no_wrap=True)
    for name in ("ops", "in flight", "memory", "device"):
        table.add_column(name, justify="right", no_wrap=True)
    for each in activity.sessions:
        session = each.session
        shown = (session["session"], session["tenant"], session["client"], rate(each.ops_per_s))
        more = (f"{session['in_flight_ops']:,}", size(session["live_bytes"]), f"{each.device_share:.0%}")
        style = "dim" if each.ops_per_s == 0 else ""
        table.add_row(*(Text(harmless(cell)) for cell in (*shown, *more)), style=style)
    return Group(*(Text("  ".join(filter(None, line))) for line in (server, work, load)), Text(), table)


def _activities(parsed: argparse.Namespace) -> Iterator[Activity]:
    earlier = _look(parsed)
    while True:
        time.sleep(parsed.every)
        later = _look(parsed)
        with checked_answer(parsed.http):
            activity = activity_between(earlier, later)
        yield activity
        earlier = later


def _look(parsed: argparse.Namespace) -> Look:
    stats = inspect("/v1/stats", parsed.http, parsed.tls_ca)
    sessions = list(inspect_all("/v1/sessions", "sessions", parsed.http, parsed.tls_ca))
    return Look(time.monotonic(), stats, sessions)


def _print(activity: Activity, *, is_json: bool) -> None:
    if is_json:
        print(json.dumps(as_json(activity)), flush=True)
    else:
        Console(width=120).print(screen_of(activity, ""))
