"""Pools: the greatest element or the mean of each window, and their gradients."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import torch

import fusewire as fw
from fusewire import Array
from fusewire._api.ops.windows import Axis, windows
from fusewire_torch.storage import array_of
from fusewire_torch.table import Table

TABLE = Table()


@TABLE.value("max_pool2d_with_indices", "max_pool3d_with_indices")
def _max_pool(
    x: torch.Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    dilation: Any = 1,
    ceil_mode: bool = False,
) -> tuple[Array, Array]:
    """Returns the greatest elements, and their places among those of the spatial axes of `x`, as `torch.nn` counts."""
    rank = x.dim() - 1 if _is_one(x, kernel_size) else x.dim() - 2
    lengths = tuple(x.shape[-rank:])
    array = array_of(x).reshape((-1, 1, *lengths))
    around = [_numbers(each, rank) for each in (kernel_size, stride or kernel_size, dilation)]
    axes = [Axis(*each) for each in zip(*around, strict=True)]
    pads, places = _numbers(padding, rank), _of_windows(x, kernel_size, stride, padding, dilation, ceil_mode)
    ends = [
        (pad, (count - 1) * axis.stride + axis.span - length - pad)
        for pad, count, axis, length in zip(pads, places, axes, lengths, strict=True)
    ]
    seen = windows(_padded(array, ends, -fw.inf if x.dtype.is_floating_point else torch.iinfo(x.dtype).min), axes)
    flat = seen.reshape((array.shape[0], prod(axis.extent for axis in axes), *places))
    best = fw.argmax(flat, axis=1)
    result = tuple(x.shape[:-rank]) + places
    return fw.max(flat, axis=1).reshape(result), _flat_places(best, axes, pads, lengths).reshape(result)


def _of_windows(x: torch.Tensor, *parameters: Any) -> tuple[int, ...]:
    """Returns how many windows there are along each spatial axis. Raises PyTorch's errors for wrong parameters."""
    like = torch.empty(x.shape, dtype=x.dtype, device="meta")
    rank = x.dim() - 1 if _is_one(x, parameters[0]) else x.dim() - 2
    pool = torch.ops.aten.max_pool2d_with_indices if rank == 2 else torch.ops.aten.max_pool3d_with_indices
    return tuple(pool(like, *parameters)[0].shape[-rank:])


def _is_one(x: torch.Tensor, kernel_size: Any) -> bool:
    """Returns whether the operand is one example, without an axis for a batch."""
    return bool(x.dim() == (len(kernel_size) if len(kernel_size) > 1 else 2) + 1)


def _flat_places(best: Array, axes: list[Axis], pads: tuple[int, ...], lengths: tuple[int, ...]) -> Array:
    """Returns the places in `x` of elements whose places in their windows are `best`, of shape [n, *places]."""
    flat: Any = 0
    rest = best
    for number in reversed(range(len(axes))):
        axis = axes[number]
        within = rest % axis.extent
        rest = rest // axis.extent
        count = best.shape[1 + number]
        first = fw.arange(count, device=best.session) * axis.stride - pads[number]
        place = first.reshape((count,) + (1,) * (len(axes) - 1 - number)) + within * axis.dilation
        flat = flat + place * prod(lengths[number + 1 :])
    return fw.asarray(flat)


def _padded(array: Array, ends: Any, value: Any) -> Array:
    """Pads the spatial axes. Behind them, elements that belong to no window are cut."""
    kept = tuple(slice(length + min(high, 0)) for length, (_, high) in zip(array.shape[2:], ends, strict=True))
    widths = [(0, 0), (0, 0), *[(low, max(high, 0)) for low, high in ends]]
    return fw.pad(array[(slice(None), slice(None), *kept)], widths, constant_values=value)


@TABLE.value("max_pool2d_with_indices_backward")
def _max_pool_2d_backward(grad: torch.Tensor, x: torch.Tensor, *parameters: Any, indices: Any = None) -> Array:
    return _scattered(grad, x, parameters[-1] if indices is None else indices, 2)


@TABLE.value("max_pool3d_with_indices_backward")
def _max_pool_3d_backward(grad: torch.Tensor, x: torch.Tensor, *parameters: Any, indices: Any = None) -> Array:
    return _scattered(grad, x, parameters[-1] if indices is None else indices, 3)


@TABLE.value("adaptive_max_pool2d_backward")
def _adaptive_max_pool_2d_backward(grad: torch.Tensor, x: torch.Tensor, indices: torch.Tensor) -> Array:
    return _scattered(grad, x, indices, 2)


@TABLE.value("adaptive_max_pool3d_backward")
def _adaptive_max_pool_3d_backward(grad: torch.Tensor, x: torch.Tensor, indices: torch.Tensor) -> Array:
    return _scattered(grad, x, indices, 3)


@TABLE.value("adaptive_max_pool2d", "adaptive_max_pool3d")
def _adaptive_max_pool(x: torch.Tensor, output_size: Any) -> tuple[Array, Array]:
    """Returns the greatest elements of windows that share each axis evenly, and their places."""
    rank = len(output_size)
    lengths, batch = tuple(x.shape[-rank:]), tuple(x.shape[:-rank])
    array = array_of(x).reshape((prod(batch), *lengths))
    flat, parts = fw.zeros((), "int64", device=array.session), 1
    for number, (length, count) in enumerate(zip(lengths, output_size, strict=True)):
        seen = _seen(array, length, count)
        parts *= seen.shape[1]
        ahead, behind = (1,) * number, (1,) * (rank - 1 - number)
        spread = seen.reshape((*ahead, count, *behind, *ahead, seen.shape[1], *behind))
        flat = flat + spread * prod(lengths[number + 1 :])
    flat = fw.broadcast_to(flat.reshape((prod(output_size), parts)), (prod(output_size), parts))
    elements = fw.take(array.reshape((prod(batch), prod(lengths))), flat.reshape(-1), axis=1)
    elements = elements.reshape((prod(batch), prod(output_size), parts))
    best = fw.argmax(elements, axis=-1)
    numbers = fw.arange(prod(output_size), device=array.session)
    result = (*batch, *output_size)
    return fw.max(elements, axis=-1).reshape(result), flat[numbers, best].reshape(result)


def _seen(like: Array, length: int, count: int) -> Array:
    """Returns the places [count, extent] of the elements of each window; a shorter window has its last one twice."""
    longest = max(-(-(number + 1) * length // count) - number * length // count for number in range(count))
    numbers = fw.arange(count, device=like.session)
    first, end = numbers * length // count, ((numbers + 1) * length + count - 1) // count
    within = fw.arange(longest, device=like.session)
    return fw.minimum(fw.expand_dims(first, -1) + within, fw.expand_dims(end, -1) - 1)


def _scattered(grad: torch.Tensor, x: torch.Tensor, indices: torch.Tensor, rank: int) -> Array:
    """Returns the sum of all gradients of each element, of which `indices` are the places."""
    given = array_of(grad)
    count = prod(x.shape[:-rank])
    rows, places = given.reshape((count, -1)), array_of(indices).reshape((count, -1))
    nothing = fw.zeros((count, prod(x.shape[-rank:])), given.dtype, device=given.session)
    first = fw.arange(count, device=given.session).reshape((count, 1))
    return nothing.at[first, places].add(rows).reshape(tuple(x.shape))


@TABLE.value("avg_pool2d", "avg_pool3d")
def _avg_pool(x: torch.Tensor, kernel_size: Any, *parameters: Any, **options: Any) -> Array:
    return _mean_of(x, kernel_size, *parameters, **options)(array_of(x))


@TABLE.value("avg_pool2d_backward", "avg_pool3d_backward")
def _avg_pool_backward(grad: torch.Tensor, x: torch.Tensor, *parameters: Any, **options: Any) -> Array:
    _, back = fw.vjp(_mean_of(x, *parameters, **options), array_of(x))
    gradient: Array = back(array_of(grad))[0]
    return gradient


def _mean_of(
    x: torch.Tensor,
    kernel_size: Any,
    stride: Any = (),
    padding: Any = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Callable[[Array], Array]:
    """Returns the pool of arrays of the shape of `x`."""
    if divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    rank = x.dim() - 1 if _is_one(x, kernel_size) else x.dim() - 2
    window = _numbers(kernel_size, rank)
    options: dict[str, Any] = {
        "strides": _numbers(stride, rank) if stride else None,
        "padding": _numbers(padding, rank),
        "ceil_mode": ceil_mode,
    }
    batch, lengths = tuple(x.shape[:-rank]), tuple(x.shape[-rank:])

    def mean(array: Array) -> Array:
        given = array.reshape((prod(batch), 1, *lengths))
        pooled = fw.avg_pool(given, window, count_include_pad=count_include_pad and not divisor_override, **options)
        if divisor_override:  # a mean of the elements that count, times how many they are, is their sum
            counted = fw.ones((1, 1, *lengths), pooled.dtype, device=given.session)
            pooled = pooled * (_counts(counted, pooled.shape[2:], window, options) / divisor_override)
        return pooled.astype(array.dtype, copy=False).reshape(batch + pooled.shape[2:])

    return mean


def _counts(ones: Array, places: tuple[int, ...], window: tuple[int, ...], options: dict[str, Any]) -> Array:
    """Returns how many elements each window has, without those that padding adds."""
    counts = fw.ones((), ones.dtype, device=ones.session)
    parameters = zip(window, options["strides"] or window, options["padding"], ones.shape[2:], places, strict=True)
    for axis, (extent, step, pad, length, count) in enumerate(parameters):
        first = fw.arange(count, device=ones.session) * step - pad
        seen = fw.minimum(first + extent, length) - fw.maximum(first, 0)
        counts = counts * seen.astype(ones.dtype).reshape((count,) + (1,) * (len(places) - 1 - axis))
    return counts


@TABLE.value("_adaptive_avg_pool2d")
def _adaptive_avg_pool_2d(x: torch.Tensor, output_size: Any) -> Array:
    return _averaged(array_of(x), tuple(x.shape[-2:]), tuple(output_size))


@TABLE.value("_adaptive_avg_pool3d")
def _adaptive_avg_pool_3d(x: torch.Tensor, output_size: Any) -> Array:
    return _averaged(array_of(x), tuple(x.shape[-3:]), tuple(output_size))


@TABLE.value("_adaptive_avg_pool2d_backward")
def _adaptive_avg_pool_2d_backward(grad: torch.Tensor, x: torch.Tensor) -> Array:
    return _averaged_backward(grad, x, 2)


@TABLE.value("_adaptive_avg_pool3d_backward")
def _adaptive_avg_pool_3d_backward(grad: torch.Tensor, x: torch.Tensor) -> Array:
    return _averaged_backward(grad, x, 3)


def _averaged(array: Array, lengths: tuple[int, ...], wanted: tuple[int, ...]) -> Array:
    """Returns the means of windows that share each axis evenly: matrix products, one for each axis."""
    rank = len(wanted)
    if all(length == 1 for length in wanted):
        return fw.mean(array, axis=tuple(range(-rank, 0)), keepdims=True)
    for number, (length, count) in enumerate(zip(lengths, wanted, strict=True)):
        if length != count:
            shares = _shares(array, length, count)
            array = fw.moveaxis(fw.moveaxis(array, number - rank, -1) @ fw.matrix_transpose(shares), -1, number - rank)
    return array


def _averaged_backward(grad: torch.Tensor, x: torch.Tensor, rank: int) -> Array:
    array = array_of(grad)
    for number in range(-rank, 0):
        if x.shape[number] != grad.shape[number]:
            shares = _shares(array, x.shape[number], grad.shape[number])
            array = fw.moveaxis(fw.moveaxis(array, number, -1) @ shares, -1, number)
    return array


def _shares(like: Array, length: int, count: int) -> Array:
    """Returns the matrix [count, length] whose rows average the windows of an adaptive pool along an axis."""
    numbers = fw.arange(count, device=like.session)
    first = fw.expand_dims(numbers * length // count, -1)
    end = fw.expand_dims(((numbers + 1) * length + count - 1) // count, -1)
    place = fw.arange(length, device=like.session)
    is_seen = fw.logical_and(place >= first, place < end).astype(like.dtype)
    return is_seen / (end - first).astype(like.dtype)


def _numbers(given: Any, rank: int) -> tuple[int, ...]:
    """Returns a number for each spatial axis."""
    numbers = (given,) if isinstance(given, int) else tuple(given)
    return numbers * rank if len(numbers) == 1 else numbers
