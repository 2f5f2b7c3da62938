"""Rows of a table by their numbers."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn


@pytest.mark.parametrize("norm_type", [1.0, 2.0, float("inf")])
def test_rows_that_are_asked_for_are_shortened_to_the_greatest_norm(norm_type: float) -> None:
    table = nn.Embedding(5, 3, max_norm=0.7, norm_type=norm_type)
    with torch.no_grad():
        table.weight.copy_(torch.linspace(-0.5, 2, 15).reshape(5, 3))
    here = copy.deepcopy(table).to("fusewire")
    indices = torch.tensor([[4, 0], [4, 2]])
    torch.testing.assert_close(here(indices.to("fusewire")).cpu(), table(indices))
    torch.testing.assert_close(here.weight.cpu(), table.weight)
