"""Trains a small residual network to read handwritten digits.

Source: K. He et al., Deep residual learning for image recognition, CVPR 2016.
"""

from __future__ import annotations

import sys

import torch
from torch import nn
from torch.nn import functional

import fusewire.torch
from fusewire.examples import dataset

BATCH, RATE = 32, 0.05


class Residual(nn.Module):
    """Two convolutions that add to their input, of which the first may halve the image."""

    def __init__(self, channels: int, result: int, stride: int = 1) -> None:
        super().__init__()
        self.changes = nn.Sequential(
            nn.Conv2d(channels, result, 3, stride, padding=1, bias=False),
            nn.BatchNorm2d(result),
            nn.ReLU(),
            nn.Conv2d(result, result, 3, padding=1, bias=False),
            nn.BatchNorm2d(result),
        )
        same = channels == result and stride == 1
        self.passed = nn.Identity() if same else nn.Conv2d(channels, result, 1, stride, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return functional.relu(self.passed(x) + self.changes(x))


def network() -> nn.Module:
    """Returns a network that scores images (n, 1, 8, 8) as each of the digits."""
    return nn.Sequential(
        nn.Conv2d(1, 8, 3, padding=1, bias=False),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        Residual(8, 8),
        Residual(8, 16, stride=2),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(16, dataset.CLASSES),
    )


def digits(device: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Returns images (n, 1, 8, 8) and labels (n,) to train with, and others to test with."""
    parts = dataset.split(dataset.load())
    return [
        (torch.from_numpy(part.images).view(-1, 1, 8, 8).to(device), torch.from_numpy(part.labels).to(device))
        for part in parts
    ]


def train(device: str, steps: int = 200, *, captured: bool = False) -> tuple[nn.Module, list[float]]:
    """Returns the network, and the loss of each step. If `captured`, a whole step is one message."""
    torch.manual_seed(0)  # weights are drawn on the CPU, so they are the same on each device
    net = network().to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=0.9, weight_decay=1e-4)
    (images, labels), _ = digits(device)

    def step(chosen: torch.Tensor) -> torch.Tensor:
        loss = functional.cross_entropy(net(images[chosen]), labels[chosen])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    if captured:
        step = fusewire.torch.step(step)
    losses = [step(torch.randint(len(images), (BATCH,)).to(device)) for _ in range(steps)]
    return net, [loss.item() for loss in losses]


def accuracy(net: nn.Module, device: str) -> float:
    """Returns the share of the test images that the network reads as what they are."""
    _, (images, labels) = digits(device)
    net.eval()
    with torch.no_grad():
        return float((net(images).argmax(1) == labels).float().mean())


if __name__ == "__main__":
    device = sys.argv[1] if len(sys.argv) > 1 else "fusewire"
    net, losses = train(device, captured="captured" in sys.argv)
    print(f"loss {losses[0]:.3f} → {losses[-1]:.3f}, {accuracy(net, device):.1%} of the test images are read correctly")
