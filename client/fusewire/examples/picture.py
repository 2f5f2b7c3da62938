"""Draws the loss curves into a PNG file with matplotlib. This works on a machine without a display."""

from __future__ import annotations

from pathlib import Path

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from fusewire.examples.figures import Figures


def draw(figures: Figures, path: Path) -> None:
    """Writes a PNG file with one curve for each client of the phase in which several clients train at once."""
    figure = Figure(figsize=(8, 5), layout="constrained")
    axes = figure.add_subplot()
    for client in figures.together.clients:
        epochs = range(1, len(client.run.losses) + 1)
        label = f"{client.run.learning_rate:g}: {client.run.accuracy:.1%}"
        axes.plot(epochs, client.run.losses, label=label, linewidth=1.5)
    axes.set_yscale("log")
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_xlabel("epoch")
    axes.set_ylabel("mean cross-entropy while training")
    server = figures.server.backend or figures.server.target
    axes.set_title(f"Handwritten digits, {len(figures.together.clients)} clients at once on {server}")
    axes.grid(visible=True, which="both", linewidth=0.3)
    axes.legend(title="learning rate: held-out accuracy")
    figure.savefig(path, dpi=120, format="png")
