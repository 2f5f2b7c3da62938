"""`torch.amp.GradScaler` scales losses on the device: it skips steps that overflow, and adapts its scale."""

from __future__ import annotations

import pytest
import torch

_SCALE, _INTERVAL = 8.0, 2


def _scaler() -> torch.amp.GradScaler:
    return torch.amp.GradScaler("fusewire", init_scale=_SCALE, growth_interval=_INTERVAL)


def _step(scaler: torch.amp.GradScaler, weight: torch.Tensor, factor: float) -> None:
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler.scale((weight * factor).sum()).backward()
    scaler.step(optimizer)
    scaler.update()


def test_a_step_sees_the_gradient_without_the_scale() -> None:
    weight = torch.ones(3, device="fusewire", requires_grad=True)
    _step(_scaler(), weight, 0.5)
    assert weight.tolist() == [0.5, 0.5, 0.5]


def test_an_overflow_skips_the_step_and_lowers_the_scale() -> None:
    scaler, weight = _scaler(), torch.ones(3, device="fusewire", requires_grad=True)
    _step(scaler, weight, 1e38)
    assert weight.tolist() == [1.0, 1.0, 1.0]
    assert scaler.get_scale() == _SCALE / 2


def test_an_optimizer_of_one_op_skips_a_step_that_overflows() -> None:
    scaler, weight = _scaler(), torch.ones(3, device="fusewire", requires_grad=True)
    optimizer = torch.optim.Adam([weight], lr=1.0, fused=True)
    for factor, expected in ((0.5, 0.0), (1e38, 0.0), (0.5, -1.0)):
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        assert weight.tolist() == pytest.approx([expected] * 3, abs=1e-6)


def test_steps_without_overflow_raise_the_scale() -> None:
    scaler, weight = _scaler(), torch.ones(3, device="fusewire", requires_grad=True)
    for _ in range(_INTERVAL):
        weight.grad = None
        _step(scaler, weight, 0.5)
    assert scaler.get_scale() == _SCALE * 2
