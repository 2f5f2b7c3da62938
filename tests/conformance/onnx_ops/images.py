"""Nodes that sample images at places between elements."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

import fusewire as fw
from tests.conformance.onnx_ops.arguments import ints

_Weights = Callable[
    [Any], Any
]  # (distances from the element before a place, in (0, 1]) -> those of the elements around


def _resized(
    x: Any,
    roi: Any = None,
    scales: Any = None,
    sizes: Any = None,
    *,
    antialias: int = 0,
    axes: Any = None,
    coordinate_transformation_mode: str = "half_pixel",
    cubic_coeff_a: float = -0.75,
    exclude_outside: int = 0,
    extrapolation_value: float = 0.0,
    keep_aspect_ratio_policy: str = "stretch",
    mode: str = "nearest",
    nearest_mode: str = "round_prefer_floor",
) -> Any:
    """Each axis is resized by itself, in float64."""
    along = [axis % x.ndim for axis in (range(x.ndim) if axes is None else axes)]
    given = None if sizes is None or not sizes.size else ints(sizes)
    factors, lengths = _factors(x.shape, along, scales, given, keep_aspect_ratio_policy)
    whole = None if roi is None or not roi.size else np.asarray(roi).astype(float)
    result = x.astype("float64")
    for i, axis in enumerate(along):
        part = None if whole is None else (whole[i], whole[i + len(along)])
        if factors[i] == 1 and lengths[i] == x.shape[axis] and part in (None, (0.0, 1.0)):
            continue
        places = _places(coordinate_transformation_mode, x.shape[axis], lengths[i], factors[i], part)
        weights = _weights(mode, nearest_mode, cubic_coeff_a, factors[i] if antialias else 1.0)
        result = _interpolated(result, axis, places, weights, excludes=bool(exclude_outside))
        if coordinate_transformation_mode == "tf_crop_and_resize":
            shape = [-1 if each == axis else 1 for each in range(x.ndim)]
            is_outside = ((places < 0) | (places > x.shape[axis] - 1)).reshape(shape)
            result = fw.where(is_outside, extrapolation_value, result)
    if not x.dtype.is_floating:
        bounds = fw.iinfo(x.dtype)
        result = fw.clip(fw.round(result), bounds.min, bounds.max)
    return result.astype(x.dtype)


def _factors(
    shape: Sequence[int], axes: Sequence[int], scales: Any, sizes: Any, policy: str
) -> tuple[list[float], list[int]]:
    """Returns by what each axis is stretched, and its new length."""
    if sizes is None:
        factors = [float(each) for each in np.asarray(scales)]
        return factors, [int(factor * shape[axis]) for factor, axis in zip(factors, axes, strict=True)]
    factors = [size / shape[axis] for size, axis in zip(sizes, axes, strict=True)]
    if policy == "stretch":
        return factors, list(sizes)
    one = min(factors) if policy == "not_larger" else max(factors)
    return [one] * len(axes), [int(one * shape[axis] + 0.5) for axis in axes]


def _places(mode: str, length: int, count: int, factor: float, part: Any) -> Any:
    """Returns where the elements of a resized axis lie in the axis as it was."""
    numbers, stretched = fw.arange(count, dtype="float64"), factor * length
    if mode == "align_corners":
        return numbers * 0 if stretched == 1 else numbers * (length - 1) / (stretched - 1)
    if mode == "asymmetric":
        return numbers / factor
    if mode == "tf_crop_and_resize":
        first, last = part
        if stretched == 1:
            return numbers * 0 + (last - first) * (length - 1) / 2 + first * (length - 1)
        return numbers * (last - first) * (length - 1) / (stretched - 1) + first * (length - 1)
    if mode == "pytorch_half_pixel" and stretched == 1:
        return numbers * 0 - 0.5
    offset = length / 2 * (1 - count / stretched) if mode == "half_pixel_symmetric" else 0.0
    return offset + (numbers + 0.5) / factor - 0.5


def _weights(mode: str, nearest: str, a: float, scale: float) -> tuple[int, _Weights]:
    """Returns how many elements around a place have weights, and the function of these."""
    narrow = min(scale, 1.0)  # a smaller image is sampled by a wider window
    if mode == "nearest":
        return 2, partial(_nearest, nearest)
    reach = 1 if mode == "linear" else 2
    start = math.floor(-reach / narrow) + 1
    weight = _linear if mode == "linear" else partial(_cubic, a)
    numbers = fw.arange(start, 2 - start, dtype="float64")

    def normalized(ratios: Any) -> Any:
        found = weight(fw.abs((numbers - ratios[:, None]) * narrow))
        return found / found.sum(-1, keepdims=True)

    return numbers.size, normalized


def _nearest(mode: str, ratios: Any) -> Any:
    bounds = {"round_prefer_floor": ratios > 0.5, "round_prefer_ceil": ratios >= 0.5, "floor": ratios == 1}
    is_next = bounds.get(mode, ratios > 0)
    return fw.stack([~is_next, is_next], axis=-1).astype("float64")


def _linear(distances: Any) -> Any:
    return fw.clip(1 - distances, 0, 1)


def _cubic(a: float, d: Any) -> Any:
    """The weights of R. G. Keys, Cubic convolution interpolation for digital image processing (1981)."""
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return fw.where(d <= 1, near, fw.where(d < 2, far, 0.0))


def _interpolated(x: Any, axis: int, places: Any, weights: tuple[int, _Weights], *, excludes: bool) -> Any:
    """Returns `x` at places along an axis. Places outside have the element at the border, or no weight."""
    count, weigh = weights
    before = fw.ceil(places) - 1
    neighbours = before.astype("int64")[:, None] + fw.arange(1 - count // 2, 1 + count // 2)
    found, length = weigh(places - before), x.shape[axis]
    if excludes:
        found = fw.where((neighbours < 0) | (neighbours >= length), 0.0, found)
        found = found / fw.where(found.sum(-1, keepdims=True) == 0, 1.0, found.sum(-1, keepdims=True))
    taken = fw.take(x, fw.clip(neighbours, 0, length - 1), axis=axis)
    shape = [1] * axis + [*found.shape] + [1] * (x.ndim - axis - 1)
    return (taken * found.reshape(shape)).sum(axis + 1)


def _sampled(x: Any, grid: Any, *, mode: str = "linear", padding_mode: str = "zeros", align_corners: int = 0) -> Any:
    """The grid has a place for each element of the result, from -1 to 1 along each axis, the last axis first."""
    lengths, rank = x.shape[2:], x.ndim - 2
    mode = mode.removeprefix("bi")
    places, borders = [], []
    for axis, length in enumerate(lengths):
        place = grid[..., rank - 1 - axis].astype("float32")
        place = (place + 1) / 2 * (length - 1) if align_corners else ((place + 1) * length - 1) / 2
        place = fw.round(place) if mode == "nearest" else place
        borders.append((0.0, length - 1.0) if align_corners else (-0.5, length - 0.5))
        places.append(_moved_inside(place, length, borders[-1], padding_mode))
    count, weigh = _KERNELS[mode]
    total: Any = 0.0
    for corner in np.ndindex(*[count] * rank):
        weight: Any = 1.0
        key: list[Any] = []
        for axis, shift in enumerate(corner):
            before = fw.floor(places[axis]) if mode != "nearest" else places[axis]
            distance = fw.abs(before + (shift - (count - 1) // 2) - places[axis])
            weight = weight * weigh(distance)
            index = before.astype("int64") + (shift - (count - 1) // 2)
            if padding_mode == "zeros":
                weight = weight * ((index >= 0) & (index < lengths[axis]))
            elif padding_mode == "reflection":
                index = _reflected(index.astype("float32"), borders[axis]).astype("int64")
            key.append(fw.clip(index, 0, lengths[axis] - 1))
        batch = fw.arange(x.shape[0]).reshape(-1, *[1] * (grid.ndim - 2))
        taken = fw.moveaxis(fw.moveaxis(x, 1, -1)[(batch, *key)], -1, 1)
        total = total + taken * weight[:, None]
    return total.astype(x.dtype)


def _one(distances: Any) -> Any:
    return fw.ones_like(distances)


_KERNELS: dict[str, tuple[int, Callable[[Any], Any]]] = {
    "nearest": (1, _one),
    "linear": (2, _linear),
    "cubic": (4, partial(_cubic, -0.75)),
}


def _moved_inside(place: Any, length: int, border: tuple[float, float], padding: str) -> Any:
    is_outside = (place < border[0]) | (place > border[1])
    if padding == "border":
        return fw.where(is_outside, fw.clip(place, 0, length - 1), place)
    return fw.where(is_outside, _reflected(place, border), place) if padding == "reflection" else place


def _reflected(place: Any, border: tuple[float, float]) -> Any:
    """Returns places as a walk between two mirrors meets them."""
    low, high = border
    span = high - low
    if span == 0:
        return place * 0 + low
    phase = fw.remainder(place - low, 2 * span)
    return low + fw.where(phase > span, 2 * span - phase, phase)


OPS: dict[str, Callable[..., Any]] = {"GridSample": _sampled, "Resize": _resized}
