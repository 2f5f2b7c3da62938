"""`fusewire demo --torch`: trains the demo's network by PyTorch, on the CPU of this machine and on a server.

The demo passes if PyTorch on Fusewire classifies the held-out images as accurately as PyTorch on the CPU, and if
`fusewire.torch.step` changes no bit of a loss.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict
from importlib.util import find_spec

from fusewire._errors import ConfigurationError
from fusewire.examples import terminal
from fusewire.examples.figures import LARGEST_DIFFERENCE, TorchRun
from fusewire.examples.report import Table
from fusewire.testing import serve_subprocess

PASSED, FAILED = 0, 1


def run(parsed: argparse.Namespace) -> int:
    """Runs the demo, prints a report and returns the exit status. Raises FusewireError if the server fails.

    Raises ConfigurationError if PyTorch is not installed.
    """
    if find_spec("torch") is None:
        raise ConfigurationError("--torch: PyTorch is missing: pip install 'fusewire[torch]'")
    runs = _measured(parsed)
    faults = shortcomings(runs)
    if parsed.json:
        print(json.dumps({"passed": not faults, "epochs": parsed.epochs, "runs": [*map(asdict, runs)]}, indent=2))
    else:
        terminal.show(table(runs, parsed.epochs))
        print(f"FAILED: {'; '.join(faults)}" if faults else "PASSED: Fusewire learns what the CPU learns")
    return FAILED if faults else PASSED


def _measured(parsed: argparse.Namespace) -> tuple[TorchRun, ...]:
    """Trains on the server of `--target`, or on one that it starts."""
    from fusewire.examples.training.torch_training import train_thrice  # noqa: PLC0415 - needs PyTorch

    if parsed.target is not None:
        return train_thrice(parsed.target, parsed.epochs)
    with serve_subprocess(parsed.backend) as server:
        return train_thrice(server.grpc, parsed.epochs)


def table(runs: Sequence[TorchRun], epochs: int) -> Table:
    """Returns a table with a line for each run."""
    rows = [(run.name, f"{run.accuracy:.4f}", f"{run.losses[-1]:.4f}", f"{run.step_us:,.0f}") for run in runs]
    title = f"PyTorch after {epochs} epochs; the time of a step is that of the median epoch"
    return Table(title, ("", "accuracy", "last loss", "µs a step"), tuple(rows))


def shortcomings(runs: Sequence[TorchRun]) -> list[str]:
    """Returns what the runs on the CPU, on Fusewire and by `step` should not show, as texts."""
    cpu, plain, by_step = runs
    difference = plain.accuracy - cpu.accuracy
    found = []
    if abs(difference) > LARGEST_DIFFERENCE:
        found.append(f"the accuracy differs by {difference:.4f} from the CPU's, more than {LARGEST_DIFFERENCE}")
    if by_step.losses != plain.losses:
        found.append("the losses by fusewire.torch.step are other than those without it")
    return found
