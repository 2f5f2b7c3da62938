"""Why a session waits, failed or ended, in a line."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fusewire_cli.main import main
from fusewire_cli.why import why
from tests.inspected import SESSION, Inspected

WAITING: dict[str, Any] = SESSION | {
    "name": "ppo-worker-7",
    "wait_reason": "kernel of max",
    "waiting_ns": 90_000_000_000,
    "age_s": 120.0,
    "device_ns": 6_000_000_000,
    "in_flight_segments": 3,
    "failures": ["bad_shape: op 3 add", "bad_dtype: op 1 exp"],
}
ENDED = {
    "at": "2030-01-01T00:00:00.000+00:00",
    "session": "ffffffffffff",
    "name": "eval",
    "reason": "slow_reader",
    "text": "it read nothing",
}


def test_a_session_that_waits_has_one_line() -> None:
    assert why(WAITING) == (
        "ppo-worker-7 (0123456789ab) waits for kernel of max; its client waited for answers in 75% of 2.0 min; "
        "the device worked for it in 5%; 3 segments in flight, 4.0 KiB of arrays; last failure: bad_shape: op 3 add"
    )


def test_a_session_that_waits_for_nothing_says_since_when() -> None:
    idle = WAITING | {"name": "", "wait_reason": "", "failures": [], "age_s": 0.0}
    assert why(idle).startswith("0123456789ab sends nothing, heard of 250.0 ms ago; ")


def test_a_session_that_has_ended_says_why() -> None:
    assert why(ENDED) == "eval (ffffffffffff) ended at 2030-01-01T00:00:00.000+00:00: slow_reader: it read nothing"


@pytest.mark.parametrize(("asked", "found"), [("ppo-worker-7", WAITING), ("0123456789ab", WAITING), ("eval", ENDED)])
def test_a_session_is_found_by_its_id_or_name(
    asked: str, found: dict[str, Any], inspected: Inspected, capsys: pytest.CaptureFixture[str]
) -> None:
    inspected.answers["/v1/sessions"] = (200, json.dumps({"sessions": [WAITING]}))
    inspected.answers["/v1/ended_sessions"] = (200, json.dumps({"sessions": [ENDED]}))
    assert main(["why", asked, "--http", inspected.address]) == 0
    assert capsys.readouterr().out == f"{why(found)}\n"
    assert main(["why", asked, "--json", "--http", inspected.address]) == 0
    assert json.loads(capsys.readouterr().out) == [found]
    assert main(["why", "nobody", "--http", inspected.address]) == 2
    assert "no session 'nobody'" in capsys.readouterr().err
