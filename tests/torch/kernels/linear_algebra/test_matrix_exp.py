"""Exponentials of matrices are as exact as the CPU's."""

from __future__ import annotations

import pytest
import torch

_ROUNDINGS = {torch.float32: 1e-5, torch.float64: 1e-13}


@pytest.mark.parametrize("dtype", _ROUNDINGS)
@pytest.mark.parametrize("scale", [0.0, 1e-3, 1.0, 5.0, -5.0])
def test_the_exponential_is_that_of_float64(scale: float, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    matrices = (torch.rand(7, 4, 4, dtype=torch.float64) * scale).to(dtype)
    expected = torch.matrix_exp(matrices.double())
    found = torch.matrix_exp(matrices.to("fusewire")).cpu().double()
    greatest = expected.abs().amax((-2, -1), keepdim=True)
    assert float(((found - expected) / greatest).abs().max()) < _ROUNDINGS[dtype]


def test_the_exponential_of_a_skew_matrix_of_great_norm_is_a_rotation() -> None:
    angle = 1000.0
    matrix = torch.tensor([[0.0, -angle], [angle, 0.0]], dtype=torch.float64, device="fusewire")
    found = torch.matrix_exp(matrix).cpu()
    wanted = torch.tensor(angle, dtype=torch.float64)
    torch.testing.assert_close(found[:, 0], torch.stack([wanted.cos(), wanted.sin()]), rtol=0, atol=1e-9)


def test_a_matrix_that_is_not_square_is_refused() -> None:
    with pytest.raises(RuntimeError, match="square"):
        torch.matrix_exp(torch.ones(2, 3, device="fusewire"))
