"""Orthogonal polynomials are those of the CPU, of a degree and of a tensor of degrees."""

from __future__ import annotations

import pytest
import torch

_CHEBYSHEV = [f"{shift}chebyshev_polynomial_{kind}" for shift in ("", "shifted_") for kind in "tuvw"]
_NAMES = [
    *_CHEBYSHEV,
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
]


@pytest.mark.parametrize("name", _NAMES)
def test_a_polynomial_is_that_of_the_cpu(name: str) -> None:
    function = getattr(torch.special, name)
    x = torch.linspace(-1.5, 1.5, 31, dtype=torch.float64)
    for degree in (-1, 0, 1, 2, 7, 12):
        torch.testing.assert_close(function(x.to("fusewire"), degree).cpu(), function(x, degree))
    degrees = torch.arange(31) % 9
    torch.testing.assert_close(function(x.to("fusewire"), degrees.to("fusewire")).cpu(), function(x, degrees))
    torch.testing.assert_close(function(0.3, degrees.to("fusewire")).cpu(), function(0.3, degrees))


def test_a_degree_beyond_the_limit_is_refused() -> None:
    with pytest.raises(NotImplementedError, match="degrees up to 1000"):
        torch.special.legendre_polynomial_p(torch.ones(2, device="fusewire"), 1001)
