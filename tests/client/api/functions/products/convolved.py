"""Convolutions in NumPy, from their definition: one place of the kernel after another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

Host = npt.NDArray[Any]


class Parameters(NamedTuple):
    """Those of a convolution, one entry for each spatial axis."""

    strides: Sequence[int]
    padding: Sequence[tuple[int, int]]
    dilation: Sequence[int]
    groups: int = 1


def conv(x: Host, w: Host, given: Parameters) -> Host:
    """As `fw.conv`."""
    around = np.pad(x, [(0, 0), (0, 0), *given.padding])
    spans = [(extent - 1) * step + 1 for extent, step in zip(w.shape[2:], given.dilation, strict=True)]
    lengths = [
        (dim - span) // stride + 1 for dim, span, stride in zip(around.shape[2:], spans, given.strides, strict=True)
    ]
    result = np.zeros((x.shape[0], w.shape[0], *lengths), np.result_type(x, w))
    for place, key in _places(w.shape[2:], lengths, given):
        for outputs, channels in _groups(w.shape[0], x.shape[1], given.groups):
            kernels = np.moveaxis(w[outputs], (0, 1), (-2, -1))[place]
            parts = np.einsum("nc...,oc->no...", around[:, channels, *key], kernels)
            result[:, outputs] += parts
    return result


def conv_transpose(x: Host, w: Host, given: Parameters, output_padding: Sequence[int]) -> Host:
    """As `fw.conv_transpose`."""
    lengths = [
        (dim - 1) * stride + (extent - 1) * step + 1 + more
        for dim, stride, extent, step, more in zip(
            x.shape[2:], given.strides, w.shape[2:], given.dilation, output_padding, strict=True
        )
    ]
    outputs = w.shape[1] * given.groups
    result = np.zeros((x.shape[0], outputs, *lengths), np.result_type(x, w))
    for place, key in _places(w.shape[2:], x.shape[2:], given):
        for written, channels in _groups(outputs, x.shape[1], given.groups):
            kernels = np.moveaxis(w[channels], (0, 1), (-2, -1))[place]
            parts = np.einsum("nc...,co->no...", x[:, channels], kernels)
            result[:, written, *key] += parts
    kept = [slice(ahead, length - behind) for (ahead, behind), length in zip(given.padding, lengths, strict=True)]
    return result[:, :, *kept]


def _places(
    window: Sequence[int], lengths: Sequence[int], given: Parameters
) -> Iterator[tuple[tuple[int, ...], list[slice]]]:
    """Yields each place of a window, and the elements that all windows have there."""
    for place in np.ndindex(*window):
        each = zip(place, given.dilation, given.strides, lengths, strict=True)
        yield place, [slice(k * step, k * step + (n - 1) * stride + 1, stride) for k, step, stride, n in each]


def _groups(outputs: int, channels: int, groups: int) -> Iterator[tuple[slice, slice]]:
    of_each, seen = outputs // groups, channels // groups
    for group in range(groups):
        yield slice(group * of_each, (group + 1) * of_each), slice(group * seen, (group + 1) * seen)
