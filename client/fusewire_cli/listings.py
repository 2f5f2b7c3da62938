"""Commands that list what a server has: each is a table, of which a column is a figure or what is made of some."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Any, NamedTuple

from fusewire._transport.inspection import inspect_all
from fusewire_cli.answers import shown, tell
from fusewire_cli.text import duration, size, table

_SHOWN_DIGITS = 12  # of a digest


class Listing(NamedTuple):
    """A list of inspection, and the columns of its table by their headings, of which the first `left` are texts."""

    path: str
    entries: str
    left: int
    columns: Mapping[str, str | Callable[[dict[str, Any]], object]]

    def text_of(self, entries: Iterable[dict[str, Any]]) -> str:
        """Returns the table, with one entry on each line."""
        return table(
            [*self.columns], ([_cell(one, each) for each in self.columns.values()] for one in entries), self.left
        )


def _run(listing: Listing, parsed: argparse.Namespace) -> int:
    """Prints a list. Raises FusewireError."""
    return tell(parsed, [*inspect_all(listing.path, listing.entries, parsed.http, parsed.tls_ca)], listing.text_of)


def _cell(one: dict[str, Any], column: str | Callable[[dict[str, Any]], object]) -> object:
    if callable(column):
        return column(one)
    return shown(column, one[column]) if one[column] != "" else ""


def _known(time_ns: int) -> str:
    """Returns a time for people. The server tells 0 for what has not been measured yet."""
    return duration(time_ns / 1e9) if time_ns else "-"


SESSIONS = Listing(
    "/v1/sessions",
    "sessions",
    4,
    {
        "session": "session",
        "name": lambda one: one.get("name", ""),
        "tenant": "tenant",
        "state": "state",
        "ops": "ops",
        "in flight": "in_flight_ops",
        "live": "live_bytes",
        "unread": "unread_bytes",
        "idle": "idle_s",
        "waits for": lambda one: one.get("wait_reason", ""),  # older servers do not tell
    },
)
TENANTS = Listing(
    "/v1/tenants",
    "tenants",
    1,
    {
        "tenant": "tenant",
        "sessions": "sessions",
        "ops in flight": "in_flight_ops",
        "arrays": "live_handles",
        "memory": "live_bytes",
        "device time": "device_ns",
        "loop time": "loop_ns",
    },
)
PROGRAMS = Listing(
    "/v1/programs",
    "programs",
    3,
    {
        "program": lambda one: one["digest"][:_SHOWN_DIGITS],
        "state": "state",
        "form": "form",
        "tier": "tier",
        "ops": "ops",
        "uses": "hits",
        "rows together": lambda one: f"{one['rows'] / one['submissions']:.1f}" if one["submissions"] else "-",
        "row": lambda one: _known(one["row_ns"]),
        "planned in": lambda one: _known(one["planning_ns"] + one["compiling_ns"]),
        "no plan because": "refusal",
    },
)
ARRAYS = Listing(
    "/arrays",  # behind the path of the session
    "arrays",
    1,
    {
        "handle": lambda one: one["handle"],
        "dtype": "dtype",
        "shape": lambda one: "×".join(map(str, one["shape"])) or "scalar",
        "size": lambda one: size(one["bytes"]),
        "state": "state",
        "age": "age_s",
        "made by": lambda one: "upload" if one["op"] is None else f"op {one['op']} of {one['base']}",
    },
)

sessions, tenants, programs = (partial(_run, each) for each in (SESSIONS, TENANTS, PROGRAMS))
