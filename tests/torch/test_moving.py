"""Modules that move to the device and back keep their parameters."""

from __future__ import annotations

import weakref

import pytest
import torch
from torch import nn


def _tied() -> nn.ModuleList:
    layers = nn.ModuleList([nn.Linear(3, 3), nn.Linear(3, 3)])
    layers[1].weight = layers[0].weight
    return layers


def test_layers_share_a_weight_after_the_move_and_back() -> None:
    layers = _tied()
    for device in ("fusewire", "cpu"):
        layers.to(device)
        assert layers[0].weight is layers[1].weight
        assert layers[0].weight.device.type == device
        assert len(list(layers.parameters())) == 3


def test_an_optimizer_that_was_made_before_trains_the_moved_parameters() -> None:
    layer = nn.Linear(2, 1)
    with torch.no_grad():
        layer.weight.fill_(1.0)
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.5)
    layer.to("fusewire")
    layer(torch.ones(1, 2, device="fusewire")).sum().backward()
    optimizer.step()
    assert layer.weight.tolist() == [[0.5, 0.5]]


def test_a_gradient_moves_with_its_parameter() -> None:
    layer = nn.Linear(2, 1)
    layer(torch.ones(1, 2)).sum().backward()
    weight = layer.weight
    layer.to("fusewire")
    assert layer.weight is weight
    assert weight.grad is not None
    assert weight.grad.device.type == "fusewire"
    assert weight.grad.tolist() == [[1.0, 1.0]]


def test_recurrent_layers_and_buffers_move() -> None:
    layers = nn.ModuleList([nn.LSTM(3, 4), nn.BatchNorm1d(2)])
    parameters = list(layers.parameters())
    layers.to("fusewire")
    assert all(one is other for one, other in zip(layers.parameters(), parameters, strict=True))
    assert {each.device.type for each in (*parameters, *layers.buffers())} == {"fusewire"}
    assert layers[0](torch.ones(5, 3, device="fusewire"))[0].shape == (5, 4)


def test_a_parameter_that_cannot_be_kept_is_a_new_one_and_a_warning_says_so() -> None:
    layer = nn.Linear(2, 1)
    held = weakref.ref(layer.weight)
    with pytest.warns(UserWarning, match="'weight' is a new one on the device fusewire:0"):
        layer.to("fusewire")
    assert held() is not layer.weight
    assert layer.weight.device.type == "fusewire"


def test_lazy_layers_move_before_they_know_their_shapes() -> None:
    layers = nn.Sequential(nn.LazyConv1d(4, 2), nn.LazyBatchNorm1d(), nn.Flatten(), nn.LazyLinear(2)).to("fusewire")
    assert layers(torch.ones(3, 2, 6, device="fusewire")).shape == (3, 2)
    assert {(type(each), each.device.type) for each in layers.parameters()} == {(nn.Parameter, "fusewire")}
    assert layers.cpu()(torch.ones(3, 2, 6)).shape == (3, 2)


def test_moves_between_other_devices_stay_as_they_were() -> None:
    layers = _tied()
    weight = layers[0].weight
    layers.to(torch.float64)
    assert layers[1].weight is weight
    assert weight.dtype is torch.float64
