"""Encoder layers and attention evaluate as on the CPU, where PyTorch calls one op for a whole layer."""

from __future__ import annotations

import pytest
import torch
from torch import nn

_BATCH, _LENGTH, _WIDTH, _HEADS = 3, 5, 16, 2
_ATOL = 1e-5


def _masks() -> dict[str, dict[str, torch.Tensor]]:
    padding = torch.zeros(_BATCH, _LENGTH, dtype=torch.bool)
    padding[1, 3:] = True
    return {
        "none": {},
        "padding": {"src_key_padding_mask": padding},
        "causal": {"mask": torch.triu(torch.ones(_LENGTH, _LENGTH, dtype=torch.bool), 1)},
    }


@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("name", _masks())
@pytest.mark.filterwarnings("ignore")
def test_an_encoder_evaluates_as_on_the_cpu(name: str, norm_first: bool) -> None:
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(_WIDTH, _HEADS, 32, batch_first=True, norm_first=norm_first, activation="gelu")
    encoder, x, mask = nn.TransformerEncoder(layer, 2).eval(), torch.randn(_BATCH, _LENGTH, _WIDTH), _masks()[name]
    with torch.no_grad():
        expected = encoder(x, **mask)
        moved = {key: value.to("fusewire") for key, value in mask.items()}
        found = encoder.to("fusewire")(x.to("fusewire"), **moved).cpu()
    counts = ~mask.get("src_key_padding_mask", torch.zeros(_BATCH, _LENGTH, dtype=torch.bool))
    torch.testing.assert_close(found[counts], expected[counts], rtol=0, atol=_ATOL)


def test_attention_returns_its_weights() -> None:
    attention, x = nn.MultiheadAttention(_WIDTH, _HEADS, batch_first=True).eval(), torch.randn(_BATCH, _LENGTH, _WIDTH)
    with torch.no_grad():
        expected = attention(x, x, x)
        found = attention.to("fusewire")(*[x.to("fusewire")] * 3)
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one.cpu(), other, rtol=0, atol=_ATOL)
