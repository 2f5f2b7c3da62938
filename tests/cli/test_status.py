"""How `fusewire status` and `fusewire top` tell which kernels rows wait for."""

from __future__ import annotations

import pytest

from fusewire_cli.sessions import session_text
from fusewire_cli.status import status_text, waits_of
from tests.inspected import KERNEL_WAITS, SESSION, STATS

LINES = [
    "waits for the kernel of max, 1.5 min, 2 sessions: no space",
    "waits for the kernel of exp, 250.0 ms, 1 session",
    "and for 3 more kernels",
]


def test_each_of_the_longest_waits_is_a_line_and_the_others_are_counted() -> None:
    assert waits_of({"kernel_waits": KERNEL_WAITS}) == LINES


@pytest.mark.parametrize("stats", [{}, {"kernel_waits": {"kernels": 0, "sessions": 0, "oldest_s": 0.0, "oldest": []}}])
def test_where_no_row_waits_and_of_older_servers_nothing_is_told(stats: dict[str, object]) -> None:
    assert waits_of(stats) == []


def test_the_status_tells_what_rows_wait_for() -> None:
    status = status_text(STATS | {"launches": 0, "kernel_waits": KERNEL_WAITS}).splitlines()
    assert [line.split(maxsplit=1)[1] for line in status if line.startswith("rows")] == ["; ".join(LINES)]
    assert "wait for no kernel" in status_text(STATS)


def test_a_session_tells_what_it_waits_for() -> None:
    more = {"epoch": 1, "peer": "local", "segments": 3, "live_handles": 4, "received_bytes": 5, "sent_bytes": 6}
    assert "waits for  the kernel of max, the kernel of exp" in session_text(
        SESSION | more | {"waits_for": ["max", "exp"]}
    )
    assert "waits for  no kernel" in session_text(SESSION | more)
