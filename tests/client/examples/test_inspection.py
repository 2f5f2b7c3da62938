"""The server's figures are read once the clients' sessions no longer show in them."""

from typing import Any

import pytest

from fusewire.examples import inspection
from fusewire.examples.figures import ServerCount, ServerName


def stats(*, sessions: int, ops: int) -> dict[str, Any]:
    return {
        "sessions": sessions,
        "backend": {"name": "cpu", "detail": "as asked", "has_compiler": True},
        "totals": {
            "ops": ops,
            "launches": 5,
            "rows": 8,
            "submissions": 4,
            "compilation": {"plans": 2, "kernels_compiled": 9},
        },
        "phases": {"device": {"count": 4, "total_ns": 1000}},
        "memory": {"peak_bytes": 4096, "donations": 6},
    }


@pytest.fixture
def published(monkeypatch: pytest.MonkeyPatch) -> list[dict[str, Any]]:
    """What the server answers, one after the other; the last for good."""
    answers: list[dict[str, Any]] = []

    def answer(path: str, address: str, tls_ca: str | None) -> dict[str, Any]:
        assert (path, address) == ("/v1/stats", "host:1")
        return answers.pop(0) if len(answers) > 1 else answers[0]

    monkeypatch.setattr(inspection, "inspect", answer)
    return answers


def test_statistics_that_still_show_our_sessions_are_asked_for_again(published: list[dict[str, Any]]) -> None:
    published += [stats(sessions=1, ops=0), stats(sessions=9, ops=10), stats(sessions=1, ops=100)]
    count = inspection.Inspection("host:1").count()
    assert count == ServerCount(
        ops=100, launches=5, rows=8, submissions=4, device_ns=1000, plans=2, kernels_compiled=9, donations=6
    )


def test_a_session_that_never_ends_is_waited_for_only_so_long(
    published: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "_CLOSED_WITHIN_S", 0.0)
    published += [stats(sessions=0, ops=0), stats(sessions=1, ops=7)]
    assert inspection.Inspection("host:1").count().ops == 7


def test_the_backend_is_told(published: list[dict[str, Any]]) -> None:
    published += [stats(sessions=0, ops=0)]
    server = inspection.Inspection("host:1")
    assert server.describe("host:2") == ServerName("host:2", "cpu", "as asked", has_compiler=True)
