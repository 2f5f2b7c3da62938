"""Polynomials of whole degrees, and what their degrees may not be."""

from __future__ import annotations

import pytest
import torch

import fusewire.torch
from fusewire import RequestError


def test_a_number_as_degree_needs_no_read() -> None:
    step = fusewire.torch.step(lambda x: torch.special.legendre_polynomial_p(x, 3))
    x = torch.linspace(-1, 1, 5)
    found = [step(x.to("fusewire")) for _ in range(4)][-1]
    torch.testing.assert_close(found.cpu(), torch.special.legendre_polynomial_p(x, 3), rtol=0, atol=1e-6)


def test_a_tensor_of_degrees_is_read_and_so_refused_in_a_step() -> None:
    step = fusewire.torch.step(torch.special.legendre_polynomial_p)
    x, degrees = torch.ones(3, device="fusewire"), torch.arange(3, device="fusewire")
    step(x, degrees)  # runs plainly
    with pytest.raises(RequestError, match="reads a degree"):
        step(x, degrees)


def test_a_degree_without_bound_is_refused() -> None:
    with pytest.raises(RuntimeError, match="at most degree 1000, not 1001"):
        torch.special.hermite_polynomial_h(torch.ones(3, device="fusewire"), 1001)
