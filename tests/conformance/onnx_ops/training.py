"""Steps of training. All tensors come first, then all gradients, and then what is kept of each tensor."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fusewire as fw


def _of_each(step: Callable[..., tuple[Any, ...]], parts: int) -> Callable[..., Any]:
    """Returns an entry whose inputs are a rate, the number of updates, and `parts` of each tensor in turn."""

    def entry(rate: Any, updates: Any, *given: Any, **options: Any) -> Any:
        count = len(given) // parts
        each = [step(rate, updates, *given[i::count], **options) for i in range(count)]
        return tuple([results[part] for part in range(len(each[0])) for results in each])

    return entry


def _adagrad(
    rate: Any,
    updates: Any,
    x: Any,
    g: Any,
    h: Any,
    *,
    decay_factor: float = 0.0,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
) -> tuple[Any, ...]:
    """J. Duchi, E. Hazan, Y. Singer, Adaptive subgradient methods (2011)."""
    g = norm_coefficient * x + g
    h = h + g * g
    return (x - rate / (1 + updates * decay_factor) * g / (fw.sqrt(h) + epsilon)).astype(x.dtype), h


def _adam(
    rate: Any,
    updates: Any,
    x: Any,
    g: Any,
    v: Any,
    h: Any,
    *,
    alpha: float = 0.9,
    beta: float = 0.999,
    epsilon: float = 1e-6,
    norm_coefficient: float = 0.0,
    norm_coefficient_post: float = 0.0,
) -> tuple[Any, ...]:
    """D. Kingma, J. Ba, Adam (2014)."""
    g = norm_coefficient * x + g
    v, h = alpha * v + (1 - alpha) * g, beta * h + (1 - beta) * g * g
    rate = fw.where(updates > 0, rate * fw.sqrt(1 - beta**updates) / (1 - alpha**updates), rate)
    moved = x - rate * v / (fw.sqrt(h) + epsilon)
    return ((1 - norm_coefficient_post) * moved).astype(x.dtype), v, h


def _momentum(
    rate: Any, updates: Any, x: Any, g: Any, v: Any, *, alpha: float, beta: float, mode: str, norm_coefficient: float
) -> tuple[Any, ...]:
    g = norm_coefficient * x + g
    v = alpha * v + fw.where(updates > 0, beta, 1.0).astype(x.dtype) * g
    return (x - rate * (g + alpha * v if mode == "nesterov" else v)).astype(x.dtype), v


OPS: dict[str, Callable[..., Any]] = {
    "Adagrad": _of_each(_adagrad, 3),
    "Adam": _of_each(_adam, 4),
    "Momentum": _of_each(_momentum, 3),
}
