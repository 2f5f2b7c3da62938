"""The JSON document of a load test."""

from __future__ import annotations

import json

import pytest

from loadtests.load.checks.verification import Verification
from loadtests.reports.document import fairness
from tests.loadtests.reports.documents import NOTHING, document


def test_it_survives_json() -> None:
    result = document()
    assert json.loads(json.dumps(result)) == result


def test_only_the_last_three_windows_are_measured() -> None:
    result = document()
    assert (result["warm_up_s"], result["measured_s"], result["steps"]) == (3.0, 3.0, 600)
    assert result["steps_per_s"] == 200
    assert result["ops_per_s"] == 600
    assert sum(interval["is_measured"] for interval in result["timeline"]) == 30
    assert len(result["timeline"]) == 60


def test_percentiles_are_of_the_measured_steps() -> None:
    result = document([1] * 98 + [50] * 2)
    assert result["p50_s"] == pytest.approx(0.001, rel=1e-3)
    assert result["p99_s"] == pytest.approx(0.05, rel=1e-3)
    assert result["p99_to_p50"] == pytest.approx(50, rel=1e-2)
    assert result["record_s"] == pytest.approx(1e-4)


def test_the_servers_counts_are_those_of_the_measured_windows() -> None:
    result = document()
    assert (result["rows_per_launch"], result["rows_per_ready"]) == (1.5, 0.9)
    assert result["rows_histogram"] == [{"at_most": 1, "count": 30}, {"at_most": 2, "count": 30}]
    assert result["phases"]["decode"] == {"count": 30, "mean_s": pytest.approx(1e-4)}
    assert [session["device_ns"] for session in result["by_session"]] == [6, 3]
    assert result["fairness"] == pytest.approx(0.9)


def test_the_harnesss_own_time_is_a_share_of_the_clients() -> None:
    assert document()["harness_share"] == pytest.approx(600 * 1e-6 / 1.5)
    assert document(harness_step_s=None)["harness_share"] is None


def test_a_peer_does_as_many_ops_a_step() -> None:
    result = document()
    assert result["steps_to_peer"] == 2
    assert result["peer"]["ops_per_s"] == pytest.approx(result["peer"]["steps_per_s"] * 3600 / 200)


def test_growth_of_memory_is_told_a_second() -> None:
    result = document()
    assert result["server_growth_bytes_per_s"] == 1 << 20
    assert result["clients_growth_bytes_per_s"] == 0


def test_a_load_without_a_fault_has_no_problems() -> None:
    assert document(verification=Verification(10, ()))["problems"] == []


def test_failed_sessions_are_a_problem() -> None:
    result = document(errors=(None, "SessionLost: gone"))
    assert result["errors"] == 1
    assert result["error_messages"] == ["session 1: SessionLost: gone"]
    assert result["problems"] == ["1 of 2 sessions failed", "session 1: SessionLost: gone"]


def test_a_difference_is_a_problem() -> None:
    result = document(verification=Verification(10, ("session 0: read 3 differs",)))
    assert (result["verified"], result["problems"]) == (False, ["session 0: read 3 differs"])


def test_a_rate_that_was_not_kept_is_a_problem() -> None:
    assert document(rate_per_s=205)["problems"] == []
    assert document(rate_per_s=400)["problems"] == ["the rate of 400 steps a second was not kept: 200.0 were done"]


def test_a_load_that_began_its_steps_late_by_itself_is_void() -> None:
    result = document(rate_per_s=205, lag_ms=6)
    assert (result["lag_mean_s"], result["queued_s"]) == (pytest.approx(0.006), 0)
    first, second = result["problems"]
    assert first.startswith("void, the load test itself was too slow: steps began 0.006 s late on average")
    assert "late at p99" in second
    assert document(rate_per_s=205, lag_ms=1)["problems"] == []


def test_a_closed_loop_has_no_schedule_to_be_late_for() -> None:
    assert document()["lag_mean_s"] is None


def test_sessions_and_values_that_are_left_over_are_a_problem() -> None:
    assert document(after=NOTHING._replace(sessions=2, live_bytes=512))["problems"] == [
        "the server still holds 2 sessions; it held 0 before the load",
        "the server still holds 512 live_bytes; it held 0 before the load",
    ]


def test_equal_shares_are_fair_and_a_single_one_is_not() -> None:
    assert fairness([5, 5, 5, 5]) == 1
    assert fairness([8, 0, 0, 0]) == 0.25
    assert fairness([]) is None
