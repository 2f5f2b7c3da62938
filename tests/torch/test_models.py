"""Models that other packages define train as on the CPU. Without these packages their tests are skipped."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn
from torch.nn import functional

import fusewire.torch

STEPS = 5
TOLERANCE = 1e-4
_TOKENS, _LENGTH, _BATCH = 61, 12, 3

Loss = Callable[[nn.Module, torch.Tensor], torch.Tensor]


def _bert() -> tuple[nn.Module, Loss, torch.Tensor]:
    """A masked language model: it predicts each token of a sequence."""
    transformers = pytest.importorskip("transformers")
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 64}
    model = transformers.BertForMaskedLM(transformers.BertConfig(vocab_size=_TOKENS, **sizes, **_without_dropout()))

    def loss(model: nn.Module, tokens: torch.Tensor) -> Any:
        # With four axes: of a mask with two the package reads whether it is true everywhere, which no replay would do.
        mask = torch.ones(_BATCH, 1, _LENGTH, _LENGTH, dtype=torch.bool, device=tokens.device)
        mask[0, ..., _LENGTH // 2 :] = False
        return model(input_ids=tokens, attention_mask=mask, labels=tokens).loss

    return model, loss, torch.randint(0, _TOKENS, (_BATCH, _LENGTH))


def _without_dropout() -> dict[str, float]:
    return {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}


def _gpt2() -> tuple[nn.Module, Loss, torch.Tensor]:
    """A causal language model: it predicts the next token."""
    transformers = pytest.importorskip("transformers")
    sizes = {"n_embd": 32, "n_layer": 2, "n_head": 4, "n_positions": 32}
    still = {"resid_pdrop": 0.0, "embd_pdrop": 0.0, "attn_pdrop": 0.0}
    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(vocab_size=_TOKENS, **sizes, **still))
    return model, lambda model, tokens: model(tokens, labels=tokens).loss, torch.randint(0, _TOKENS, (_BATCH, _LENGTH))


def _resnet() -> tuple[nn.Module, Loss, torch.Tensor]:
    """A classifier of images."""
    models = pytest.importorskip("torchvision.models")

    def loss(model: nn.Module, images: torch.Tensor) -> Any:
        return functional.cross_entropy(model(images), torch.arange(2, device=images.device))

    return models.resnet18(num_classes=4), loss, torch.randn(2, 3, 64, 64)


_MODELS = {"bert": _bert, "gpt2": _gpt2, "resnet18": _resnet}


def _losses(case: tuple[nn.Module, Loss, torch.Tensor], device: str, *, is_recorded: bool = False) -> list[float]:
    """Trains a copy of the model, and returns the loss of each step."""
    model, loss_of, data = case
    model, data = copy.deepcopy(model).to(device).train(), data.to(device)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-2, momentum=0.9)

    def train(data: torch.Tensor) -> torch.Tensor:
        optimizer.zero_grad()
        loss = loss_of(model, data)
        loss.backward()
        optimizer.step()
        return loss

    step = fusewire.torch.step(train) if is_recorded else train
    found = [step(data).detach() for _ in range(STEPS)]
    return [each.item() for each in found]


@pytest.mark.parametrize("is_recorded", [False, True])
@pytest.mark.parametrize("name", _MODELS)
@pytest.mark.filterwarnings("ignore")
def test_a_model_learns_with_the_losses_of_the_cpu(name: str, is_recorded: bool) -> None:
    torch.manual_seed(0)
    case = _MODELS[name]()
    expected = _losses(case, "cpu")
    assert _losses(case, "fusewire", is_recorded=is_recorded) == pytest.approx(expected, abs=TOLERANCE)
