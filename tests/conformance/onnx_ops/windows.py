"""Pooling and convolution: parameters as the functions take them, and elements side by side for what these lack."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import fusewire as fw
from tests.conformance.onnx_ops.arguments import ints


class _Window(NamedTuple):
    """How a window goes over the last axes of an array. `pads` has two numbers for each axis."""

    sizes: Sequence[int]
    strides: Sequence[int]
    dilations: Sequence[int]
    pads: Sequence[tuple[int, int]]
    lengths: Sequence[int]  # of the results


def _window(
    x: Any,
    sizes: Sequence[int],
    *,
    strides: Any = None,
    dilations: Any = None,
    pads: Any = None,
    auto_pad: str = "NOTSET",
    ceil_mode: int = 0,
) -> _Window:
    rank = len(sizes)
    strides, dilations, pads = strides or [1] * rank, dilations or [1] * rank, pads or [0] * (2 * rank)
    reaches = [(size - 1) * step + 1 for size, step in zip(sizes, dilations, strict=True)]
    lengths, widths = [], []
    for axis, (size, stride, reach) in enumerate(zip(x.shape[2:], strides, reaches, strict=True)):
        before, after = pads[axis], pads[axis + rank]
        if auto_pad.startswith("SAME"):
            total = max(0, (-(-size // stride) - 1) * stride + reach - size)
            small, large = total // 2, total - total // 2
            before, after = (small, large) if auto_pad == "SAME_UPPER" else (large, small)
        steps = size + before + after - reach
        length = (-(-steps // stride) if ceil_mode else steps // stride) + 1
        if (length - 1) * stride >= size + before:  # a window that would begin behind the array
            length -= 1
        lengths.append(length)
        widths.append((before, after))
    return _Window(sizes, strides, dilations, widths, lengths)


def _elements(x: Any, window: _Window, filler: Any) -> Any:
    """Returns the elements under the window: the results' axes, and one of the window's places at the end."""
    widths = [(0, 0), (0, 0)]
    for i, (before, after) in enumerate(window.pads):
        reach = (window.lengths[i] - 1) * window.strides[i] + (window.sizes[i] - 1) * window.dilations[i] + 1
        widths.append((before, max(after, reach - before - x.shape[2 + i])))
    padded = fw.pad(x, widths, constant_values=filler)
    slices = []
    for place in product(*map(range, window.sizes)):
        key = [slice(None), slice(None)]
        for at, step, stride, length in zip(place, window.dilations, window.strides, window.lengths, strict=True):
            key.append(slice(at * step, at * step + (length - 1) * stride + 1, stride))
        slices.append(padded[tuple(key)])
    return fw.stack(slices, axis=-1)


def _greatest(x: Any, *, kernel_shape: Sequence[int], storage_order: int = 0, **options: Any) -> Any:
    """The second output says where in the flattened input each greatest element is."""
    window = _window(x, kernel_shape, **options)
    least = -math.inf if x.dtype.is_floating else fw.iinfo(x.dtype).min
    elements = _elements(x, window, least)
    order = (0, 1, *(range(x.ndim - 1, 1, -1) if storage_order else range(2, x.ndim)))
    places = fw.arange(x.size).reshape([x.shape[axis] for axis in order]).transpose(tuple(_inverse(order)))
    chosen = fw.argmax(elements, axis=-1, keepdims=True)
    at = fw.take_along_axis(_elements(places, window, 0), chosen, axis=-1)
    ceil_mode = bool(options.get("ceil_mode", 0))
    return fw.max_pool(x, kernel_shape, **_parameters(window), ceil_mode=ceil_mode), fw.squeeze(at, -1)


def _inverse(order: Sequence[int]) -> list[int]:
    return sorted(range(len(order)), key=lambda axis: order[axis])


def _average(
    x: Any, *, kernel_shape: Sequence[int], count_include_pad: int = 0, ceil_mode: int = 0, **options: Any
) -> Any:
    given = _parameters(_window(x, kernel_shape, **options))
    return fw.avg_pool(x, kernel_shape, **given, ceil_mode=bool(ceil_mode), count_include_pad=bool(count_include_pad))


def _parameters(window: _Window) -> dict[str, Any]:
    return {"strides": window.strides, "padding": window.pads, "dilation": window.dilations}


def _norm(x: Any, *, kernel_shape: Sequence[int], p: int = 2, **options: Any) -> Any:
    elements = _elements(fw.abs(x) ** p, _window(x, kernel_shape, **options), 0)
    return elements.sum(-1) ** (1 / p)


def _convolved(x: Any, w: Any, bias: Any = None, *, group: int = 1, kernel_shape: Any = None, **options: Any) -> Any:
    sums = fw.conv(x, w, **_parameters(_window(x, w.shape[2:], **options)), groups=group)
    return sums if bias is None else sums + bias.reshape(-1, *[1] * (x.ndim - 2))


def _transposed(
    x: Any,
    w: Any,
    bias: Any = None,
    *,
    group: int = 1,
    kernel_shape: Any = None,
    strides: Any = None,
    dilations: Any = None,
    pads: Any = None,
    output_padding: Any = None,
    output_shape: Any = None,
    auto_pad: str = "NOTSET",
) -> Any:
    rank = x.ndim - 2
    strides, dilations, more = strides or [1] * rank, dilations or [1] * rank, [*(output_padding or [0] * rank)]
    pads = pads or [0] * (2 * rank)
    ends = list(zip(pads[:rank], pads[rank:], strict=True))
    if auto_pad.startswith("SAME") and output_shape is None:
        output_shape = [dim * stride for dim, stride in zip(x.shape[2:], strides, strict=True)]
    if output_shape is not None:
        ends = []
        for axis, length in enumerate(output_shape[-rank:]):
            whole = (x.shape[2 + axis] - 1) * strides[axis] + (w.shape[2 + axis] - 1) * dilations[axis] + 1 + more[axis]
            more[axis] += max(length - whole, 0)
            half, rest = max(whole - length, 0) // 2, -(-max(whole - length, 0) // 2)
            ends.append((half, rest) if auto_pad == "SAME_UPPER" else (rest, half))
    sums = fw.conv_transpose(x, w, strides=strides, padding=ends, dilation=dilations, output_padding=more, groups=group)
    return sums if bias is None else sums + bias.reshape(-1, *[1] * rank)


def _convolved_integers(x: Any, w: Any, x_zero: Any = None, w_zero: Any = None, **options: Any) -> Any:
    """The zero point of the weights may be one for each result."""
    x, w = x.astype("int32"), w.astype("int32")
    x = x if x_zero is None else x - x_zero.astype("int32")
    w = w if w_zero is None else w - w_zero.astype("int32").reshape(-1, *[1] * (w.ndim - 1))
    return _convolved(x, w, **options)


def _quantized_convolution(
    x: Any, x_scale: Any, x_zero: Any, w: Any, w_scale: Any, w_zero: Any, *y: Any, **options: Any
) -> Any:
    """`y` are the scale and the zero point of the result, and perhaps a bias in steps of the product's scale."""
    y_scale, y_zero, *bias = y
    sums = _convolved_integers(x, w, x_zero, w_zero, **options)
    by_channel = (-1, *[1] * (x.ndim - 2))
    sums = sums + bias[0].reshape(by_channel) if bias else sums
    places = fw.round(sums * (x_scale * w_scale / y_scale).reshape(by_channel)) + y_zero.astype("float32")
    bounds = fw.iinfo(y_zero.dtype)
    return fw.clip(places, bounds.min, bounds.max).astype("int32").astype(y_zero.dtype)


def _unpooled(
    x: Any, places: Any, shape: Any = None, *, kernel_shape: Any, pads: Any = None, strides: Any = None
) -> Any:
    """Puts elements at places in the flattened result, and zeros elsewhere. A larger shape has more zeros behind."""
    rank = len(kernel_shape)
    pads, strides = pads or [0] * (2 * rank), strides or [1] * rank
    lengths = [(x.shape[2 + i] - 1) * strides[i] - pads[i] - pads[rank + i] + kernel_shape[i] for i in range(rank)]
    found = fw.zeros(x.shape[0] * x.shape[1] * math.prod(lengths), dtype=x.dtype)
    found = found.at[places.reshape(-1)].set(x.reshape(-1)).reshape(*x.shape[:2], *lengths)
    whole = found.shape if shape is None else ints(shape)
    return fw.pad(found, [(0, more - dim) for more, dim in zip(whole, found.shape, strict=True)])


def _added_up(
    x: Any,
    image_shape: Any,
    block_shape: Any,
    *,
    strides: Any = None,
    dilations: Any = None,
    pads: Any = None,
) -> Any:
    """Adds up windows, which lie in the columns of `x`, where they were taken from."""
    image, sizes = ints(image_shape), ints(block_shape)
    rank = len(image)
    strides, dilations, pads = strides or [1] * rank, dilations or [1] * rank, pads or [0] * (2 * rank)
    axes = []  # for each axis the place in the padded image of each place in a window and each window
    for i in range(rank):
        whole = image[i] + pads[i] + pads[rank + i]
        count = (whole - dilations[i] * (sizes[i] - 1) - 1) // strides[i] + 1
        axes.append(fw.arange(sizes[i])[:, None] * dilations[i] + fw.arange(count) * strides[i])
    counts = [each.shape[1] for each in axes]
    blocks = x.reshape(x.shape[0], -1, *sizes, *counts)
    key = []
    for i, each in enumerate(axes):
        shape = [1] * (2 * rank)
        shape[i], shape[rank + i] = each.shape
        key.append(each.reshape(shape))
    padded = [image[i] + pads[i] + pads[rank + i] for i in range(rank)]
    total = fw.zeros((*padded, *blocks.shape[:2]), dtype=x.dtype)
    total = total.at[tuple(key)].add(fw.moveaxis(blocks, (0, 1), (-2, -1)))
    cut = total[tuple(slice(pads[i], pads[i] + image[i]) for i in range(rank))]
    return fw.moveaxis(cut, (-2, -1), (0, 1))


def _deformed(
    x: Any,
    w: Any,
    offset: Any,
    bias: Any = None,
    mask: Any = None,
    *,
    group: int = 1,
    offset_group: int = 1,
    kernel_shape: Any = None,
    **options: Any,
) -> Any:
    """Convolves with elements at places that `offset` moves, between which it interpolates.

    J. Dai et al., Deformable convolutional networks (2017); with `mask`, X. Zhu et al., Deformable ConvNets v2 (2018).
    """
    window = _window(x, w.shape[2:], **options)
    (n, channels, *lengths), sizes = x.shape, window.sizes
    moves = offset.reshape(n, offset_group, *sizes, 2, *window.lengths)
    rows, columns = (
        _places_of_windows(window, axis) + moves[:, :, :, :, axis] for axis in range(2)
    )  # [n, offset groups, height, width, rows, columns]
    images = x.reshape(n, offset_group, channels // offset_group, *lengths)
    taken = _between(images, rows, columns)
    if mask is not None:
        taken = taken * fw.expand_dims(mask.reshape(rows.shape), axis=2)
    taken = taken.reshape(n, group, channels // group * math.prod(sizes), math.prod(window.lengths))
    kernels = w.reshape(group, w.shape[0] // group, -1)
    sums = (kernels @ taken).reshape(n, w.shape[0], *window.lengths)
    return sums if bias is None else sums + bias.reshape(-1, 1, 1)


def _places_of_windows(window: _Window, axis: int) -> Any:
    """Returns the places along an axis, as the windows and the places in them have axes: two and two."""
    inside = fw.arange(window.sizes[axis]) * window.dilations[axis] - window.pads[axis][0]
    starts = fw.arange(window.lengths[axis]) * window.strides[axis]
    shape = [1] * 4
    shape[axis], shape[2 + axis] = window.sizes[axis], window.lengths[axis]
    return (inside[:, None] + starts).reshape(shape)


def _between(images: Any, rows: Any, columns: Any) -> Any:
    """Returns the elements at places between others, each the weighted sum of four; outside are zeros."""
    n, groups, *_ = rows.shape
    height, width = images.shape[3:]
    by_place = fw.moveaxis(images, 2, -1)
    first = [
        fw.arange(count).reshape([-1 if i == axis else 1 for i in range(6)]) for axis, count in ((0, n), (1, groups))
    ]
    total: Any = 0.0
    for down, right in product((0, 1), (0, 1)):
        row, column = fw.floor(rows) + down, fw.floor(columns) + right
        weight = (1 - fw.abs(rows - row)) * (1 - fw.abs(columns - column))
        is_inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        key = (*first, *(fw.clip(each, 0, most - 1).astype("int64") for each, most in ((row, height), (column, width))))
        total = total + by_place[key] * (weight * is_inside).astype(images.dtype)[..., None]
    return fw.moveaxis(total, -1, 2)


OPS: dict[str, Callable[..., Any]] = {
    "AveragePool": _average,
    "Col2Im": _added_up,
    "Conv": _convolved,
    "ConvInteger": _convolved_integers,
    "ConvTranspose": _transposed,
    "DeformConv": _deformed,
    "LpPool": _norm,
    "MaxPool": _greatest,
    "MaxUnpool": _unpooled,
    "QLinearConv": _quantized_convolution,
}
