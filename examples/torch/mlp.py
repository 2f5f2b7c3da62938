"""Trains a network with one hidden layer to read handwritten digits.

`python examples/torch/mlp.py cpu` trains on this machine, `fusewire` on a server, and `fusewire captured` there too, by
one message a step.
"""

from __future__ import annotations

import sys

import torch
from torch import nn
from torch.nn import functional

import fusewire.torch
from fusewire.examples import dataset

HIDDEN, BATCH, RATE = 128, 32, 0.1


def digits(device: str) -> list[tuple[torch.Tensor, torch.Tensor]]:
    """Returns images (n, 64) and labels (n,) to train with, and others to test with."""
    parts = dataset.split(dataset.load())
    return [(torch.from_numpy(part.images).to(device), torch.from_numpy(part.labels).to(device)) for part in parts]


def train(device: str, steps: int = 900, *, captured: bool = False) -> tuple[nn.Module, list[float]]:
    """Returns the network, and the loss of each step. If `captured`, a whole step is one message."""
    torch.manual_seed(0)  # weights are drawn on the CPU, so they are the same on each device
    net = nn.Sequential(nn.Linear(dataset.PIXELS, HIDDEN), nn.Tanh(), nn.Linear(HIDDEN, dataset.CLASSES)).to(device)
    optimizer = torch.optim.SGD(net.parameters(), lr=RATE, momentum=0.9)
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
    with torch.no_grad():
        return float((net(images).argmax(1) == labels).float().mean())


if __name__ == "__main__":
    device = sys.argv[1] if len(sys.argv) > 1 else "fusewire"
    net, losses = train(device, captured="captured" in sys.argv)
    print(f"loss {losses[0]:.3f} → {losses[-1]:.3f}, {accuracy(net, device):.1%} of the test images are read correctly")
