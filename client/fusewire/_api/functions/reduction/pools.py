"""Pools over the spatial axes of arrays: the greatest or the mean of the elements of each window."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

from fusewire._api.array import Array
from fusewire._api.ops.filled import filled
from fusewire._api.ops.operands import asarray
from fusewire._api.ops.strided import strides_of, view_of
from fusewire._api.ops.windows import (
    LEADING,
    Axis,
    Numbers,
    Pairs,
    check_fits,
    for_each,
    padded,
    padding_of,
    spatial_rank,
)
from fusewire_protos.ops.reductions import MAX
from fusewire_protos.ops.shapes import Shape

__all__ = ["avg_pool", "max_pool"]


def max_pool(
    x: Any,
    window: Numbers,
    /,
    *,
    strides: Numbers | None = None,
    padding: Any = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
) -> Array:
    """Returns the greatest element of each window of `x`, of shape [batch, channels, *spatial], 1 to 3 spatial axes.

    `window`, `strides` and `dilation` are a number, or one for each spatial axis; without `strides` the windows lie
    side by side. `padding` is as in `conv`, and what it adds is less than all elements. The result has as many elements
    along an axis as windows fit in, and with `ceil_mode` one more if elements are left over. The gradient of a window
    goes to its greatest element; equal ones of a row share it, and so do rows with equal ones.

    Raises ShapeError for another rank and a window that is larger than the padded `x`, and ArgumentError for parameters
    out of range.
    """
    given = asarray(x)
    axes = _axes("max_pool", given, window, strides, dilation)
    ends = padding_of(padding, given.shape[LEADING:], axes)
    check_fits(_lengths(given.shape[LEADING:], ends), axes, "max_pool")
    all_ends = _with_rest(given.shape[LEADING:], ends, axes, ceil_mode=ceil_mode)
    around = padded(given, all_ends, MAX.identity_in(given.dtype))
    return _reduced(around, axes, Array.max)


def avg_pool(
    x: Any,
    window: Numbers,
    /,
    *,
    strides: Numbers | None = None,
    padding: Any = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """Returns the mean of the elements of each window of `x`, of shape [batch, channels, *spatial]. See `max_pool`.

    What `padding` adds is 0, and counts as elements unless `count_include_pad` is false. What `ceil_mode` adds does not
    count. Means of integers are float64.

    Raises the errors of `max_pool`.
    """
    given = asarray(x)
    axes = _axes("avg_pool", given, window, strides, dilation)
    ends = padding_of(padding, given.shape[LEADING:], axes)
    lengths = _lengths(given.shape[LEADING:], ends)
    check_fits(lengths, axes, "avg_pool")
    all_ends = _with_rest(given.shape[LEADING:], ends, axes, ceil_mode=ceil_mode)
    sums = _reduced(padded(given, all_ends, 0), axes, _sum)
    if all_ends == (ends if count_include_pad else ((0, 0),) * len(ends)):
        means = sums / prod(axis.extent for axis in axes)
    else:
        counted = filled(given.session, (1, 1, *given.shape[LEADING:]), 1, sums.dtype)
        around = padded(padded(counted, ends, int(count_include_pad)), _beyond(all_ends, ends), 0)
        means = sums / _reduced(around, axes, _sum)
    return means.astype(given.dtype, copy=False) if given.dtype.is_floating else means


def _sum(view: Array, axis: int) -> Array:
    """Returns the sum in a dtype in which that of many halves is finite."""
    return view.sum(axis, view.dtype.accumulator if view.dtype.is_floating else None)


def _axes(name: str, x: Array, window: Numbers, strides: Numbers | None, dilation: Numbers) -> list[Axis]:
    rank = spatial_rank(x, name)
    extents = for_each(window, rank, "window", 1)
    apart = extents if strides is None else for_each(strides, rank, "strides", 1)
    return [Axis(*each) for each in zip(extents, apart, for_each(dilation, rank, "dilation", 1), strict=True)]


def _lengths(lengths: Shape, ends: Pairs) -> Shape:
    return tuple([length + sum(pair) for length, pair in zip(lengths, ends, strict=True)])


def _with_rest(lengths: Shape, ends: Pairs, axes: Sequence[Axis], *, ceil_mode: bool) -> Pairs:
    """Returns the padding with what `ceil_mode` adds: so much that one more window fits in, if it begins ahead of the
    padding behind.
    """
    if not ceil_mode:
        return ends
    found = []
    for length, (ahead, behind), axis in zip(lengths, ends, axes, strict=True):
        padded_length = length + ahead + behind
        begin = axis.windows_in(padded_length) * axis.stride
        is_more = begin < length + ahead and begin - axis.stride + axis.span < padded_length
        found.append((ahead, behind + begin + axis.span - padded_length if is_more else behind))
    return tuple(found)


def _beyond(all_ends: Pairs, ends: Pairs) -> Pairs:
    return tuple([(0, behind - own) for (_, behind), (_, own) in zip(all_ends, ends, strict=True)])


def _reduced(x: Array, axes: Sequence[Axis], reduce: Callable[[Array, int], Any]) -> Array:
    """Returns what a reduction makes of all windows, one axis after another: so each view moves by one stride."""
    for number, axis in enumerate(axes):
        along, strides = LEADING + number, strides_of(x.shape)
        count = axis.windows_in(x.shape[along])
        shape = (*x.shape[:along], count, *x.shape[along + 1 :], axis.extent)
        steps = (*strides[:along], strides[along] * axis.stride, *strides[along + 1 :], strides[along] * axis.dilation)
        x = reduce(view_of(x, shape, steps, 0), len(shape) - 1)
    return x
