"""Runs the phases of the demo: NumPy, one client, several clients. Starts a server or uses a running one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from fusewire.examples import terminal
from fusewire.examples.clients import train_together
from fusewire.examples.figures import Figures, Phase, ServerName, TrainingRun
from fusewire.examples.inspection import Inspection
from fusewire.examples.training.network import learning_rates
from fusewire.examples.training.timing import train_once
from fusewire.testing import serve_subprocess


def measure_started(backend: str, *, clients: int, epochs: int) -> Figures:
    """Starts a server for the demo on free ports of this machine, and measures on this server."""
    with serve_subprocess(backend) as server:
        return measure_running(server.grpc, server.http, clients=clients, epochs=epochs)


def measure_running(target: str, http: str | None, *, clients: int, epochs: int) -> Figures:
    """Measures on a running server.

    `http` is the address of the server's inspection. If it is None, the server's figures are left out.
    """
    rates = learning_rates(clients)
    inspection = None if http is None else Inspection(http)
    numpy_runs = _train_with_numpy(rates, epochs)
    first = _phase("first client", target, inspection, _middle(rates), epochs)
    alone = _phase("1 client", target, inspection, _middle(rates), epochs)
    together = _phase(f"{clients} clients", target, inspection, rates, epochs)
    name = ServerName(target, "", "", has_compiler=None) if inspection is None else inspection.describe(target)
    return Figures(epochs, name, numpy_runs, first, alone, together)


def _phase(label: str, target: str, inspection: Inspection | None, rates: Sequence[float], epochs: int) -> Phase:
    before = inspection and inspection.count()
    labels = [f"{label}, learning rate {rate:g}" for rate in rates]
    with terminal.progress(labels, epochs) as advance:
        runs = train_together(target, rates, epochs=epochs, advance=advance)
    after = inspection and inspection.count()
    return Phase(runs, after.since(before) if before and after else None)


def _middle(rates: Sequence[float]) -> Sequence[float]:
    """Returns a sequence that holds only the middle learning rate, with which the network learns well."""
    return rates[len(rates) // 2 :][:1]


def _train_with_numpy(rates: Sequence[float], epochs: int) -> tuple[TrainingRun, ...]:
    with terminal.progress(["NumPy"], len(rates) * epochs) as advance:
        return tuple(train_once(np, rate, epochs, lambda: advance(0)) for rate in rates)
