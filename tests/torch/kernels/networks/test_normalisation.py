"""Normalised weights learn as on the CPU."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn.utils.parametrizations import weight_norm


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (weight_norm(nn.Linear(3, 4)), (2, 3)),
        (weight_norm(nn.Linear(3, 4), dim=1), (2, 3)),
        (weight_norm(nn.Linear(3, 4), dim=None), (2, 3)),
        (weight_norm(nn.Conv1d(3, 4, 2)), (2, 3, 5)),
        (weight_norm(nn.ConvTranspose1d(3, 4, 2), dim=1), (2, 3, 5)),
    ],
)
def test_a_weight_with_a_length_of_its_own_has_the_gradients_of_the_cpu(layer: nn.Module, shape: torch.Size) -> None:
    here = copy.deepcopy(layer).to("fusewire")
    x = torch.linspace(-1, 1, torch.Size(shape).numel()).reshape(shape)
    for each, given in ((layer, x), (here, x.to("fusewire"))):
        each(given).square().sum().backward()
    for expected, found in zip(layer.parameters(), here.parameters(), strict=True):
        assert expected.grad is not None
        assert found.grad is not None
        torch.testing.assert_close(found.grad.cpu(), expected.grad)
