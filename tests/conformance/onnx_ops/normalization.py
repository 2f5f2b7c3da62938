"""Normalizations, by all elements, by channels, by groups of them and by neighbours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fusewire as fw


def _by_channel(x: Any, values: Any) -> Any:
    return values.reshape(-1, *[1] * (x.ndim - 2))


def _whitened(x: Any, axes: tuple[int, ...], epsilon: float) -> Any:
    return (x - x.mean(axes, keepdims=True)) * fw.rsqrt(x.var(axes, keepdims=True) + epsilon)


def _instance(x: Any, scale: Any, bias: Any, *, epsilon: float = 1e-5) -> Any:
    return _whitened(x, tuple(range(2, x.ndim)), epsilon) * _by_channel(x, scale) + _by_channel(x, bias)


def _group(x: Any, scale: Any, bias: Any, *, num_groups: int, epsilon: float = 1e-5, stash_type: int = 1) -> Any:
    grouped = x.reshape(x.shape[0], num_groups, -1)
    return _whitened(grouped, (2,), epsilon).reshape(x.shape) * _by_channel(x, scale) + _by_channel(x, bias)


def _root_mean_square(x: Any, scale: Any, *, axis: int = -1, epsilon: float = 1e-5, stash_type: int = 1) -> Any:
    axes = tuple(range(axis % x.ndim, x.ndim))
    return x * fw.rsqrt((x * x).mean(axes, keepdims=True) + epsilon) * scale


def _norm(x: Any, *, axis: int = -1, p: int = 2) -> Any:
    """A norm of zero divides nothing."""
    lengths = fw.abs(x).sum(axis, keepdims=True) if p == 1 else fw.sqrt((x * x).sum(axis, keepdims=True))
    return x / fw.where(lengths == 0, 1, lengths)


def _mean_and_variance(x: Any, *, axes: Any = (0, 2, 3)) -> Any:
    return _whitened(x, tuple(axes), 1e-9)


def _local_response(x: Any, *, size: int, alpha: float = 1e-4, beta: float = 0.75, bias: float = 1.0) -> Any:
    widths = [((size - 1) // 2, size // 2) if axis == 1 else (0, 0) for axis in range(x.ndim)]
    squares = fw.pad(x * x, widths)
    total = sum(squares[:, i : i + x.shape[1]] for i in range(size))
    return x / (bias + alpha / size * total) ** beta


OPS: dict[str, Callable[..., Any]] = {
    "GroupNormalization": _group,
    "InstanceNormalization": _instance,
    "LRN": _local_response,
    "LpNormalization": _norm,
    "MeanVarianceNormalization": _mean_and_variance,
    "RMSNormalization": _root_mean_square,
}
