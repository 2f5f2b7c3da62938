"""Images sampled at the places that a grid names, as `torch.nn.functional.grid_sample` does it, and the gradients."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from math import prod
from typing import Any, NamedTuple

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.kernels.images.resampling import cubic_weight
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()

_NEAREST, _CUBIC = 1, 2  # how PyTorch numbers the modes of interpolation; 0 is linear
_ZEROS, _BORDER = 0, 1  # and what lies beyond the borders; 2 is what is reflected


@TABLE.value("grid_sampler_3d")
def _sampled_volumes(
    x: torch.Tensor, grid: torch.Tensor, interpolation_mode: int, padding_mode: int, align_corners: bool
) -> Array:
    return _sampler(interpolation_mode, padding_mode, align_corners)(array_of(x), array_of(grid))


@TABLE.value("grid_sampler_2d_backward", "grid_sampler_3d_backward")
def _sampled_backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    grid: torch.Tensor,
    interpolation_mode: int,
    padding_mode: int,
    align_corners: bool,
    output_mask: Any,
) -> tuple[Array | None, Array | None]:
    sample = _sampler(interpolation_mode, padding_mode, align_corners)
    _, back = fw.vjp(sample, array_of(x), array_of(grid))
    to_x, to_grid = back(array_of(grad))
    return to_x if output_mask[0] else None, to_grid


def _sampler(interpolation: int, padding: int, align_corners: bool) -> Callable[[Array, Array], Array]:
    """Returns the function of x, [batch, channels, *lengths], and a grid, [batch, *places, rank], in -1 to 1."""
    how = _How(interpolation, padding, align_corners)

    def sample(x: Array, grid: Array) -> Array:
        lengths = x.shape[2:]
        rank = len(lengths)
        axes = [
            _taps(_source(grid[..., rank - 1 - axis], length, align_corners), length, how)
            for axis, length in enumerate(lengths)
        ]
        flat = x.reshape((*x.shape[:2], prod(lengths)))
        total: Any = 0.0
        for corner in product(*axes):
            total = total + _gathered(flat, corner, lengths)
        return fw.asarray(total).reshape((*x.shape[:2], *grid.shape[1:-1]))

    return sample


class _How(NamedTuple):
    """What the parameters of an op say."""

    interpolation: int
    padding: int
    align_corners: bool


def _taps(source: Array, length: int, how: _How) -> list[tuple[Array, Any]]:
    """Returns the elements of an axis that count for each place, and their weights."""
    if how.interpolation == _CUBIC:  # elements beyond the borders are found one by one
        low = fw.floor(source)
        part = source - low
        return [(_inside(low + tap, length, how), cubic_weight(fw.abs(part - tap))) for tap in (-1, 0, 1, 2)]
    source = _inside(source, length, how)
    if how.interpolation == _NEAREST:
        return [(fw.round(source), 1.0)]
    low = fw.floor(source)
    part = source - low
    return [(low, 1 - part), (low + 1, part)]


def _gathered(flat: Array, corner: tuple[tuple[Array, Any], ...], lengths: tuple[int, ...]) -> Array:
    """Returns the elements at one corner of all places times their weights; beyond the borders they are 0."""
    place, weight = None, None
    for (number, share), length in zip(corner, lengths, strict=True):
        is_inside = fw.logical_and(number >= 0, number <= length - 1).astype(flat.dtype)
        index = fw.clip(number, 0, length - 1).astype("int64")
        place = index if place is None else place * length + index
        weight = is_inside * share if weight is None else weight * (is_inside * share)
    assert place is not None
    assert weight is not None
    count = prod(place.shape[1:])
    at = fw.broadcast_to(place.reshape((flat.shape[0], 1, count)), (*flat.shape[:2], count))
    elements: Array = fw.take_along_axis(flat, at, axis=2)
    shares: Array = weight.reshape((flat.shape[0], 1, count))
    return elements * shares


def _source(coordinate: Array, length: int, align_corners: bool) -> Array:
    """Returns where among the elements of an axis a coordinate of the grid lies."""
    return (coordinate + 1) / 2 * (length - 1) if align_corners else ((coordinate + 1) * length - 1) / 2


def _inside(where: Array, length: int, how: _How) -> Array:
    """Returns places brought between the borders, unless elements beyond them count as zeros."""
    if how.padding == _ZEROS:
        return where
    if how.padding != _BORDER:
        low, span = (0.0, length - 1) if how.align_corners else (-0.5, length)
        where = _reflected(where, low, float(span))
    return fw.clip(where, 0, length - 1)


def _reflected(where: Array, low: float, span: float) -> Array:
    """Returns places brought between `low` and `low + span` by reflections at both."""
    if not span:
        return where * 0
    distance = fw.abs(where - low)
    flips = fw.floor(distance / span)
    extra = distance - flips * span
    return fw.where(flips % 2 == 0, extra + low, span - extra + low)
