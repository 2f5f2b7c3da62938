"""What the runner of other projects' tests reads from a report, and what it takes for a failure."""

from pathlib import Path

import pytest

from tests.conformance import outcome

_REPORT = """<testsuites><testsuite>
<testcase classname="a" name="passes" />
<testcase classname="a" name="fails"><failure message="wrong" /></testcase>
<testcase classname="a" name="breaks"><error message="no fixture" /></testcase>
<testcase classname="a" name="waits"><skipped message="not
    there yet" /></testcase>
</testsuite></testsuites>"""


@pytest.fixture
def report(tmp_path: Path) -> Path:
    path = tmp_path / "report.xml"
    path.write_text(_REPORT, encoding="utf-8")
    return path


def test_failures_and_errors_are_failed_and_a_skip_keeps_its_reason(report: Path) -> None:
    received = outcome.read("suite", report)
    assert (received.passed, received.failed, dict(received.skipped)) == (
        1,
        ["a::fails", "a::breaks"],
        {"not there yet": 1},
    )
    assert not received.is_good


def test_a_suite_without_a_report_or_without_a_passed_test_is_not_good(tmp_path: Path) -> None:
    assert outcome.read("suite", tmp_path / "absent.xml").trouble
    assert not outcome.Outcome("suite").is_good
    assert outcome.Outcome("suite", passed=1).is_good


def test_the_table_names_what_failed_and_why_tests_were_skipped(report: Path) -> None:
    table = "\n".join(outcome.lines([outcome.read("suite", report)]))
    assert "failed: a::breaks" in table
    assert "skipped 1: not there yet" in table
