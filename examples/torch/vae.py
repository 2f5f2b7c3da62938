"""Trains a variational autoencoder on handwritten digits, and draws new ones.

Source: D. P. Kingma and M. Welling, Auto-encoding variational Bayes, ICLR 2014.
"""

from __future__ import annotations

import sys

import torch
from torch import nn
from torch.nn import functional

import fusewire.torch
from fusewire.examples import dataset

LATENT, HIDDEN, BATCH, RATE = 8, 128, 64, 2e-3


class Autoencoder(nn.Module):
    """Makes of images (n, 64) means and logarithms of variances (n, latent), and of points (n, latent) images."""

    def __init__(self) -> None:
        super().__init__()
        self.encode = nn.Sequential(nn.Linear(dataset.PIXELS, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, 2 * LATENT))
        self.decode = nn.Sequential(nn.Linear(LATENT, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, dataset.PIXELS))

    def loss(self, images: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """Returns minus the evidence lower bound of the images, with standard normal noise (n, latent)."""
        mean, log_variance = self.encode(images).chunk(2, 1)
        shown = self.decode(mean + torch.exp(0.5 * log_variance) * noise)
        wrong = functional.binary_cross_entropy_with_logits(shown, images, reduction="sum")
        divergence = 0.5 * (mean.square() + log_variance.exp() - 1 - log_variance).sum()
        return (wrong + divergence) / len(images)


def train(device: str, steps: int = 600, *, captured: bool = False) -> tuple[Autoencoder, list[float]]:
    """Returns the network, and the loss of each step. If `captured`, a whole step is one message."""
    torch.manual_seed(0)  # weights are drawn on the CPU, so they are the same on each device
    net = Autoencoder().to(device)
    # With `capturable`, Adam counts its steps on the device, as a captured step needs it. The CPU does not take it.
    optimizer = torch.optim.Adam(net.parameters(), lr=RATE, capturable=device != "cpu")
    images = torch.from_numpy(dataset.load().images).to(device)

    def step(chosen: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        loss = net.loss(images[chosen], noise)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    if captured:
        step = fusewire.torch.step(step)
    losses = []
    for _ in range(steps):
        chosen, noise = torch.randint(len(images), (BATCH,)), torch.randn(BATCH, LATENT)
        losses.append(step(chosen.to(device), noise.to(device)))
    return net, [loss.item() for loss in losses]


def drawn(net: Autoencoder, device: str, count: int = 6) -> list[str]:
    """Returns the lines of a picture of new digits side by side."""
    with torch.no_grad():
        images = torch.sigmoid(net.decode(torch.randn(count, LATENT).to(device))).cpu()
    rows = images.view(count, 8, 8).permute(1, 0, 2).tolist()
    return ["  ".join("".join(" .:-=+*#%@"[int(9.99 * pixel)] for pixel in part) for part in row) for row in rows]


if __name__ == "__main__":
    device = sys.argv[1] if len(sys.argv) > 1 else "fusewire"
    net, losses = train(device, captured="captured" in sys.argv)
    print(f"loss {losses[0]:.2f} → {losses[-1]:.2f}")
    print("\n".join(drawn(net, device)))
