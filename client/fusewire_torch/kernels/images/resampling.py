"""Gradients of `torch.nn.functional.interpolate` and of paddings that repeat an edge.

Each is a linear map along every spatial axis, so its gradient is the product with the transposed matrix. PyTorch's
decompositions of the ops themselves gather elements.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()


def _along_all(grad: torch.Tensor, lengths: Any, matrix: Callable[[Array, int, int, int], Array]) -> Array:
    """Returns the gradient of a map that has a matrix [outputs, inputs] for each spatial axis."""
    array = array_of(grad)
    rank = len(lengths)
    for number, length in enumerate(lengths):
        along = number - rank
        moved = fw.moveaxis(array, along, -1) @ matrix(array, number, length, array.shape[along])
        array = fw.moveaxis(moved, -1, along)
    return array


def _hot(places: Array, length: int, like: Array) -> Array:
    """Returns the matrix that picks elements of an axis; a place beyond an end is that end."""
    return fw.one_hot(fw.clip(places, 0, length - 1), length, dtype=like.dtype if like.dtype.is_floating else "float32")


def _step(length: int, count: int, scale: float | None) -> float:
    return 1.0 / scale if scale else length / count


def _nearest(grad: torch.Tensor, output_size: Any, input_size: Any, *scales: Any, middle: float = 0.0) -> Array:
    def matrix(like: Array, number: int, length: int, count: int) -> Array:
        step = _step(length, count, scales[number] if scales else None)
        places = fw.floor((fw.arange(count, dtype="float32", device=like.session) + middle) * step)
        return _hot(places.astype("int64"), length, like)

    return _along_all(grad, input_size[2:], matrix)


def _nearest_exact(grad: torch.Tensor, output_size: Any, input_size: Any, *scales: Any) -> Array:
    return _nearest(grad, output_size, input_size, *scales, middle=0.5)


def _linear(grad: torch.Tensor, output_size: Any, input_size: Any, align_corners: bool, *scales: Any) -> Array:
    def matrix(like: Array, number: int, length: int, count: int) -> Array:
        scale = scales[number] if scales else None
        source = fw.maximum(_source(like, length, count, align_corners, scale), 0)
        low = fw.floor(source)
        weight = fw.expand_dims((source - low).astype(like.dtype), -1)
        place = low.astype("int64")
        return _hot(place, length, like) * (1 - weight) + _hot(place + 1, length, like) * weight

    return _along_all(grad, input_size[2:], matrix)


def _cubic(grad: torch.Tensor, output_size: Any, input_size: Any, align_corners: bool, *scales: Any) -> Array:
    def matrix(like: Array, number: int, length: int, count: int) -> Array:
        source = _source(like, length, count, align_corners, scales[number] if scales else None)
        low = fw.floor(source)
        part, place = fw.expand_dims((source - low).astype(like.dtype), -1), low.astype("int64")
        rows = [_hot(place + tap, length, like) * cubic_weight(fw.abs(part - tap)) for tap in (-1, 0, 1, 2)]
        return rows[0] + rows[1] + rows[2] + rows[3]

    return _along_all(grad, input_size[2:], matrix)


def _source(like: Array, length: int, count: int, align_corners: bool, scale: float | None) -> Array:
    """Returns where each element of the result lies among those of the operand."""
    dtype = "float64" if like.dtype.name == "float64" else "float32"
    numbers = fw.arange(count, dtype=dtype, device=like.session)
    if align_corners:
        return numbers * ((length - 1) / (count - 1) if count > 1 else 0.0)
    return (numbers + 0.5) * _step(length, count, scale) - 0.5


def _smooth(like: Array, length: int, count: int, align_corners: bool, scale: float | None) -> Array:
    """Returns the matrix [outputs, inputs] of PIL's antialiasing: where it makes smaller, a hat as wide as a step."""
    step = _step(length, count, scale)
    if align_corners:
        step = (length - 1) / (count - 1) if count > 1 else 0.0
    middle = (fw.arange(count, dtype="float32", device=like.session) + 0.5) * step
    places = fw.arange(length, dtype="float32", device=like.session) + 0.5
    distance = fw.abs(places - fw.expand_dims(middle, -1)) / max(step, 1.0)
    weights = fw.maximum(1 - distance, 0.0)
    return (weights / fw.sum(weights, axis=-1, keepdims=True)).astype(like.dtype, copy=False)


@TABLE.value("_upsample_bilinear2d_aa")
def _smoothly(x: torch.Tensor, output_size: Any, align_corners: bool, *scales: Any) -> Array:
    array = array_of(x)
    for number, count in enumerate(output_size):
        scale = scales[number] if scales else None
        matrix = _smooth(array, x.shape[2 + number], count, align_corners, scale)
        array = fw.moveaxis(fw.moveaxis(array, 2 + number, -1) @ matrix.mT, -1, 2 + number)
    return array


@TABLE.value("_upsample_bilinear2d_aa_backward")
def _smooth_backward(grad: torch.Tensor, output_size: Any, input_size: Any, align_corners: bool, *scales: Any) -> Array:
    def matrix(like: Array, number: int, length: int, count: int) -> Array:
        return _smooth(like, length, count, align_corners, scales[number] if scales else None)

    return _along_all(grad, input_size[2:], matrix)


def cubic_weight(distance: Array) -> Array:
    """Returns the weight of a tap at a distance below 2. The kernel is that of Keys, 1981, with a = -0.75."""
    a = -0.75
    near = ((a + 2) * distance - (a + 3)) * distance * distance + 1
    far = ((a * distance - 5 * a) * distance + 8 * a) * distance - 4 * a
    return fw.where(distance <= 1, near, far)


_KINDS: dict[str, Callable[..., Array]] = {
    **{f"upsample_nearest{rank}d_backward": _nearest for rank in (1, 2, 3)},
    **{f"_upsample_nearest_exact{rank}d_backward": _nearest_exact for rank in (1, 2, 3)},
    "upsample_linear1d_backward": _linear,
    "upsample_bilinear2d_backward": _linear,
    "upsample_trilinear3d_backward": _linear,
    "upsample_bicubic2d_backward": _cubic,
}
TABLE.values.update(_KINDS)


@TABLE.value("replication_pad1d_backward", "replication_pad2d_backward", "replication_pad3d_backward")
def _replicated_backward(grad: torch.Tensor, x: torch.Tensor, padding: Any) -> Array:
    ahead = list(padding[::2])[::-1]

    def matrix(like: Array, number: int, length: int, count: int) -> Array:
        return _hot(fw.arange(count, device=like.session) - ahead[number], length, like)

    return _along_all(grad, x.shape[-len(ahead) :], matrix)
