"""Which ops compute in the lower precision under autocast."""

from __future__ import annotations

import torch
from torch import nn


def test_products_are_of_the_lower_precision_and_losses_of_float32() -> None:
    layer = nn.Linear(4, 2).to("fusewire")
    x = torch.randn(3, 4).to("fusewire")
    with torch.autocast("fusewire", dtype=torch.bfloat16):
        y = layer(x)
        loss = nn.functional.mse_loss(y, torch.zeros_like(y))
    assert (y.dtype, loss.dtype) == (torch.bfloat16, torch.float32)
    loss.backward()
    assert layer.weight.grad is not None
    assert layer.weight.grad.dtype is torch.float32


def test_outside_of_autocast_nothing_is_cast() -> None:
    layer = nn.Linear(4, 2).to("fusewire")
    assert layer(torch.randn(3, 4).to("fusewire")).dtype is torch.float32


def test_integers_and_float64_are_left_as_they_are() -> None:
    x = torch.ones(2, 2, dtype=torch.float64).to("fusewire")
    with torch.autocast("fusewire", dtype=torch.bfloat16):
        assert (x @ x).dtype is torch.float64
