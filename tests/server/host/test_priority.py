"""Giving way to other processes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from fusewire_server.host.priority import AUTOGROUP
from tests.patience import HANGS_S

_DEADLINE_S = HANGS_S


def printed_number(code: str, *, leads_session: bool = False) -> int:
    """What a process that gives way prints; this one must keep its own priority."""
    program = f"from fusewire_server.host.priority import lower_priority\nlower_priority(10)\n{code}"
    command = [sys.executable, "-c", program]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=_DEADLINE_S, start_new_session=leads_session
    )
    assert not done.stderr
    return int(done.stdout)


def test_a_process_gives_way_by_its_priority() -> None:
    assert printed_number("import os; print(os.nice(0))") == min(os.nice(0) + 10, 19)


def group_niceness() -> int | None:
    """Of the group of processes that this one is in; None if it is in none."""
    try:
        words = AUTOGROUP.read_text(encoding="ascii").split()
    except OSError:  # the system has no groups
        return None
    return int(words[-1]) if words else None  # the file of a process in no group is there, and empty


_PRINT_GROUP = "from tests.server.host.test_priority import group_niceness; print(group_niceness())"


@pytest.mark.skipif(group_niceness() is None, reason="this process is in no group")
@pytest.mark.parametrize("leads_session", [True, False])
def test_who_leads_a_session_gives_way_with_the_group_of_its_processes_and_nobody_else(leads_session: bool) -> None:
    before = group_niceness()
    expected = min(os.nice(0) + 10, 19) if leads_session else before
    assert printed_number(_PRINT_GROUP, leads_session=leads_session) == expected
    assert group_niceness() == before
