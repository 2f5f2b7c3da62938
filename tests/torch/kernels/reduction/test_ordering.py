"""Ops that order elements."""

from __future__ import annotations

import pytest
import torch


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_the_different_parts_along_an_axis_are_those_of_the_cpu(dim: int) -> None:
    x = torch.tensor([[1, 2, 1], [1, 2, 1], [0, 3, 0]])
    expected, found = (
        torch.unique(each, dim=dim, return_inverse=True, return_counts=True) for each in (x, x.to("fusewire"))
    )
    assert [each.tolist() for each in found] == [each.tolist() for each in expected]
