"""Computes what a server did between two looks at it: rates, and each session's share of the device. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple


class Look(NamedTuple):
    """A server at one moment: its statistics and sessions, and the time in seconds on some clock that only grows."""

    at_s: float
    stats: dict[str, Any]
    sessions: list[dict[str, Any]]


class SessionActivity(NamedTuple):
    """What a session did: its ops in a second, and the share of the time in which the device worked for it."""

    session: dict[str, Any]
    ops_per_s: float
    device_share: float
    read_share: float  # of the time in which its client waited for answers


class Activity(NamedTuple):
    """What a server did. `sessions` are in descending order of their shares of the device."""

    stats: dict[str, Any]
    ops_per_s: float
    segments_per_s: float
    received_bytes_per_s: float
    sent_bytes_per_s: float
    rows_per_submission: float
    device_share: float
    sessions: tuple[SessionActivity, ...]


def activity_between(earlier: Look, later: Look, sort: str = "device_share") -> Activity:
    """Returns the activity between two looks. If the server was started in between, counts from its start.

    The sessions that have most of the figure `sort` are the first.
    """
    elapsed_s = max(later.at_s - earlier.at_s, 1e-9)
    is_same = earlier.stats["instance"] == later.stats["instance"]
    before = earlier.stats["totals"] if is_same else {}
    totals = later.stats["totals"]

    def more(name: str) -> int:
        return int(totals[name] - before.get(name, 0))

    sessions = _sessions(earlier.sessions if is_same else (), later.sessions, elapsed_s, sort)
    return Activity(
        stats=later.stats,
        ops_per_s=more("ops") / elapsed_s,
        segments_per_s=more("segments") / elapsed_s,
        received_bytes_per_s=more("received_bytes") / elapsed_s,
        sent_bytes_per_s=more("sent_bytes") / elapsed_s,
        rows_per_submission=more("rows") / more("submissions") if more("submissions") > 0 else 0.0,
        device_share=sum(each.device_share for each in sessions),
        sessions=sessions,
    )


def as_json(activity: Activity) -> dict[str, Any]:
    """Returns an activity as plain data: the statistics of the server, the rates, and the sessions."""
    fields = activity._asdict()
    fields["sessions"] = [
        {"session": each.session["session"], "tenant": each.session["tenant"]}
        | {"ops_per_s": each.ops_per_s, "device_share": each.device_share, "read_share": each.read_share}
        | {name: each.session[name] for name in ("client", "in_flight_ops", "live_bytes", "state")}
        | {name: each.session.get(name, "") for name in ("name", "wait_reason")}
        | {"waits_for": each.session.get("waits_for", [])}
        for each in activity.sessions
    ]
    return fields


def _sessions(
    earlier: Iterable[dict[str, Any]], later: Iterable[dict[str, Any]], elapsed_s: float, sort: str
) -> tuple[SessionActivity, ...]:
    known = {each["session"]: each for each in earlier}
    found = []
    for session in later:
        before = known.get(session["session"], {"ops": 0, "device_ns": 0, "waiting_ns": 0})
        ops = session["ops"] - before["ops"]
        device_ns = session["device_ns"] - before["device_ns"]
        waiting_ns = session.get("waiting_ns", 0) - before.get("waiting_ns", 0)
        shares = device_ns / 1e9 / elapsed_s, min(waiting_ns / 1e9 / elapsed_s, 1.0)
        found.append(SessionActivity(session, ops / elapsed_s, *shares))
    return tuple(sorted(found, key=lambda each: (_order(each, sort), each.session["session"])))


def _order(each: SessionActivity, sort: str) -> tuple[float, str]:
    """Returns what sorts a session: numbers from the greatest on, and texts by the alphabet."""
    value = getattr(each, sort) if sort in each._fields[1:] else each.session.get(sort, 0)
    return (-value, "") if isinstance(value, int | float) else (0.0, str(value))
