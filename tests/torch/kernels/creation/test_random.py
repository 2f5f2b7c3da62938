"""Random numbers have the distributions of PyTorch's."""

from __future__ import annotations

import math

import pytest
import torch
from torch import distributions

COUNT = 20_000
STANDARD_ERRORS = 5


def _tensor(*elements: float) -> torch.Tensor:
    return torch.tensor(elements, device="fusewire")


@pytest.mark.parametrize(
    "make",
    [
        lambda: distributions.Gamma(_tensor(0.1, 2.0, 30.0), _tensor(2.0, 1.0, 0.5)),
        lambda: distributions.Beta(_tensor(0.5, 2.0), _tensor(0.5, 3.0)),
        lambda: distributions.Dirichlet(_tensor(1.0, 2.0, 3.0)),
        lambda: distributions.Chi2(_tensor(3.0)),
        lambda: distributions.StudentT(_tensor(8.0)),
        lambda: distributions.Poisson(_tensor(0.5, 30.0)),
        lambda: distributions.Binomial(_tensor(3.0, 100.0), _tensor(0.25, 0.6)),
        lambda: distributions.NegativeBinomial(_tensor(3.0), _tensor(0.4)),
        lambda: distributions.Geometric(_tensor(0.25)),
        lambda: distributions.Multinomial(7, _tensor(0.25, 0.5, 0.25)),
    ],
)
def test_a_distribution_has_its_mean(make: object) -> None:
    assert callable(make)
    torch.manual_seed(0)
    distribution = make()
    drawn = distribution.sample((COUNT,))
    distance = (drawn.mean(0) - distribution.mean).abs() / (distribution.variance / COUNT).sqrt()
    assert bool((distance < STANDARD_ERRORS).all())


@pytest.mark.parametrize(("name", "median"), [("cauchy_", 3.0), ("log_normal_", math.exp(3))])
def test_half_of_the_numbers_are_below_the_median(name: str, median: float) -> None:
    torch.manual_seed(0)
    drawn = getattr(torch.empty(COUNT, device="fusewire"), name)(3.0, 0.5)
    share = float((drawn < median).float().mean())
    assert abs(share - 0.5) < STANDARD_ERRORS * 0.5 / math.sqrt(COUNT)
    with pytest.raises(RuntimeError, match=rf"{name} expects .* > 0.0"):
        getattr(drawn, name)(3.0, 0.0)


def test_gamma_numbers_of_a_small_shape_are_above_zero() -> None:
    drawn = distributions.Gamma(_tensor(1e-4), _tensor(1.0)).sample((1000,))
    assert bool((drawn > 0).all())


def test_counts_of_wrong_parameters_are_those_of_the_cpu_or_nan() -> None:
    counts, chances = (-3.0, 3.0, 3.0, 3.0, 0.0), (0.5, 1.5, -0.5, math.nan, 0.5)
    drawn = torch.binomial(_tensor(*counts), _tensor(*chances)).cpu()
    expected = torch.binomial(torch.tensor(counts), torch.tensor(chances))
    torch.testing.assert_close(drawn, expected, equal_nan=True)
    assert torch.poisson(_tensor(-1.0, 0.0, math.nan)).isnan().tolist() == [True, False, True]


def test_a_tensor_of_probabilities_fills_another() -> None:
    filled = torch.empty(3, 2, device="fusewire").bernoulli_(_tensor(0.0, 1.0))
    assert filled.tolist() == [[0.0, 1.0]] * 3


@pytest.mark.parametrize(
    "draw",
    [
        lambda generator: torch.randn(9, generator=generator, device="fusewire"),
        lambda generator: torch.rand(9, generator=generator, device="fusewire"),
        lambda generator: torch.randn(9, generator=generator, device="fusewire", dtype=torch.complex64),
        lambda generator: torch.randint(0, 1000, (9,), generator=generator, device="fusewire"),
        lambda generator: torch.randperm(99, generator=generator, device="fusewire"),
        lambda generator: torch.multinomial(torch.ones(99, device="fusewire"), 9, generator=generator),
        lambda generator: torch.bernoulli(torch.full((99,), 0.5, device="fusewire"), generator=generator),
        lambda generator: torch.poisson(torch.full((99,), 5.0, device="fusewire"), generator=generator),
        lambda generator: torch.binomial(_tensor(99.0, 9.0), _tensor(0.5, 0.5), generator=generator),
        lambda generator: torch.empty(9, device="fusewire").exponential_(generator=generator),
        lambda generator: torch.empty(9, device="fusewire").cauchy_(generator=generator),
        lambda generator: torch.empty(9, device="fusewire").log_normal_(generator=generator),
        lambda generator: torch.empty(9, device="fusewire", dtype=torch.int64).random_(generator=generator),
        lambda generator: torch.nn.init.xavier_uniform_(torch.empty(3, 3, device="fusewire"), generator=generator),
    ],
)
def test_a_generator_of_the_cpu_decides_the_numbers(draw: object) -> None:
    assert callable(draw)
    generator = torch.Generator().manual_seed(3)
    one, other = draw(generator), draw(generator)
    again = draw(torch.Generator().manual_seed(3))
    assert torch.equal(one, again)
    assert not torch.equal(one, other)
