"""Convolutions over the spatial axes of arrays: matrix products over the windows of their elements."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from fusewire._api.array import Array
from fusewire._api.ops.filled import filled
from fusewire._api.ops.operands import arrays_of
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
    windows,
)
from fusewire._errors import ArgumentError, ShapeError
from fusewire_protos.ops.shapes import Shape

__all__ = ["conv", "conv_transpose"]


def conv(x: Any, w: Any, /, *, strides: Numbers = 1, padding: Any = 0, dilation: Numbers = 1, groups: int = 1) -> Array:
    """Returns the convolution of `x`, of shape [batch, channels, *spatial], by the kernels `w`, of shape [outputs,
    channels / groups, *window], as layers of networks compute it: over 1 to 3 spatial axes, without turning the kernels
    around.

    Element [n, o, i] is the sum over channels c and places k of `x[n, c, i · strides + k · dilation] · w[o, c, k]`, and
    the result has `(length + padding − (window − 1) · dilation − 1) // strides + 1` elements along a spatial axis. With
    groups, the outputs and the channels fall into as many parts, and outputs see the channels of their own part alone.
    `padding` adds zeros: a number at all ends, a number or a pair (ahead, behind) for each axis, "valid" for none, or
    "same", with which there are `length / strides` elements, rounded up. The other parameters are a number, or one for
    each spatial axis. It is the matrix product of the kernels by the windows of `x`, with its dtypes and rounding.

    Raises ShapeError for ranks and channels that do not fit, and a window that is larger than the padded `x`, and
    ArgumentError for parameters out of range.
    """
    given, kernels = arrays_of(x, w)
    rank = _check_ranks("conv", given, kernels)
    axes = _axes(kernels.shape[LEADING:], strides, dilation)
    _check_channels(given, kernels, groups)
    around = padded(given, padding_of(padding, given.shape[LEADING:], axes), 0)
    check_fits(around.shape[LEADING:], axes, "conv")
    seen = windows(around, axes)
    return _product(seen, kernels, rank, groups)


def conv_transpose(
    x: Any,
    w: Any,
    /,
    *,
    strides: Numbers = 1,
    padding: Any = 0,
    output_padding: Numbers = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Array:
    """Returns the transposed convolution of `x`, of shape [batch, channels, *spatial], by the kernels `w`, of shape
    [channels, outputs / groups, *window]. It takes the gradient by the result of `conv` to that by the operand.

    Element [n, c, i] of `x` adds `x[n, c, i] · w[c, o, k]` to element [n, o, i · strides + k · dilation − ahead] of the
    result, which has `(length − 1) · strides − ahead − behind + (window − 1) · dilation + 1 + output_padding` elements
    along a spatial axis. `padding` is a number, or a number or a pair (ahead, behind) for each axis, and is taken away
    from the ends; `output_padding` is added behind. Groups are as in `conv`.

    Raises ShapeError for ranks and channels that do not fit, and if nothing is left, and ArgumentError for parameters
    out of range: `output_padding` is less than the stride or the dilation.
    """
    given, kernels = arrays_of(x, w)
    rank = _check_ranks("conv_transpose", given, kernels)
    axes = _axes(kernels.shape[LEADING:], strides, dilation)
    _check_transposed_channels(given, kernels, groups)
    if isinstance(padding, str):
        raise ArgumentError(f"padding = {padding!r}: conv_transpose takes numbers and pairs")
    ends = padding_of(padding, given.shape[LEADING:], axes)
    more = for_each(output_padding, rank, "output_padding", 0)
    lengths = _transposed_lengths(given.shape[LEADING:], axes, ends, more)
    outputs = kernels.shape[1] * groups
    phases = [_Phases.of(axis, ahead, length) for axis, (ahead, _), length in zip(axes, ends, lengths, strict=True)]
    parts = _kernels_of_phases(kernels, axes, phases, groups)
    reaches = [(phase.ahead, phase.end - length) for phase, length in zip(phases, given.shape[LEADING:], strict=True)]
    seen = windows(padded(given, tuple(reaches), 0), [phase.axis for phase in phases])
    result = _product(seen, parts, rank, groups)
    return _interleaved(result, outputs, phases, [ahead for ahead, _ in ends], lengths)


def _check_ranks(name: str, x: Array, w: Array) -> int:
    """Returns the number of spatial axes. Raises ShapeError."""
    rank = spatial_rank(x, name)
    if w.ndim != x.ndim:
        raise ShapeError(f"{name} of shape {x.shape} takes kernels of {x.ndim} axes, not of shape {w.shape}")
    for axis, extent in enumerate(w.shape[LEADING:]):
        if not extent:
            raise ShapeError(f"{name}: the window of kernels of shape {w.shape} is empty along spatial axis {axis}")
    return rank


def _axes(extents: Shape, strides: Numbers, dilation: Numbers) -> list[Axis]:
    rank = len(extents)
    return [
        Axis(*each)
        for each in zip(
            extents, for_each(strides, rank, "strides", 1), for_each(dilation, rank, "dilation", 1), strict=True
        )
    ]


def _check_groups(groups: int, channels: int, what: str) -> None:
    if groups < 1:
        raise ArgumentError(f"groups is {groups}, and must be at least 1")
    if channels % groups:
        raise ShapeError(f"{channels} {what} do not fall into {groups} groups of equal size")


def _check_channels(x: Array, w: Array, groups: int) -> None:
    channels = x.shape[1]
    _check_groups(groups, channels, "channels")
    _check_groups(groups, w.shape[0], "outputs")
    if w.shape[1] * groups != channels:
        raise ShapeError(
            f"conv of {channels} channels in {groups} groups takes kernels of {channels // groups} channels, "
            f"not of shape {w.shape}"
        )


def _check_transposed_channels(x: Array, w: Array, groups: int) -> None:
    channels = x.shape[1]
    _check_groups(groups, channels, "channels")
    if w.shape[0] != channels:
        raise ShapeError(f"conv_transpose of {channels} channels takes as many kernels, not of shape {w.shape}")


def _product(seen: Array, kernels: Array, rank: int, groups: int) -> Array:
    """Returns the products of kernels [outputs, channels / groups, *window] by windows [batch, channels, *window,
    *places]: [batch, outputs, *places].

    The windows are the right operand, so that the result has the order of elements that the next layer takes.
    """
    batch, places = seen.shape[0], seen.shape[LEADING + rank :]
    outputs, summed = kernels.shape[0], prod(kernels.shape[1:])
    if groups == 1:
        found = kernels.reshape(outputs, summed) @ seen.reshape(batch, summed, prod(places))
    else:
        left = kernels.reshape(groups, outputs // groups, summed)
        found = left @ seen.reshape(batch, groups, summed, prod(places))
    return found.reshape(batch, outputs, *places)


# ---- transposed ----


class _Phases(NamedTuple):
    """How a transposed convolution along one axis is an ordinary one of stride 1 for each phase.

    A phase is a remainder of places of the result by the stride. Place p of the result takes element i of `x` by
    element k of the kernel if p = i · stride + k · dilation. With p = m · stride + phase and
    k · dilation = q · stride + phase that is i = m − q: for each phase windows of as many q, which begin `ahead`
    elements ahead of `x`. `first` and `end` are the m of which the result has elements, and `end` is also the element
    of `x` behind the last that these take. So no zeros stand between the elements of `x`; only kernels are filled up.
    (W. Shi et al., "Is the deconvolution layer the same as a convolutional layer?", 2016.)
    """

    stride: int
    axis: Axis
    first: int
    end: int

    @property
    def ahead(self) -> int:
        return self.axis.span - 1 - self.first

    @classmethod
    def of(cls, axis: Axis, ahead: int, length: int) -> _Phases:
        """Returns the phases of an axis whose result begins at place `ahead` and has so many elements."""
        own = Axis(axis.extent, 1, axis.dilation) if axis.stride == 1 else Axis(-(-axis.span // axis.stride))
        return cls(axis.stride, own, ahead // axis.stride, -(-(ahead + length) // axis.stride))


def _transposed_lengths(lengths: Shape, axes: Sequence[Axis], ends: Pairs, more: Sequence[int]) -> Shape:
    """Returns the lengths of the result's spatial axes. Raises ShapeError and ArgumentError."""
    found = []
    for number, (length, axis, pair, behind) in enumerate(zip(lengths, axes, ends, more, strict=True)):
        if behind >= max(axis.stride, axis.dilation):
            raise ArgumentError(
                f"output_padding is {behind} along spatial axis {number}, and must be less than the stride "
                f"{axis.stride} or the dilation {axis.dilation}"
            )
        left = (length - 1) * axis.stride - sum(pair) + axis.span + behind
        if left < 1:
            raise ShapeError(
                f"conv_transpose: {left} elements are left along spatial axis {number}, of {length} with padding {pair}"
            )
        found.append(left)
    return tuple(found)


def _kernels_of_phases(w: Array, axes: Sequence[Axis], phases: Sequence[_Phases], groups: int) -> Array:
    """Returns kernels [outputs · phases, channels / groups, *window] of kernels [channels, outputs / groups, *window]:
    of each phase those of its elements, from the last to the first.
    """
    rank, channels, outputs = len(axes), w.shape[0] // groups, w.shape[1]
    for number, (axis, phase) in enumerate(zip(axes, phases, strict=True)):
        if phase.stride > 1:
            w = _filled_up(w, LEADING + number, axis, phase)
    split = [dim for phase in phases for dim in (phase.axis.extent, phase.stride)]
    parts = w.reshape(groups, channels, outputs, *split)
    within, of_phases = range(3, 3 + 2 * rank, 2), range(4, 4 + 2 * rank, 2)
    turned = parts[:, :, :, *[slice(None, None, step) for _ in phases for step in (-1, 1)]]
    ordered = turned.transpose([0, 2, *of_phases, 1, *within])
    count = groups * outputs * prod(phase.stride for phase in phases)
    return ordered.reshape(count, channels, *[phase.axis.extent for phase in phases])


def _filled_up(w: Array, along: int, axis: Axis, phase: _Phases) -> Array:
    """Returns kernels whose elements along an axis are the dilation apart, with as many elements for each phase."""
    length = phase.axis.extent * phase.stride
    if length == axis.extent:
        return w
    shape = (*w.shape[:along], length, *w.shape[along + 1 :])
    key = (*[slice(None)] * along, slice(0, axis.span, axis.dilation))
    return filled(w.session, shape, 0, w.dtype).at[key].set(w)


def _interleaved(
    x: Array, outputs: int, phases: Sequence[_Phases], begins: Sequence[int], lengths: Sequence[int]
) -> Array:
    """Returns [batch, outputs, *spatial] of [batch, outputs · phases, *places], cut to its lengths."""
    rank = len(phases)
    places = x.shape[LEADING:]
    if any(phase.stride > 1 for phase in phases):
        apart = x.reshape(x.shape[0], outputs, *[phase.stride for phase in phases], *places)
        order = [axis for each in range(rank) for axis in (LEADING + rank + each, LEADING + each)]
        merged = [dim * phase.stride for dim, phase in zip(places, phases, strict=True)]
        x = apart.transpose([0, 1, *order]).reshape(x.shape[0], outputs, *merged)
    cut = [begin - phase.first * phase.stride for begin, phase in zip(begins, phases, strict=True)]
    ends = [(-begin, begin + length - dim) for begin, length, dim in zip(cut, lengths, x.shape[LEADING:], strict=True)]
    return padded(x, tuple(ends), 0)
