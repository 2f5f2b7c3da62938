"""`fusewire bench`: it runs the bench of the load tests in the folder that it is called in."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from pathlib import Path

import pytest

from fusewire_cli.main import main

_ROOT = Path(__file__).parents[2]


def bench_in(folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs as the installed script does, whose own folder, and not the working directory, is on Python's path.

    Nor is the source tree, which PYTHONPATH may name here.
    """
    command = [sys.executable, "-P", "-m", "fusewire_cli", "bench", "--only", "nothing"]
    named = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    path = os.pathsep.join([each for each in named if each and not Path(each, "loadtests").is_dir()])
    environment = {**os.environ, "PYTHONPATH": path}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=60, check=False)


def test_a_source_tree_has_the_load_tests() -> None:
    finished = bench_in(_ROOT)
    assert finished.stderr.startswith("unknown figure nothing; known are ")
    assert finished.returncode == 2


def test_another_folder_has_no_load_tests_and_is_told_where_they_are(tmp_path: Path) -> None:
    finished = bench_in(tmp_path)
    assert finished.stderr.startswith("fusewire: the load tests are in the source tree, not in the package")
    assert finished.returncode == 2


@pytest.mark.parametrize(
    "arguments",
    [[], ["--backend", "cuda"], ["--only", "record_op", "wire_op"], ["--strict"], ["--json"], ["--json", "--strict"]],
    ids=" ".join,
)
def test_the_bench_gets_the_arguments(arguments: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[list[str]] = []

    def stand_in(arguments: list[str]) -> int:
        given.append(arguments)
        return 1

    monkeypatch.setitem(sys.modules, "loadtests.command_line", argparse.Namespace(main=stand_in))
    assert main(["bench", *arguments]) == 1
    ((command, backend_flag, backend, *more),) = given
    assert (command, backend_flag, backend) == ("bench", "--backend", "cuda" if "cuda" in arguments else "cpu")
    assert sorted(more) == sorted(each for each in arguments if each not in {"--backend", "cuda"})
