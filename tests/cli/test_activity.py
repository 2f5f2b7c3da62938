"""What a server did between two looks."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fusewire_cli.activity import Look, activity_between, as_json

SESSION: dict[str, Any] = {
    "session": "a",
    "tenant": "lab",
    "client": "python",
    "state": "open",
    "ops": 100,
    "device_ns": 1_000_000_000,
    "in_flight_ops": 5,
    "live_bytes": 64,
}


def look(at_s: float, ops: int, *sessions: dict[str, Any], instance: str = "one") -> Look:
    totals = {"ops": ops, "segments": ops // 10, "rows": ops // 10, "submissions": ops // 20}
    totals |= {"received_bytes": ops * 2, "sent_bytes": ops}
    return Look(at_s, {"instance": instance, "totals": totals}, list(sessions))


def test_rates_are_differences_over_the_time_between() -> None:
    activity = activity_between(look(10.0, 1000), look(12.0, 3000))
    assert (activity.ops_per_s, activity.segments_per_s, activity.received_bytes_per_s) == (1000, 100, 2000)
    assert activity.rows_per_submission == 2


def test_a_session_has_its_share_of_the_time_and_the_busiest_is_first() -> None:
    idle = SESSION | {"session": "b"}
    busy = SESSION | {"ops": 300, "device_ns": 1_500_000_000}
    activity = activity_between(look(0.0, 0, SESSION, idle), look(1.0, 200, idle, busy))
    assert [each.session["session"] for each in activity.sessions] == ["a", "b"]
    assert (activity.sessions[0].ops_per_s, activity.sessions[0].device_share) == (200, 0.5)
    assert (activity.sessions[1].ops_per_s, activity.sessions[1].device_share) == (0, 0)
    assert activity.device_share == 0.5


def test_a_new_session_counts_from_its_beginning() -> None:
    (session,) = activity_between(look(0.0, 0), look(1.0, 100, SESSION)).sessions
    assert session.ops_per_s == 100


def test_a_server_that_was_started_anew_counts_from_its_start() -> None:
    activity = activity_between(look(0.0, 10_000, SESSION), look(1.0, 50, SESSION, instance="two"))
    assert activity.ops_per_s == 50
    assert activity.sessions[0].ops_per_s == 100


def test_no_submission_and_no_time_divide_by_nothing() -> None:
    activity = activity_between(look(1.0, 10), look(1.0, 10))
    assert (activity.rows_per_submission, activity.ops_per_s) == (0, 0)


def test_the_activity_is_json() -> None:
    answer = json.loads(json.dumps(as_json(activity_between(look(0.0, 0), look(1.0, 100, SESSION)))))
    assert answer["ops_per_s"] == pytest.approx(100)
    assert answer["sessions"][0]["session"] == "a"
