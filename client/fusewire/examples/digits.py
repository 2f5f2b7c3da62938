"""`fusewire demo`: trains a network on handwritten digits with NumPy, on one client, then on several clients at once.

NumPy takes gradients that are written by hand, and Fusewire makes them by `value_and_grad`.

Each client is a process with its own learning rate. All clients use one server. The demo passes if three conditions
hold:

- every client classifies the held-out images as accurately as NumPy does;
- good learning rates reach an accuracy of 95 %;
- the clients send at most 10 distinct programs, and all clients send most of these programs.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from fusewire._errors import ConfigurationError
from fusewire.examples import picture, report, terminal
from fusewire.examples.figures import Figures
from fusewire.examples.measure import measure_running, measure_started

PASSED, FAILED = 0, 1


def run(parsed: argparse.Namespace) -> int:
    """Runs the demo, prints a report and returns the exit status. Raises FusewireError if a process fails.

    Raises ConfigurationError before it measures anything if there is no folder for the picture.
    """
    if not parsed.output.absolute().parent.is_dir():
        raise ConfigurationError(f"--output {parsed.output}: there is no folder {parsed.output.parent}")
    figures = _measured(parsed)
    picture.draw(figures, parsed.output)
    if parsed.json:
        print(report.as_json(figures))
    else:
        _print(figures, parsed.output)
    return PASSED if figures.has_passed else FAILED


def _measured(parsed: argparse.Namespace) -> Figures:
    if parsed.target is None:
        return measure_started(parsed.backend, clients=parsed.clients, epochs=parsed.epochs)
    return measure_running(parsed.target, parsed.http, clients=parsed.clients, epochs=parsed.epochs)


def _print(figures: Figures, path: Path) -> None:
    for table in report.tables(figures):
        terminal.show(table)
    print(f"loss curves: {path}")
    print("\n".join(report.closing_lines(figures)))
