"""`fusewire top`: watches the sessions of a server in a terminal."""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from fusewire._transport.inspection import checked_answer, inspect, inspect_all
from fusewire_cli.activity import Activity, Look, SessionActivity, activity_between, as_json
from fusewire_cli.status import state_of, waits_of
from fusewire_cli.text import harmless, rate, size
from fusewire_protos.errors import ServerFault

_MOST_SESSIONS = 200  # that are shown: those for which the device works most
_TEXT_COLUMNS = 120  # where the output is no terminal

_View = TypeVar("_View")


def run(parsed: argparse.Namespace) -> int:
    """Shows the activity until it is interrupted; prints it if the output is no terminal. Raises FusewireError."""
    try:
        if parsed.json:
            _print_json(parsed)
        elif parsed.once or not sys.stdout.isatty():
            _print_text(parsed)
        else:
            _show(parsed)
    except KeyboardInterrupt:
        return 0
    return 0


def views(
    look: Callable[[], Look], view: Callable[[Look, Look], _View], wait: Callable[[], None]
) -> Iterator[_View | ServerFault]:
    """Yields a view of what happened between each two looks, or why a look failed: the server may come back."""
    earlier: Look | None = None
    while True:
        later: Look | None = None
        seen: _View | ServerFault | None = None
        try:
            later = look()
            seen = None if earlier is None else view(earlier, later)
        except ServerFault as fault:
            seen = fault
        if seen is not None:
            yield seen
        earlier = later
        wait()


def screen_of(activity: Activity, address: str) -> Group:
    """Returns what the terminal shows: some lines about the server, and a table of its sessions."""
    left_out = len(activity.sessions) - _MOST_SESSIONS
    more = (Text(f"and {left_out:,} more sessions"),) if left_out > 0 else ()
    return Group(*_heading(activity, address), Text(), _sessions(activity.sessions[:_MOST_SESSIONS]), *more)


def _heading(activity: Activity, address: str) -> Iterator[Text]:
    stats, memory, totals = activity.stats, activity.stats["memory"], activity.stats["totals"]
    lines = (
        (address, stats["backend"]["device"], state_of(stats)),
        (f"{totals['ops']:,} ops in {totals['segments']:,} segments since {stats['started_at']}",),
        (
            f"{rate(activity.ops_per_s)} ops",
            f"{rate(activity.segments_per_s)} segments",
            f"{activity.rows_per_submission:.1f} rows together",
            f"device {activity.device_share:.0%}",
        ),
        (
            f"memory {size(memory['live_bytes'])} live, {size(memory['peak_bytes'])} peak",
            f"in {size(activity.received_bytes_per_s)}/s",
            f"out {size(activity.sent_bytes_per_s)}/s",
        ),
        *[(line,) for line in waits_of(stats)],
    )
    for line in lines:
        yield Text("  ".join(harmless(part) for part in line if part))


def _sessions(shown: tuple[SessionActivity, ...]) -> Table:
    table = Table(box=None, pad_edge=False, header_style="bold")
    for name in ("session", "tenant", "client"):
        table.add_column(name, no_wrap=True)
    for name in ("ops", "in flight", "memory", "device"):
        table.add_column(name, justify="right", no_wrap=True)
    if has_waits := any(_wait_of(each.session) for each in shown):
        table.add_column("reads", justify="right", no_wrap=True)
        table.add_column("waits for")
    for each in shown:
        session = each.session
        names = (session["session"], session["tenant"], session.get("name") or session["client"])
        figures = (rate(each.ops_per_s), f"{session['in_flight_ops']:,}", size(session["live_bytes"]))
        waits = (f"{each.read_share:.0%}", _wait_of(session)) if has_waits else ()
        cells = (*names, *figures, f"{each.device_share:.0%}", *waits)
        table.add_row(*(Text(harmless(cell)) for cell in cells), style="dim" if each.ops_per_s == 0 else "")
    return table


def _wait_of(session: dict[str, Any]) -> str:
    """Returns what a session waits for. Older servers tell it of kernels only, or not at all."""
    kernels = session.get("waits_for", ())
    return f"kernels of {', '.join(kernels)}" if len(kernels) > 1 else session.get("wait_reason") or "".join(kernels)


def _show(parsed: argparse.Namespace) -> None:
    with Live(Text(f"looks at {parsed.http} …"), auto_refresh=False, screen=True) as live:
        for seen in _views(parsed, lambda activity: screen_of(activity, parsed.http)):
            live.update(Text(harmless(seen), style="red") if isinstance(seen, ServerFault) else seen, refresh=True)


def _print_text(parsed: argparse.Namespace) -> None:
    console = Console(width=_TEXT_COLUMNS)
    for seen in _views(parsed, lambda activity: screen_of(activity, parsed.http)):
        console.print(Text(harmless(seen)) if isinstance(seen, ServerFault) else seen)


def _print_json(parsed: argparse.Namespace) -> None:
    for seen in _views(parsed, as_json):
        print(json.dumps({"fault": str(seen)} if isinstance(seen, ServerFault) else seen), flush=True)


def _views(parsed: argparse.Namespace, view: Callable[[Activity], _View]) -> Iterator[_View | ServerFault]:
    """Yields views of the server; with `--once` yields one, and raises the fault if there is none."""

    def checked_view(earlier: Look, later: Look) -> _View:
        with checked_answer(parsed.http):
            return view(activity_between(earlier, later, parsed.sort))

    for seen in views(lambda: _look(parsed), checked_view, lambda: time.sleep(parsed.every)):
        if isinstance(seen, ServerFault) and parsed.once:
            raise seen
        yield seen
        if parsed.once:
            return


def _look(parsed: argparse.Namespace) -> Look:
    stats = inspect("/v1/stats", parsed.http, parsed.tls_ca)
    sessions = list(inspect_all("/v1/sessions", "sessions", parsed.http, parsed.tls_ca))
    wanted = [each.partition("=")[::2] for each in parsed.filter]
    chosen = [each for each in sessions if all(str(each.get(field)) == text for field, text in wanted)]
    return Look(time.monotonic(), stats, chosen)
