"""Losses of classes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fusewire as fw


def _negative_log_likelihood(
    x: Any, target: Any, weight: Any = None, *, reduction: str = "mean", ignore_index: int | None = None
) -> Any:
    """The classes lie along axis 1 of `x`."""
    counts = fw.ones(target.shape, dtype=bool) if ignore_index is None else target != ignore_index
    index = fw.where(counts, target, 0).astype("int64")
    weights = counts.astype(x.dtype) if weight is None else fw.take(weight, index) * counts
    chosen = fw.squeeze(fw.take_along_axis(x, fw.expand_dims(index, axis=1), axis=1), 1)
    losses = -chosen * weights
    if reduction == "none":
        return losses
    return losses.sum() if reduction == "sum" else losses.sum() / weights.sum()


def _cross_entropy(x: Any, target: Any, weight: Any = None, **options: Any) -> Any:
    logarithms = fw.log_softmax(x, axis=1)
    return _negative_log_likelihood(logarithms, target, weight, **options), logarithms


OPS: dict[str, Callable[..., Any]] = {
    "NegativeLogLikelihoodLoss": _negative_log_likelihood,
    "SoftmaxCrossEntropyLoss": _cross_entropy,
}
