"""Nodes that read or write at places that arrays say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import fusewire as fw
from tests.conformance.onnx_ops.arguments import ints

_METHODS = {"none": "set", "add": "add", "mul": "multiply", "max": "max", "min": "min"}


def _placed(x: Any, key: Any, updates: Any, reduction: str) -> Any:
    return getattr(x.at[key], _METHODS[reduction])(updates)


def _along(shape: tuple[int, ...], count: int) -> list[Any]:
    """Returns the places along each of the first axes of an array of this shape."""
    return [fw.arange(shape[i]).reshape(-1, *[1] * (len(shape) - i - 1)) for i in range(count)]


def _scattered_elements(x: Any, indices: Any, updates: Any, *, axis: int = 0, reduction: str = "none") -> Any:
    key = _along(indices.shape, x.ndim)
    key[axis] = indices
    return _placed(x, tuple(key), updates, reduction)


def _key(indices: Any) -> tuple[Any, ...]:
    return tuple(indices[..., i] for i in range(indices.shape[-1]))


def _scattered(x: Any, indices: Any, updates: Any, *, reduction: str = "none") -> Any:
    return _placed(x, _key(indices), updates, reduction)


def _gathered(x: Any, indices: Any, *, batch_dims: int = 0) -> Any:
    return x[(*_along(indices.shape[:-1], batch_dims), *_key(indices))]


def _scattered_into_cache(cache: Any, update: Any, starts: Any = None, *, axis: int = -2, mode: str = "linear") -> Any:
    """`starts` has a place along `axis` for each index along the first one."""
    axis %= cache.ndim
    key = _along(update.shape, cache.ndim)
    if starts is not None:
        key[axis] = key[axis] + starts.reshape(-1, *[1] * (cache.ndim - 1))
    key[axis] = key[axis] % cache.shape[axis] if mode == "circular" else key[axis]
    return cache.at[tuple(key)].set(update)


def _compressed(x: Any, condition: Any, *, axis: int | None = None) -> Any:
    return fw.compress(condition, x, axis=axis)


def _unique(x: Any, *, axis: int | None = None, sorted: int = 1) -> Any:  # noqa: A002  # ONNX's name
    values, indices, inverse, counts = fw.unique(x, True, True, True, axis, equal_nan=False)  # NumPy's
    inverse = inverse.reshape(-1)
    if sorted:
        return values, indices, inverse, counts
    order = fw.argsort(indices)
    values = fw.take(values, order, axis=0 if axis is None else axis)
    return values, fw.take(indices, order), fw.take(fw.argsort(order), inverse), fw.take(counts, order)


def _reversed(x: Any, lengths: Any, *, batch_axis: int = 1, time_axis: int = 0) -> Any:
    """Each sequence of a batch is reversed up to its own length."""
    shape = [1] * x.ndim
    shape[batch_axis] = x.shape[batch_axis]
    ends = lengths.reshape(shape)
    shape[batch_axis], shape[time_axis] = 1, x.shape[time_axis]
    times = fw.arange(x.shape[time_axis]).reshape(shape)
    places = fw.where(times < ends, ends - 1 - times, times)
    return fw.take_along_axis(x, fw.broadcast_to(places, x.shape), axis=time_axis)


def _hard_max(x: Any, *, axis: int = -1) -> Any:
    places = fw.argmax(x, axis=axis, keepdims=True)
    shape = [x.shape[axis] if i == axis % x.ndim else 1 for i in range(x.ndim)]
    return (fw.arange(x.shape[axis]).reshape(shape) == places).astype(x.dtype)


OPS: dict[str, Callable[..., Any]] = {
    "ArrayFeatureExtractor": lambda x, indices: fw.take(x, fw.asarray(np.array(ints(indices))), axis=-1),
    "Compress": _compressed,
    "GatherND": _gathered,
    "Hardmax": _hard_max,
    "NonZero": lambda x: fw.stack(fw.nonzero(x)),
    "ReverseSequence": _reversed,
    "Scatter": _scattered_elements,
    "ScatterElements": _scattered_elements,
    "ScatterND": _scattered,
    "TensorScatter": _scattered_into_cache,
    "Unique": _unique,
}
