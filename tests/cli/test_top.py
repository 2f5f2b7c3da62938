"""`fusewire top`: what it shows, and that it goes on when a server goes away and comes back."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Iterator
from itertools import islice
from typing import Any

import pytest
from rich.console import Console

from fusewire_cli import top
from fusewire_cli.activity import Activity, Look, activity_between
from fusewire_cli.main import main
from fusewire_cli.top import screen_of, views
from fusewire_protos.errors import ServerFault, Unauthenticated
from tests.inspected import KERNEL_WAITS, SESSION, STATS, Inspected


def shown(activity: Activity) -> str:
    console = Console(width=120)
    with console.capture() as captured:
        console.print(screen_of(activity, "gpu:7424"))
    return captured.get()


def activity(*sessions: dict[str, Any]) -> Activity:
    earlier = {"ops": 0, "segments": 0, "rows": 0, "submissions": 0, "received_bytes": 0, "sent_bytes": 0}
    before = [each | {"ops": 0, "device_ns": 0} for each in sessions]
    return activity_between(
        Look(0.0, STATS | {"totals": STATS["totals"] | earlier}, before), Look(2.0, STATS, list(sessions))
    )


def test_the_server_and_its_sessions_are_shown() -> None:
    heading, totals, work, load, _, columns, row = (line.rstrip() for line in shown(activity(SESSION)).splitlines())
    assert heading == "gpu:7424  2 cores  ready"
    assert totals == "6,000 ops in 30 segments since 2030-01-01T00:00:00+00:00"
    assert work == "3.0 k/s ops  15/s segments  2.0 rows together  device 50%"
    assert load == "memory 3.0 MiB live, 2.0 GiB peak  in 1.0 KiB/s  out 2 bytes/s"
    assert columns.split() == ["session", "tenant", "client", "ops", "in", "flight", "memory", "device"]
    assert row.split() == ["0123456789ab", "lab", "fusewire-python", "0.1.0", "3.0", "k/s", "200", "4.0", "KiB", "50%"]


def test_what_sessions_wait_for_is_shown() -> None:
    idle = SESSION | {"session": "ba9876543210", "device_ns": 0}
    stats = STATS | {"kernel_waits": KERNEL_WAITS}
    look = Look(0.0, stats, [SESSION | {"waits_for": ["max", "exp"]}, idle])
    lines = [line.rstrip() for line in shown(activity_between(look, look._replace(at_s=2.0))).splitlines()]
    assert lines[4] == "waits for the kernel of max, 1.5 min, 2 sessions: no space"
    (heading,) = [line for line in lines if line.startswith("session")]
    assert heading.split()[-3:] == ["reads", "waits", "for"]
    assert [
        line.endswith("0%  kernels of max, exp") for line in lines if line.startswith(("0123456789ab", "ba98"))
    ] == [True, False]


def test_sessions_are_shown_by_their_names_with_what_they_wait_for() -> None:
    before = SESSION | {"waiting_ns": 0}
    now = SESSION | {"name": "ppo-worker-7", "wait_reason": "upload of 64 MiB", "waiting_ns": 1_500_000_000}
    text = shown(activity_between(Look(0.0, STATS, [before]), Look(2.0, STATS, [now])))
    (line,) = [line for line in text.splitlines() if line.startswith("0123456789ab")]
    assert line.split()[2] == "ppo-worker-7"
    assert line.rstrip().endswith("75%  upload of 64 MiB")


def test_sessions_are_sorted_and_filtered(inspected: Inspected, capsys: pytest.CaptureFixture[str]) -> None:
    many = [SESSION | {"session": f"s{place}", "live_bytes": place, "tenant": "ab"[place % 2]} for place in range(6)]
    inspected.answers["/v1/sessions"] = (200, json.dumps({"sessions": many}))
    at = ("--json", "--once", "--every", "0.001", "--http", inspected.address)
    assert main(["top", "--sort", "live_bytes", "--filter", "tenant=b", *at]) == 0
    assert [each["session"] for each in json.loads(capsys.readouterr().out)["sessions"]] == ["s5", "s3", "s1"]
    assert main(["top", "--sort", "session", "--filter", "session=s4", *at]) == 0
    assert [each["session"] for each in json.loads(capsys.readouterr().out)["sessions"]] == ["s4"]


def test_a_terminal_is_not_commanded_by_names() -> None:
    evil = dict.fromkeys(("tenant", "client"), "\x1b[2J\x07[red]x[/red]")
    text = shown(activity(SESSION | evil))
    assert "\x1b" not in text
    assert text.count("\\x1b[2J\\x07[red]x[/red]") == 2


def test_only_the_busiest_of_many_sessions_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(top, "_MOST_SESSIONS", 2)
    many = [SESSION | {"session": f"s{number}", "device_ns": number} for number in range(5)]
    text = shown(activity(*many))
    assert [name in text for name in ("s0", "s1", "s2", "s3", "s4")] == [False, False, False, True, True]
    assert "and 3 more sessions" in text


def test_there_is_a_view_of_each_two_looks_and_none_over_a_fault() -> None:
    looks: Iterator[int | Exception] = iter([1, 2, 3, ServerFault("away"), ServerFault("away"), 4, 5])
    waited: list[None] = []

    def look() -> Look:
        found = next(looks)
        if isinstance(found, Exception):
            raise found
        return Look(found, {}, [])

    found = views(look, lambda earlier, later: (earlier.at_s, later.at_s), lambda: waited.append(None))
    seen = [each if isinstance(each, tuple) else str(each) for each in islice(found, 5)]
    assert seen == [(1, 2), (2, 3), "away", "away", (4, 5)]
    assert len(waited) == 6


def test_a_refusal_is_not_waited_out() -> None:
    def look() -> Look:
        raise Unauthenticated("revoked")

    with pytest.raises(Unauthenticated):
        next(views(look, lambda *_: None, lambda: None))


def interrupted_after(monkeypatch: pytest.MonkeyPatch, waits: int) -> None:
    """Lets Ctrl-C come in the wait of this number."""
    left = iter(range(waits))

    def wait(_seconds: float) -> None:
        if next(left, None) is None:
            raise KeyboardInterrupt

    monkeypatch.setattr(time, "sleep", wait)


def test_json_is_a_line_for_each_look_until_it_is_interrupted(
    inspected: Inspected, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupted_after(monkeypatch, 3)
    assert main(["top", "--json", "--http", inspected.address]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [line["sessions"][0]["tenant"] for line in lines] == ["lab"] * 3
    assert lines[0]["stats"] == STATS


def test_a_server_that_is_away_is_a_line_too(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupted_after(monkeypatch, 1)
    assert main(["top", "--json", "--http", "127.0.0.1:1"]) == 0
    lines = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [list(line) for line in lines] == [["fault"]] * 2
    assert "no answer from" in lines[0]["fault"]


def test_where_there_is_no_terminal_text_is_printed(
    inspected: Inspected, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupted_after(monkeypatch, 2)
    assert main(["top", "--http", inspected.address]) == 0
    printed = capsys.readouterr().out
    assert printed.count("0123456789ab") == 2
    assert "\x1b" not in printed


def test_a_terminal_shows_a_screen_and_gets_its_own_back(
    inspected: Inspected, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    interrupted_after(monkeypatch, 2)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(["top", "--http", inspected.address]) == 0
    printed = capsys.readouterr().out
    assert printed.index("\x1b[?1049h") < printed.index("0123456789ab") < printed.index("\x1b[?1049l")


@pytest.mark.parametrize(
    ("form", "document"),
    [
        ([], {}),
        ([], []),
        ([], STATS | {"memory": 1}),
        ([], STATS | {"totals": STATS["totals"] | {"ops": float("inf")}}),
        (["--json"], {}),
        (["--json"], []),
        (["--json"], STATS | {"totals": 1}),
    ],
)
def test_another_service_is_one_line_and_status_1(
    inspected: Inspected, capsys: pytest.CaptureFixture[str], form: list[str], document: Any
) -> None:
    inspected.answers["/v1/stats"] = (200, json.dumps(document))
    assert main(["top", "--once", "--every", "0.01", *form, "--http", inspected.address]) == 1
    written = capsys.readouterr()
    assert written.out == ""
    assert written.err == f"fusewire: the server at {inspected.address} is not the inspection of a Fusewire server\n"


@pytest.mark.parametrize("every", ["0", "-1", "nan", "inf", "1e12", "soon"])
def test_a_time_between_looks_that_cannot_be_slept_is_a_wrong_argument(
    every: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["top", "--every", every]) == 2
    assert "--every: expected" in capsys.readouterr().err
