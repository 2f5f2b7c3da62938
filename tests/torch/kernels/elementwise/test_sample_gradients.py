"""Gradients of gamma and beta numbers by their shapes are those of the CPU, whose approximations are near to 1 %."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import distributions

import fusewire.torch

SHAPES = (0.05, 0.5, 1.0, 3.0, 5.9, 7.9, 8.1, 20.0, 300.0)
COUNT = 40
NEAR = 0.015  # of the CPU's, relatively


def _near(here: torch.Tensor, there: torch.Tensor) -> None:
    assert here.dtype is there.dtype
    torch.testing.assert_close(here.cpu(), there, rtol=NEAR, atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_derivatives_of_gamma_numbers(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    shapes = torch.tensor(SHAPES, dtype=dtype).repeat(COUNT)
    drawn = distributions.Gamma(shapes, 1.0).sample()
    there = torch._standard_gamma_grad(shapes.double(), drawn.double()).to(dtype)
    _near(torch._standard_gamma_grad(shapes.to("fusewire"), drawn.to("fusewire")), there)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_derivatives_of_beta_numbers(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    one, other = (torch.tensor(each, dtype=dtype) for each in zip(*itertools.product(SHAPES, SHAPES), strict=True))
    drawn = distributions.Beta(one.double(), other.double()).sample((COUNT,)).clamp(1e-5, 1 - 1e-5).to(dtype)
    given = [drawn, one.expand_as(drawn), (one + other).expand_as(drawn)]
    there = torch._dirichlet_grad(*[each.double().contiguous() for each in given]).to(dtype)
    _near(torch._dirichlet_grad(*[each.to("fusewire") for each in given]), there)


@pytest.mark.parametrize(
    ("x", "a", "b", "expected"),
    [
        (0.15, 1.0, 200.0, 0.02004176646341),
        (0.03, 1.0, 2000.0, 0.00234385793303),
        (0.5, 1.0, 100.0, 0.04504036092013),
        (0.2, 5.9, 300.0, 0.00868550646703),
        (0.05, 3.0, 1000.0, 0.00312753570496),
        (0.6, 0.5, 60.0, 0.09213176775857),
        (0.85, 200.0, 1.0, 0.00460470299644),
        (0.9, 300.0, 0.5, 0.00316340315865),
        (0.999, 300.0, 3.0, 0.00332062372637),
        (0.99, 20000.0, 5.0, 0.0000497441966364),
    ],
)
def test_derivatives_far_in_a_tail_are_exact(x: float, a: float, b: float, expected: float) -> None:
    """The expected ones were computed with fifty digits: PyTorch's approximation is off by up to 40 % here."""
    given = [torch.tensor([each], dtype=torch.float64, device="fusewire") for each in (x, a, a + b)]
    assert torch._dirichlet_grad(*given).item() == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize(
    ("make", "gradient"),
    [
        (lambda a: distributions.Gamma(a, torch.full_like(a, 2.0)), lambda a: torch.full_like(a, 0.5)),
        (lambda a: distributions.Beta(a, torch.full_like(a, 2.0)), lambda a: 2 / (a + 2) ** 2),
        (distributions.Chi2, torch.ones_like),
        (distributions.StudentT, torch.zeros_like),
    ],
)
def test_the_mean_of_samples_has_the_gradient_of_the_mean(
    make: Callable[[torch.Tensor], Any], gradient: Callable[[torch.Tensor], torch.Tensor]
) -> None:
    torch.manual_seed(0)
    shape = torch.tensor([2.5, 5.0, 30.0], device="fusewire", requires_grad=True)
    make(shape).rsample((2_000,)).mean(0).sum().backward()
    torch.testing.assert_close(shape.grad, gradient(shape.detach()), rtol=0.15, atol=0.05)


def test_the_shares_of_a_dirichlet_number_have_a_gradient_together() -> None:
    shape = torch.tensor([0.5, 3.0, 9.0], device="fusewire", requires_grad=True)
    distributions.Dirichlet(shape).rsample((2_000,))[:, 1].mean().backward()
    assert shape.grad is not None
    there = torch.tensor([0.5, 3.0, 9.0], requires_grad=True)
    (there[1] / there.sum()).backward()
    torch.testing.assert_close(shape.grad.cpu(), there.grad, rtol=0.15, atol=0.005)


def test_gradients_go_through_a_recorded_step() -> None:
    shape = torch.tensor([2.0, 9.0], device="fusewire", requires_grad=True)
    rate = torch.ones(2, device="fusewire")
    optimizer = torch.optim.SGD([shape], lr=0.1)

    def step() -> torch.Tensor:
        optimizer.zero_grad()
        loss = (distributions.Gamma(shape, rate, validate_args=False).rsample((50,)) - 4).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    losses = []
    for run in (step, fusewire.torch.step(step)):
        torch.manual_seed(3)
        with torch.no_grad():
            shape.copy_(torch.tensor([2.0, 9.0]))
        losses.append([run().item() for _ in range(5)])
    assert losses[0] == losses[1]


@pytest.mark.parametrize("x", [1.0, 5.0, 12.9, 13.1, 20.0, 40.0, 100.0])
def test_the_gradient_of_gamma_is_the_derivative_at_a_fixed_probability(x: float) -> None:
    shape, drawn, step = torch.tensor([0.05, 0.5, 1.0, 3.0, 7.9], dtype=torch.float64), torch.tensor(x).double(), 1e-5
    above = torch.special.gammaincc(shape + step, drawn) - torch.special.gammaincc(shape - step, drawn)
    density = torch.exp((shape - 1) * torch.log(drawn) - drawn - torch.lgamma(shape))
    found = torch._standard_gamma_grad(shape.to("fusewire"), drawn.expand(5).to("fusewire"))
    torch.testing.assert_close(found.cpu(), above / (2 * step) / density, rtol=1e-4, atol=0)
