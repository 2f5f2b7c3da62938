"""Nets that are trained on two devices with equal losses."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.nn import functional

from loadtests.workloads.nets import cnn


class Recurrent(nn.Module):  # type: ignore[misc]  # PyTorch's types are not seen
    """A classifier of sequences by the last state of a recurrent layer."""

    def __init__(self, kind: Callable[..., nn.Module]) -> None:
        super().__init__()
        self.layer = kind(16, 32, batch_first=True)
        self.head = nn.Linear(32, 4)

    def forward(self, x: torch.Tensor) -> Any:
        return self.head(self.layer(x)[0][:, -1])


class Attention(nn.Module):  # type: ignore[misc]  # likewise
    """A block of causal self-attention over tokens."""

    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(50, 32)
        self.norm = nn.LayerNorm(32)
        self.projection = nn.Linear(32, 96)
        self.head = nn.Linear(32, 50)

    def forward(self, tokens: torch.Tensor) -> Any:
        hidden = self.norm(self.embedding(tokens))
        query, key, value = self.projection(hidden).view(4, 5, 3, 4, 8).permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.head(mixed.transpose(1, 2).reshape(4, 5, 32) + hidden).flatten(0, 1)


@dataclass
class Case:
    """A net, its data, and its optimizer."""

    net: nn.Module
    x: torch.Tensor
    y: torch.Tensor
    optimizer: Callable[..., torch.optim.Optimizer] = torch.optim.Adam
    options: dict[str, Any] = field(default_factory=dict)


def _classes(count: int) -> torch.Tensor:
    return torch.randint(0, 4, (count,))


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 4))


def _encoder() -> nn.Module:
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, dropout=0.0)
    return nn.Sequential(nn.Embedding(50, 32), layer, nn.Linear(32, 50), nn.Flatten(0, 1))


def cases() -> dict[str, Case]:
    """Returns the nets by name. Equal at each call, because they are drawn from a seed."""
    torch.manual_seed(0)
    rows, sequences = (torch.randn(8, 16), _classes(8)), (torch.randn(8, 5, 16), _classes(8))
    images, tokens = (
        (torch.randn(4, 3, 16, 16), _classes(4)),
        (torch.randint(0, 50, (4, 5)), torch.randint(0, 50, (20,))),
    )
    return {
        "mlp_adam": Case(_mlp(), *rows),
        "mlp_sgd": Case(_mlp(), *rows, torch.optim.SGD, {"momentum": 0.9}),
        "mlp_adamw_one_by_one": Case(_mlp(), *rows, torch.optim.AdamW, {"foreach": False}),
        "rnn": Case(Recurrent(nn.RNN), *sequences),
        "lstm": Case(Recurrent(nn.LSTM), *sequences),
        "gru": Case(Recurrent(nn.GRU), *sequences),
        "cnn": Case(cnn(), *images),
        "encoder": Case(_encoder(), *tokens),
        "attention": Case(Attention(), *tokens),
    }


def losses(case: Case, device: str, steps: int) -> list[float]:
    """Trains a copy of the net, and returns the loss of each step."""
    net = copy.deepcopy(case.net).to(device)
    x, y = case.x.to(device), case.y.to(device)
    optimizer = case.optimizer(net.parameters(), lr=1e-2, **case.options)
    found = []
    for _ in range(steps):
        loss = functional.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        found.append(loss.detach())
    return [each.item() for each in found]
