"""Runs and times the training of the demo's network by PyTorch. Needs PyTorch."""

from __future__ import annotations

import time
from statistics import median
from typing import Any

import torch
from torch import nn
from torch.nn import functional

import fusewire.torch
from fusewire.examples import dataset
from fusewire.examples.figures import TorchRun
from fusewire.examples.training.network import BATCH, learning_rates, start

_RATE = learning_rates(1)[0]


def train_thrice(target: str, epochs: int) -> tuple[TorchRun, TorchRun, TorchRun]:
    """Trains on the CPU, on the server at `target`, and there with each step as one message."""
    with fusewire.torch.connect(target):
        return (
            _train("CPU", "cpu", epochs),
            _train("Fusewire", "fusewire", epochs),
            _train("Fusewire by fusewire.torch.step", "fusewire", epochs, captured=True),
        )


def _train(name: str, device: str, epochs: int, *, captured: bool = False) -> TorchRun:
    """Trains on four fifths of the images and tests on the rest."""
    parts, net = dataset.split(dataset.load()), _network().to(device)
    images, labels = (torch.from_numpy(each) for each in parts.training)
    batches = [(x.to(device), y.to(device)) for x, y in zip(images.split(BATCH), labels.split(BATCH), strict=True)]
    step = _step_of(net)
    if captured:
        step = fusewire.torch.step(step)
    losses, durations_s = [], []
    for _ in range(epochs):
        began_at_s = time.perf_counter()
        of_batches = [step(x, y) for x, y in batches]
        losses.append(torch.stack(of_batches).mean().item())
        durations_s.append(time.perf_counter() - began_at_s)
    images, labels = (torch.from_numpy(each).to(device) for each in parts.held_out)
    with torch.no_grad():
        share = (net(images).argmax(1) == labels).float().mean().item()
    return TorchRun(name, share, tuple(losses), 1e6 * median(durations_s) / len(batches))


def _network() -> nn.Module:
    """Returns the network of the demo, with the weights that it has before training."""
    weights = start()
    net = nn.Sequential(nn.Linear(*weights.first.shape), nn.Tanh(), nn.Linear(*weights.second.shape))
    with torch.no_grad():
        for layer, weight, bias in ((net[0], weights.first, weights.first_bias), (net[2], *weights[2:])):
            layer.weight.copy_(torch.from_numpy(weight.T))
            layer.bias.copy_(torch.from_numpy(bias))
    return net


def _step_of(net: nn.Module) -> Any:
    """Returns the function that learns from a batch, and returns its mean loss."""
    optimizer = torch.optim.SGD(net.parameters(), lr=_RATE)

    def step(images: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        loss = functional.cross_entropy(net(images), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return step
