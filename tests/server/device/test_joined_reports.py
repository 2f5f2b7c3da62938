"""Which reports of the device thread wait for others."""

from __future__ import annotations

from fusewire_server.device.joined_reports import JoinedReports
from fusewire_server.device.orders import Report, RunIsLong


def opened() -> tuple[JoinedReports, list[Report]]:
    passed_on: list[Report] = []
    return JoinedReports(passed_on.append), passed_on


def test_a_patient_report_goes_before_the_next_one() -> None:
    reports, passed_on = opened()
    reports.add_deferred(RunIsLong(1))
    reports.add_deferred(RunIsLong(2))
    assert passed_on == []
    reports.add(RunIsLong(3))
    assert passed_on == [RunIsLong(1), RunIsLong(2), RunIsLong(3)]


def test_each_report_is_passed_on_once() -> None:
    reports, passed_on = opened()
    reports.add_deferred(RunIsLong(1))
    reports.flush()
    reports.flush()
    reports.add(RunIsLong(2))
    assert passed_on == [RunIsLong(1), RunIsLong(2)]
