"""The metrics: their names and labels are fixed, their values are those of the snapshot."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from prometheus_client.parser import text_string_to_metric_families

from fusewire_protos.errors import CASES
from fusewire_server.inspect.metrics import exposition
from fusewire_server.inspect.snapshots.histogram import Bucket, Histogram
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.inspect.snapshots.stats import DeviceView
from fusewire_server.inspect.snapshots.totals import SessionTotals, Totals
from fusewire_server.programs.counters import END_REASONS
from fusewire_server.scheduling.coalescer import BatchEnd
from tests.server.inspect.examples import ACCOUNTS, KERNEL_WAITS, SNAPSHOT, STATS

GUIDE = Path(__file__).parents[3] / "docs" / "guide.md"
Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def series_of(snapshot: Snapshot) -> Series:
    text = exposition(snapshot, 0.25).decode()
    samples = [sample for family in text_string_to_metric_families(text) for sample in family.samples]
    series = {(sample.name, tuple(sorted(sample.labels.items()))): sample.value for sample in samples}
    assert len(series) == len(samples)
    return series


def value(snapshot: Snapshot, name: str, **labels: str) -> float:
    return series_of(snapshot)[f"fusewire_{name}", tuple(sorted(labels.items()))]


def test_every_series_exists_from_the_start() -> None:
    new = dataclasses.replace(STATS, totals=Totals(), rows_per_launch=Histogram(), ops_per_launch=Histogram())
    assert series_of(Snapshot(new, tenants=ACCOUNTS)).keys() == series_of(SNAPSHOT).keys()


def test_a_tenant_that_has_had_a_session_has_its_times() -> None:
    assert value(SNAPSHOT, "tenant_loop_seconds_total", tenant="lab") == 0.003
    assert value(SNAPSHOT, "tenant_device_seconds_total", tenant="lab") == 2.0
    assert not any("tenant_" in name for name, _ in series_of(Snapshot(STATS)))


def test_failures_are_counted_by_every_case() -> None:
    totals = dataclasses.replace(STATS.totals, failures={"bad_shape": 3})
    snapshot = Snapshot(dataclasses.replace(STATS, totals=totals))
    found = {case.name: value(snapshot, "failures_total", case=case.name) for case in CASES}
    assert found == {case.name: 3 if case.name == "bad_shape" else 0 for case in CASES}


def test_refusals_are_told_by_door_and_case() -> None:
    refusals = {"token": {"unauthenticated": 2}, "inspection": {"forbidden": 1}}
    totals = dataclasses.replace(STATS.totals, refusals=refusals)
    snapshot = Snapshot(dataclasses.replace(STATS, totals=totals))
    assert value(snapshot, "refusals_total", door="token", case="unauthenticated") == 2
    assert value(snapshot, "refusals_total", door="inspection", case="forbidden") == 1
    assert value(snapshot, "refusals_total", door="session", case="too_many_sessions") == 0


def test_batches_and_sessions_are_told_by_why_they_ended() -> None:
    sessions = SessionTotals(opened=3, ended={"goodbye": 1, "slow_reader": 1})
    totals = dataclasses.replace(STATS.totals, sessions=sessions, batches={"time": 4})
    snapshot = Snapshot(dataclasses.replace(STATS, totals=totals))
    assert [value(snapshot, "batches_total", ended_by=each.value) for each in BatchEnd] == [0, 0, 0, 0, 0, 4]
    assert value(snapshot, "sessions_opened_total") == 3
    assert sum(value(snapshot, "sessions_ended_total", reason=reason) for reason in END_REASONS) == 2


def test_times_are_in_seconds() -> None:
    phase = STATS.phases.device_thread
    assert value(SNAPSHOT, "phase_seconds_total", phase="device_thread") == pytest.approx(phase.total_ns / 1e9)
    assert value(SNAPSHOT, "loop_lag_seconds") == 0.25


def test_a_histogram_is_cumulative() -> None:
    rows = Histogram((Bucket(1, 5), Bucket(4, 2), Bucket(1024, 1)), 300)
    snapshot = Snapshot(dataclasses.replace(STATS, rows_per_launch=rows))
    found = [value(snapshot, "rows_per_submission_bucket", le=end) for end in ("1.0", "2.0", "4.0", "128.0", "+Inf")]
    assert found == [5, 5, 7, 7, 8]
    assert value(snapshot, "rows_per_submission_sum") == 300


def test_waits_for_kernels_are_told_with_the_longest() -> None:
    names = ("kernel_waits", "kernel_wait_sessions", "kernel_wait_oldest_seconds")
    snapshot = Snapshot(dataclasses.replace(STATS, kernel_waits=KERNEL_WAITS))
    assert [value(snapshot, name) for name in names] == [1, 1, 12.5]
    assert [value(SNAPSHOT, name) for name in names] == [0, 0, 0]


def test_launches_are_told_by_tier() -> None:
    totals = dataclasses.replace(STATS.totals, launches=10, tier0_launches=3)
    snapshot = Snapshot(dataclasses.replace(STATS, totals=totals))
    assert [value(snapshot, "launches_total", tier=tier) for tier in "01"] == [3, 7]


def test_the_guide_names_metrics_that_exist() -> None:
    named = set(re.findall(r"`(fusewire_\w+)`", GUIDE.read_text(encoding="utf-8")))
    assert named
    several = dataclasses.replace(
        SNAPSHOT, stats=dataclasses.replace(STATS, devices=(DeviceView(0, "a GPU", is_ready=True, trouble=""),))
    )
    assert named <= {name for name, _ in series_of(several)}
