"""The lines that a load test prints."""

from __future__ import annotations

from loadtests.load.checks.verification import Verification
from loadtests.reports.summary import summary
from tests.loadtests.reports.documents import document, document_without_steps


def test_it_tells_rate_latency_server_and_peer() -> None:
    lines = summary(document()).splitlines()
    assert lines[0] == "rnn: 2 sessions in 1 processes, closed loop"
    assert lines[1] == "  rate        200.0 steps/s, 600 ops/s"
    assert lines[2].startswith("  latency     p50 10 ms, p90 10 ms, p99 10 ms")
    assert "1.50 rows a launch, 0.90 of the sessions that were ready" in lines[4]
    assert any("numpy" in line and "2.00 × its steps" in line for line in lines)


def test_every_problem_has_a_line() -> None:
    text = summary(document(errors=(None, "gone"), verification=Verification(3, ("session 0: read 1 differs",))))
    assert "NOT each is right" in text
    assert [line for line in text.splitlines() if "FAILED" in line] == [
        "  FAILED      1 of 2 sessions failed",
        "  FAILED      session 1: gone",
        "  FAILED      session 0: read 1 differs",
    ]


def test_a_load_that_never_settled_says_so() -> None:
    assert "never settled" in summary({**document(), "settled": False})


def test_ratios_of_a_load_without_steps_are_dashes() -> None:
    text = summary(document_without_steps())
    assert "with the disturber – × that" in text
    assert "Fusewire does – × its steps" in text
