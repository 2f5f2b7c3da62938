"""Four small nets of PyTorch with their data, as the training figures take them. Imported where PyTorch is."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.nn import functional

_SEED = 0
_RATE = 1e-3
_CLASSES = 4
_TOKENS, _WIDTH, _HEADS = 50, 64, 4


class Training(NamedTuple):
    """A net with its data and optimizer on a device."""

    net: nn.Module
    x: torch.Tensor
    y: torch.Tensor
    optimizer: torch.optim.Optimizer

    def step(self) -> torch.Tensor:
        """Trains by all data once, and returns the loss."""
        loss = functional.cross_entropy(self.net(self.x), self.y)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        return loss.detach()


class _Lstm(nn.Module):  # type: ignore[misc]  # PyTorch's types are not seen
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.LSTM(16, 32, batch_first=True)
        self.head = nn.Linear(32, _CLASSES)

    def forward(self, x: torch.Tensor) -> Any:
        return self.head(self.layer(x)[0][:, -1])


class _GptBlock(nn.Module):  # type: ignore[misc]  # likewise
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(_TOKENS, _WIDTH)
        self.norm = nn.LayerNorm(_WIDTH)
        self.projection = nn.Linear(_WIDTH, 3 * _WIDTH)
        self.mlp = nn.Sequential(nn.Linear(_WIDTH, 4 * _WIDTH), nn.GELU(), nn.Linear(4 * _WIDTH, _WIDTH))
        self.head = nn.Linear(_WIDTH, _TOKENS)

    def forward(self, tokens: torch.Tensor) -> Any:
        hidden = self.norm(self.embedding(tokens))
        batch, length, width = hidden.shape
        parts = self.projection(hidden).view(batch, length, 3, _HEADS, width // _HEADS)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        mixed = functional.scaled_dot_product_attention(query, key, value, is_causal=True)
        hidden = mixed.transpose(1, 2).reshape(batch, length, width) + hidden
        return self.head(self.mlp(hidden) + hidden).flatten(0, 1)


def _mlp() -> nn.Module:
    return nn.Sequential(nn.Linear(16, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, _CLASSES))


def cnn() -> nn.Module:
    """Returns a small network of convolutions for images [batch, 3, height, width]."""
    return nn.Sequential(
        nn.Conv2d(3, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(8, 8, 3),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(8, _CLASSES),
    )


def _classes(count: int) -> torch.Tensor:
    return torch.randint(0, _CLASSES, (count,))


def _tokens(*shape: int) -> torch.Tensor:
    return torch.randint(0, _TOKENS, shape)


_NETS: Mapping[str, tuple[Callable[[], nn.Module], Callable[[], tuple[torch.Tensor, torch.Tensor]]]] = {
    "mlp": (_mlp, lambda: (torch.randn(64, 16), _classes(64))),
    "gpt": (_GptBlock, lambda: (_tokens(4, 32), _tokens(4 * 32))),
    "cnn": (cnn, lambda: (torch.randn(4, 3, 16, 16), _classes(4))),
    "lstm": (_Lstm, lambda: (torch.randn(8, 5, 16), _classes(8))),
}


def training(name: str, device: str, **options: Any) -> Training:
    """Returns a net on a device, drawn from one seed on the CPU. `options` are more ones of its Adam."""
    torch.manual_seed(_SEED)
    make, draw = _NETS[name]
    net, (x, y) = make(), draw()
    net = net.to(device)
    return Training(net, x.to(device), y.to(device), torch.optim.Adam(net.parameters(), lr=_RATE, **options))
