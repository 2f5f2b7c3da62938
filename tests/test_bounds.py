"""The table of what tests bound: a figure beside its limit, whatever process the test ran in."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.patience import HANGS_S

_PROJECT = Path(__file__).parents[1]
_TESTS = """\
import pytest

@pytest.mark.parametrize("attack", ["flood"])
def test_a_server_goes_on(bounded, attack):
    bounded("growth", 3 << 20, 4 << 20, "B")
    bounded("time until it is noticed", 2.25, 16, "s")

def test_a_slow_server(bounded):
    bounded("time to end", 3.5, 2, "s")

def test_without_a_figure():
    pass
"""
_TABLE = """\
fault                      what is bounded            figure    limit
a server goes on[flood]    growth                    3.0 MiB  4.0 MiB
a server goes on[flood]    time until it is noticed   2.25 s     16 s
a slow server              time to end                 3.5 s      2 s
"""


@pytest.mark.parametrize("processes", ["0", "1"])
def test_a_run_prints_each_figure_beside_its_limit(processes: str, tmp_path: Path) -> None:
    (tmp_path / "test_faults.py").write_text(_TESTS, encoding="utf-8")
    plugins = ("-p", "no:cacheprovider", "-p", "tests.bounds", "-n", processes)
    command = (sys.executable, "-m", "pytest", "-q", *plugins, f"--rootdir={tmp_path}", str(tmp_path))
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=HANGS_S, cwd=_PROJECT)
    assert "2 passed" in done.stdout
    assert "AssertionError: time to end: 3.5 s, and the limit is 2 s" in done.stdout
    _, _, table = done.stdout.partition("what was bounded")
    assert [line.split() for line in _TABLE.splitlines()] == [line.split() for line in table.splitlines()[1:5]]
