"""Trains a recurrent network to forecast the next value of a noisy series.

Source: S. Hochreiter and J. Schmidhuber, Long short-term memory, Neural Computation 9 (1997).
"""

from __future__ import annotations

import sys

import torch
from torch import nn
from torch.nn import functional

import fusewire.torch

VALUES, WINDOW, BATCH, HIDDEN, RATE, NOISE = 1200, 24, 32, 32, 5e-3, 0.1
BETAS = 0.9, 0.99
TRAINING = 1000  # windows; the later ones are for the test


def windows(device: str) -> torch.Tensor:
    """Returns all pieces (n, window + 1) of a series of two waves and noise. The last value of each is to be found."""
    times = torch.arange(VALUES)
    noise = NOISE * torch.randn(VALUES, generator=torch.Generator().manual_seed(0))
    series = torch.sin(times / 5) + 0.5 * torch.sin(times / 13) + noise
    return series.unfold(0, WINDOW + 1, 1).contiguous().to(device)


class Forecaster(nn.Module):
    """The next value (batch,) of series (batch, length)."""

    def __init__(self) -> None:
        super().__init__()
        self.memory = nn.LSTM(1, HIDDEN, batch_first=True)
        self.next = nn.Linear(HIDDEN, 1)

    def forward(self, series: torch.Tensor) -> torch.Tensor:
        states, _ = self.memory(series[:, :, None])
        return self.next(states[:, -1])[:, 0]


def train(device: str, steps: int = 300, *, captured: bool = False) -> tuple[Forecaster, list[float]]:
    """Returns the network, and the loss of each step. If `captured`, a whole step is one message."""
    torch.manual_seed(0)  # weights are drawn on the CPU, so they are the same on each device
    net, pieces = Forecaster().to(device), windows(device)
    # With `capturable`, Adam counts its steps on the device, as a captured step needs it. The CPU does not take it.
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE, betas=BETAS, capturable=device != "cpu")

    def step(chosen: torch.Tensor) -> torch.Tensor:
        piece = pieces[chosen]
        loss = functional.mse_loss(net(piece[:, :-1]), piece[:, -1])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    if captured:
        step = fusewire.torch.step(step)
    losses = [step(torch.randint(TRAINING, (BATCH,)).to(device)) for _ in range(steps)]
    return net, [loss.item() for loss in losses]


def error(net: Forecaster, device: str) -> float:
    """Returns the standard deviation of the forecasts from the later values of the series."""
    pieces = windows(device)[TRAINING:]
    with torch.no_grad():
        return float(functional.mse_loss(net(pieces[:, :-1]), pieces[:, -1]).sqrt())


if __name__ == "__main__":
    device = sys.argv[1] if len(sys.argv) > 1 else "fusewire"
    net, losses = train(device, captured="captured" in sys.argv)
    print(f"loss {losses[0]:.3f} → {losses[-1]:.3f}, forecasts ±{error(net, device):.3f}, noise ±{NOISE:.3f}")
