"""Fractional max pools: the greatest element of windows whose steps a random number varies (Graham, 2014)."""

from __future__ import annotations

from math import prod
from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.value("fractional_max_pool2d")
def _pool_2d(x: torch.Tensor, kernel_size: Any, output_size: Any, random_samples: torch.Tensor) -> tuple[Array, Array]:
    """Returns what `_pooled` does. PyTorch has the random numbers of the last axis first."""
    return _pooled(x, _pair(kernel_size), _pair(output_size), fw.flip(array_of(random_samples), axis=-1))


@TABLE.value("fractional_max_pool3d")
def _pool_3d(x: torch.Tensor, kernel_size: Any, output_size: Any, random_samples: torch.Tensor) -> tuple[Array, Array]:
    return _pooled(x, tuple(kernel_size), tuple(output_size), array_of(random_samples))


def _pair(numbers: Any) -> tuple[int, ...]:
    return tuple(numbers) * 2 if len(numbers) == 1 else tuple(numbers)


def _pooled(x: torch.Tensor, extents: tuple[int, ...], counts: tuple[int, ...], drawn: Array) -> tuple[Array, Array]:
    """Returns the greatest elements, and their places among those of the spatial axes of `x`.

    `drawn` is [batch, channels, rank], numbers in [0, 1).
    """
    array, rank = array_of(x), len(extents)
    lengths = array.shape[-rank:]
    _check(lengths, extents, counts)
    planes = drawn.reshape(-1, rank)[: prod(array.shape[:-rank])]  # of no batch, those of the first example
    place: Any = None
    for axis, (length, extent, count) in enumerate(zip(lengths, extents, counts, strict=True)):
        starts = _starts(planes[:, axis : axis + 1], length, extent, count)  # [planes, count]
        seen = fw.expand_dims(starts, -1) + fw.arange(extent, device=array.session)
        around = [(1, 1)] * axis + [(count, extent)] + [(1, 1)] * (rank - axis - 1)
        windows, inside = zip(*around, strict=True)
        seen = seen.reshape((-1, *windows, *inside))
        place = seen if place is None else place * length + seen
    windows = (planes.shape[0], *counts, *extents)
    place = fw.broadcast_to(place, windows).reshape((planes.shape[0], prod(counts) * prod(extents)))
    elements = fw.take_along_axis(array.reshape(-1, prod(lengths)), place, axis=1)
    rows = (planes.shape[0], prod(counts), prod(extents))
    best = fw.argmax(elements.reshape(rows), axis=2, keepdims=True)
    shape = (*array.shape[:-rank], *counts)
    greatest = fw.take_along_axis(elements.reshape(rows), best, axis=2)
    return greatest.reshape(shape), fw.take_along_axis(place.reshape(rows), best, axis=2).reshape(shape)


def _check(lengths: tuple[int, ...], extents: tuple[int, ...], counts: tuple[int, ...]) -> None:
    for length, extent, count in zip(lengths, extents, counts, strict=True):
        if count + extent - 1 > length:
            raise RuntimeError(
                f"fractional_max_pool(): pool size {extent} is too large relative to the length {length}, of which "
                f"{count} windows are wanted"
            )


def _starts(drawn: Array, length: int, extent: int, count: int) -> Array:
    """Returns where each plane's windows begin; the last one ends at the end."""
    last = fw.full((drawn.shape[0], 1), length - extent, "int64", device=drawn.session)
    if count == 1:
        return last
    step = (length - extent) / (count - 1)
    begins = fw.floor((fw.arange(count - 1, device=drawn.session).astype(drawn.dtype) + drawn) * step)
    return fw.concat([(begins - fw.floor(drawn * step)).astype("int64"), last], axis=1)


@TABLE.value("fractional_max_pool2d_backward", "fractional_max_pool3d_backward")
def _pool_backward(
    grad: torch.Tensor, x: torch.Tensor, kernel_size: Any, output_size: Any, indices: torch.Tensor
) -> Array:
    given, rank = array_of(grad), len(output_size) if len(output_size) > 1 else 2
    planes, size = prod(x.shape[:-rank]), prod(x.shape[-rank:])
    rows = fw.arange(planes, device=given.session).reshape(-1, 1)
    nothing = fw.zeros((planes, size), given.dtype, device=given.session)
    summed = nothing.at[rows, array_of(indices).reshape(planes, -1)].add(given.reshape(planes, -1))
    return summed.reshape(tuple(x.shape))
