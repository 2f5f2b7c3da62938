"""Pooling and convolution: parameters as the functions take them, and elements side by side for what these lack."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any, NamedTuple

import fusewire as fw


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


OPS: dict[str, Callable[..., Any]] = {
    "AveragePool": _average,
    "Conv": _convolved,
    "ConvInteger": _convolved_integers,
    "ConvTranspose": _transposed,
    "LpPool": _norm,
    "MaxPool": _greatest,
}
