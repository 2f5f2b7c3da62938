"""Answers of inspection as text, and the commands that ask and order."""

from __future__ import annotations

import json

import pytest

from fusewire_cli.answers import shown, text_of
from fusewire_cli.main import main
from tests.inspected import Inspected


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("live_bytes", 3 << 20, "3.0 MiB"),
        ("oldest_row_s", 0.25, "250.0 ms"),
        ("device_ns", 1_500_000_000, "1.5 s"),
        ("rows", 12_345, "12,345"),
        ("is_held", True, "yes"),
        ("text", "", "none"),
        ("base", None, "none"),
        ("shape", [2, 3], "2, 3"),
        ("kernel_waits", {"kernels": 0, "oldest_s": 0.0, "oldest": []}, "kernels 0, oldest_s 0.0 µs, oldest none"),
        ("text", "\x1b[2J", "\\x1b[2J"),
    ],
)
def test_the_unit_of_a_figure_is_the_end_of_its_name(name: str, value: object, text: str) -> None:
    assert shown(name, value) == text


def test_figures_are_lines_and_entries_a_table() -> None:
    answer = {"rows": 2, "is_held": False, "tenants": [{"tenant": "lab", "rows": 2}], "programs": []}
    assert text_of(answer).splitlines() == [
        "rows      2",
        "held      no",
        "programs  none",
        "",
        "tenants:",
        "tenant  rows",
        "lab        2",
    ]


@pytest.mark.parametrize(
    ("typed", "request_line"),
    [
        (["queue"], ("GET", "/v1/queue")),
        (["slowlog"], ("GET", "/v1/slowlog")),
        (["pool"], ("GET", "/v1/pool")),
        (["failures"], ("GET", "/v1/failures")),
        (["sessions", "ended"], ("GET", "/v1/ended_sessions")),
        (["hold"], ("POST", "/v1/device/hold")),
        (["release"], ("POST", "/v1/device/release")),
        (["log"], ("GET", "/v1/log")),
        (["log", "debug"], ("PUT", "/v1/log")),
    ],
)
def test_a_command_asks_its_route(
    typed: list[str], request_line: tuple[str, str], inspected: Inspected, capsys: pytest.CaptureFixture[str]
) -> None:
    inspected.answers[request_line[1]] = (200, json.dumps({"is_held": True}))
    assert main([*typed, "--http", inspected.address]) == 0
    assert inspected.requests == [request_line]
    assert capsys.readouterr().out == "held  yes\n"
    assert main([*typed, "--json", "--http", inspected.address]) == 0
    assert json.loads(capsys.readouterr().out) == {"is_held": True}


def test_a_level_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", "loud"]) == 2
    assert "invalid choice: 'loud'" in capsys.readouterr().err


def test_an_answer_of_another_server_is_a_fault(inspected: Inspected, capsys: pytest.CaptureFixture[str]) -> None:
    inspected.answers["/v1/queue"] = (200, "[1, 2]")
    assert main(["queue", "--http", inspected.address]) == 1
    assert "is not the inspection of a Fusewire server" in capsys.readouterr().err
