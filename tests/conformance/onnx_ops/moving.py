"""Nodes that move elements, and make arrays from a few numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import fusewire as fw
from tests.conformance.onnx_ops.arguments import dtype_of, ints

_FLOAT = 1  # ONNX's number of float32


def _space_to_depth(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    n, channels, height, width = x.shape
    blocks = x.reshape(n, channels, height // blocksize, blocksize, width // blocksize, blocksize)
    order = (0, 3, 5, 1, 2, 4) if mode == "DCR" else (0, 1, 3, 5, 2, 4)
    return blocks.transpose(order).reshape(n, channels * blocksize**2, height // blocksize, width // blocksize)


def _depth_to_space(x: Any, *, blocksize: int, mode: str = "DCR") -> Any:
    n, channels, height, width = x.shape
    kept = channels // blocksize**2
    shape = (blocksize, blocksize, kept) if mode == "DCR" else (kept, blocksize, blocksize)
    order = (0, 3, 4, 1, 5, 2) if mode == "DCR" else (0, 1, 4, 2, 5, 3)
    blocks = x.reshape(n, *shape, height, width).transpose(order)
    return blocks.reshape(n, kept, height * blocksize, width * blocksize)


def _center(x: Any, shape: Any, *, axes: Any = None) -> Any:
    """Each axis is cut, or filled up with zeros, at both ends alike; the odd one is at the last end."""
    key, widths = [slice(None)] * x.ndim, [(0, 0)] * x.ndim
    for axis, size in zip(range(x.ndim) if axes is None else axes, ints(shape), strict=True):
        surplus = x.shape[axis] - size
        first = abs(surplus) // 2
        if surplus >= 0:
            key[axis] = slice(first, first + size)
        else:
            widths[axis] = (first, -surplus - first)
    return fw.pad(x[tuple(key)], widths)


def _cosines(*coefficients: float) -> Callable[..., Any]:
    """Returns a window that is a sum of cosines with these coefficients."""

    def entry(size: Any, *, output_datatype: int = _FLOAT, periodic: int = 1) -> Any:
        count = ints(size)[0]
        angles = fw.arange(count, dtype="float64") * (2 * math.pi / (count if periodic else count - 1))
        total: Any = sum(each * fw.cos(i * angles) for i, each in enumerate(coefficients))
        return total.astype(dtype_of(output_datatype))

    return entry


def _affine_grid(theta: Any, size: Any, *, align_corners: int = 0) -> Any:
    """The last axis of the grid has the coordinates, those along the last axis of the image first."""
    lengths: Sequence[int] = ints(size)[2:]
    ends = [1.0 if align_corners else 1 - 1 / length for length in lengths]
    axes = [np.linspace(-end, end, length) for end, length in zip(ends, lengths, strict=True)]
    grids = [*np.meshgrid(*axes, indexing="ij")][::-1]
    points = np.stack([*grids, np.ones_like(grids[0])], -1).reshape(-1, len(lengths) + 1)
    placed = fw.asarray(points.astype(np.float32)) @ theta.astype("float32").mT
    return placed.reshape(theta.shape[0], *lengths, len(lengths)).astype(theta.dtype)


def _upsampled(x: Any, scales: Any, *, mode: str = "nearest") -> Any:
    assert mode == "nearest"
    for axis, times in enumerate(ints(scales)):
        x = fw.repeat(x, times, axis=axis)
    return x


OPS: dict[str, Callable[..., Any]] = {
    "AffineGrid": _affine_grid,
    "Binarizer": lambda x, *, threshold=0.0: (x > threshold).astype(x.dtype),
    "BlackmanWindow": _cosines(0.42, -0.5, 0.08),
    "CenterCropPad": _center,
    "DepthToSpace": _depth_to_space,
    "HammingWindow": _cosines(25 / 46, -21 / 46),
    "HannWindow": _cosines(0.5, -0.5),
    "SpaceToDepth": _space_to_depth,
    "Upsample": _upsampled,
}
