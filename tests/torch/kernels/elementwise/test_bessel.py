"""Bessel functions are exact in float64: beside integrals with many nodes, and differential equations."""

from __future__ import annotations

from math import pi

import pytest
import torch

_POINTS = torch.cat(
    [torch.logspace(-3, 2.9, 60, dtype=torch.float64), torch.linspace(0.1, 40, 80, dtype=torch.float64)]
)
_NODES = 4000


def _on_device(name: str, x: torch.Tensor) -> torch.Tensor:
    found: torch.Tensor = getattr(torch.special, name)(x.to("fusewire")).cpu()
    return found


@pytest.mark.parametrize("order", [0, 1])
def test_j_is_its_integral(order: int) -> None:
    angles = (torch.arange(_NODES, dtype=torch.float64) + 0.5) / _NODES * pi
    wanted = torch.cos(order * angles - _POINTS[:, None] * angles.sin()).mean(1)
    torch.testing.assert_close(_on_device(f"bessel_j{order}", _POINTS), wanted, rtol=0, atol=1e-14)


def test_j_and_y_have_their_wronskian() -> None:
    j0, j1, y0, y1 = (_on_device(f"bessel_{name}", _POINTS) for name in ("j0", "j1", "y0", "y1"))
    torch.testing.assert_close((j1 * y0 - j0 * y1) * _POINTS * pi / 2, torch.ones_like(_POINTS), rtol=0, atol=1e-12)


def test_i_and_k_have_their_wronskian() -> None:
    i0, i1 = torch.special.i0e(_POINTS), torch.special.i1e(_POINTS)
    k0, k1 = (_on_device(f"scaled_modified_bessel_k{order}", _POINTS) for order in (0, 1))
    torch.testing.assert_close((i0 * k1 + i1 * k0) * _POINTS, torch.ones_like(_POINTS), rtol=0, atol=1e-13)


@pytest.mark.parametrize(
    "name",
    [f"modified_bessel_{name}" for name in ("i0", "i1", "k0", "k1")]
    + ["scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0"],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_others_are_those_of_the_cpu(name: str, dtype: torch.dtype) -> None:
    x = torch.cat([_POINTS[_POINTS < 80], torch.zeros(1)]).to(dtype)
    torch.testing.assert_close(_on_device(name, x), getattr(torch.special, name)(x), rtol=2e-6, atol=0)


@pytest.mark.parametrize("name", ["bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1"])
def test_numbers_below_zero_have_no_value(name: str) -> None:
    assert _on_device(name, torch.tensor([-1.0])).isnan().all()
    assert _on_device(name, torch.tensor([0.0])).isinf().all()
