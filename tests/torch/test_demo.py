"""`fusewire demo --torch` from end to end, and what it says of its runs."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace

import pytest

from fusewire.examples.figures import TorchRun
from fusewire.examples.torch_demo import shortcomings, table
from fusewire.testing.server_process import ServerProcess
from tests.patience import HANGS_S

RUNS = tuple(TorchRun(name, 0.97, (1.5, 0.25), 120.0) for name in ("CPU", "Fusewire", "by step"))


def demo(*typed: str) -> str:
    command = [sys.executable, "-W", "error", "-m", "fusewire", "demo", "--torch", "--epochs", "3", *typed]
    return subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=True).stdout


def test_the_network_learns_by_pytorch_on_a_running_server(server: ServerProcess) -> None:
    report = json.loads(demo("--target", server.grpc, "--json"))
    assert report["passed"]
    assert all(run["losses"][-1] < run["losses"][0] and run["step_us"] > 0 for run in report["runs"])


def test_it_starts_a_server_and_prints_a_line_for_each_run() -> None:
    printed = demo("--backend", "cpu")
    assert [line.split()[0] for line in printed.splitlines() if "0." in line] == ["CPU", "Fusewire", "Fusewire"]
    assert printed.splitlines()[-1].startswith("PASSED")


def test_the_table_shows_accuracy_loss_and_time() -> None:
    assert table(RUNS, 3).rows[1] == ("Fusewire", "0.9700", "0.2500", "120")


def test_runs_that_agree_have_no_shortcoming() -> None:
    assert shortcomings(RUNS) == []


@pytest.mark.parametrize(
    ("place", "changed", "difference"),
    [
        (1, {"accuracy": 0.9}, "the accuracy differs by -0.0700"),
        (2, {"losses": (1.5, 0.26)}, "the losses by fusewire.torch.step"),
    ],
)
def test_what_differs_is_told(place: int, changed: dict[str, object], difference: str) -> None:
    runs = [*RUNS]
    runs[place] = replace(runs[place], **changed)  # type: ignore[arg-type]  # some of its fields
    (found,) = shortcomings(runs)
    assert found.startswith(difference)
