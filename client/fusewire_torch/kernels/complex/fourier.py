"""Fourier transforms. PyTorch composes `torch.fft`, `stft` and `istft` of these three.

It numbers how a transform is scaled: 0 not at all, 1 by the root of the number of points, 2 by that number.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import prod, sqrt

import torch

from fusewire import Array
from fusewire._api.fourier.lines import Parts, joined, parts_of, real_lines, scaled, transformed, transformed_real
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.value("_fft_c2c")
def _of_complex(x: torch.Tensor, dim: Sequence[int], normalization: int, forward: bool) -> Array:
    factor = _factor(normalization, [x.shape[axis] for axis in dim])
    return joined(scaled(_along(parts_of(array_of(x)), x, dim, inverse=not forward), factor))


@TABLE.value("_fft_r2c")
def _of_real(x: torch.Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> Array:
    """Transforms real numbers, with `onesided` only at the frequencies of the last axis that are not negative."""
    factor = _factor(normalization, [x.shape[axis] for axis in dim])
    if not onesided:
        return joined(scaled(_along(parts_of(array_of(x)), x, dim, inverse=False), factor))
    *others, last = [axis % x.dim() for axis in dim]
    lines = transformed_real(array_of(x), last, x.shape[last])
    return joined(scaled(_along(lines, x, others, inverse=False), factor))


@TABLE.value("_fft_c2r")
def _to_real(x: torch.Tensor, dim: Sequence[int], normalization: int, last_dim_size: int) -> Array:
    """Transforms back to real numbers, of which there are `last_dim_size` along the last axis."""
    *others, last = [axis % x.dim() for axis in dim]
    factor = _factor(normalization, [*[x.shape[axis] for axis in others], last_dim_size])
    return real_lines(_along(parts_of(array_of(x)), x, others, inverse=True), last, last_dim_size, factor)


def _along(parts: Parts, x: torch.Tensor, dim: Sequence[int], *, inverse: bool) -> Parts:
    """Transforms along one axis after another, each of the length that it has."""
    for axis in dim:
        parts = transformed(parts, axis % x.dim(), x.shape[axis], inverse=inverse)
    return parts


def _factor(normalization: int, lengths: Sequence[int]) -> float:
    points = prod(lengths)
    return (1.0, 1 / sqrt(points), 1 / points)[normalization]
