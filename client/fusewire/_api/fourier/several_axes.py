"""Transforms along several axes, one after another."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from math import prod
from typing import Any, NamedTuple

from fusewire._api.array import Array
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.fourier.lines import (
    Parts,
    joined,
    parts_of,
    real_lines,
    real_of,
    scaled,
    transformed,
    transformed_real,
)
from fusewire._api.fourier.norms import Norm, factor_of
from fusewire._api.fourier.one_axis import points_of
from fusewire._api.ops import operations
from fusewire._api.ops.operations import axis_of
from fusewire._errors import ArgumentError, ShapeError
from fusewire_protos.ops.rules import fourier
from fusewire_protos.ops.rules.fourier import real_points
from fusewire_protos.ops.shapes import Shape

Lengths = Sequence[int] | None
Axes = Sequence[int] | None

_LAST_TWO = (-2, -1)


class _Line(NamedTuple):
    axis: int  # counted from the front
    points: int


def fftn(x: Any, /, s: Lengths = None, axes: Axes = None, norm: Norm = "backward") -> ComplexArray:
    """Returns the discrete Fourier transform along several axes, by default all (see `fft`).

    `s` are the lengths along these axes; without `axes` it is about the last ones. A length of −1 is that of the array.
    """
    return _complex(x, s, axes, norm, inverse=False)


def ifftn(x: Any, /, s: Lengths = None, axes: Axes = None, norm: Norm = "backward") -> ComplexArray:
    """Returns the inverse of `fftn`, with the same parameters."""
    return _complex(x, s, axes, norm, inverse=True)


def _complex(x: Any, s: Lengths, axes: Axes, norm: Norm, *, inverse: bool) -> ComplexArray:
    parts = parts_of(x)
    lines = _lines(parts.real.shape, s, axes)
    factor = factor_of(norm, _size(lines), inverse=inverse)
    if not lines:
        dtype = fourier.dtype_of((parts.real.dtype,))
        return joined(Parts(*[operations.astype(each, dtype) for each in parts]))
    return joined(scaled(_along_each(parts, lines[::-1], inverse=inverse), factor))


def rfftn(x: Any, /, s: Lengths = None, axes: Axes = None, norm: Norm = "backward") -> ComplexArray:
    """Returns the `rfft` of real numbers along the last of several axes, and the `fft` of that along the others.

    Raises DtypeError for complex numbers, and ArgumentError for no axis; see `fftn` for the parameters.
    """
    given = real_of(x)
    *others, last = _some_lines(given.shape, s, axes)
    factor = factor_of(norm, _size([*others, last]), inverse=False)
    return joined(scaled(_along_each(transformed_real(given, *last), others[::-1], inverse=False), factor))


def irfftn(x: Any, /, s: Lengths = None, axes: Axes = None, norm: Norm = "backward") -> Array:
    """Returns the inverse of `rfftn`: real numbers, by default 2 · (m − 1) of m along the last axis (see `irfft`)."""
    parts = parts_of(x)
    *others, last = _some_lines(parts.real.shape, s, axes)
    if s is None:
        last = last._replace(points=points_of(real_points(last.points, is_odd=False)))
    factor = factor_of(norm, _size([*others, last]), inverse=True)
    return real_lines(_along_each(parts, others, inverse=True), *last, factor)


def fft2(x: Any, /, s: Lengths = None, axes: Axes = _LAST_TWO, norm: Norm = "backward") -> ComplexArray:
    """Returns the transform along two axes, by default the last two (see `fftn`)."""
    return fftn(x, s, axes, norm)


def ifft2(x: Any, /, s: Lengths = None, axes: Axes = _LAST_TWO, norm: Norm = "backward") -> ComplexArray:
    """Returns the inverse of `fft2`."""
    return ifftn(x, s, axes, norm)


def rfft2(x: Any, /, s: Lengths = None, axes: Axes = _LAST_TWO, norm: Norm = "backward") -> ComplexArray:
    """Returns the transform of real numbers along two axes, by default the last two (see `rfftn`)."""
    return rfftn(x, s, axes, norm)


def irfft2(x: Any, /, s: Lengths = None, axes: Axes = _LAST_TWO, norm: Norm = "backward") -> Array:
    """Returns the inverse of `rfft2`."""
    return irfftn(x, s, axes, norm)


def _along_each(parts: Parts, lines: Sequence[_Line], *, inverse: bool) -> Parts:
    """Transforms along one axis after another. The order, which is NumPy's, matters for an axis that is there twice."""
    for axis, points in lines:
        parts = transformed(parts, axis, points, inverse=inverse)
    return parts


def _some_lines(shape: Shape, s: Lengths, axes: Axes) -> list[_Line]:
    lines = _lines(shape, s, axes)
    if not lines:
        raise ArgumentError("a transform of real numbers takes one axis or more")
    return lines


def _lines(shape: Shape, s: Lengths, axes: Axes) -> list[_Line]:
    """Returns the axes with the number of points along each. Raises ShapeError if there are other numbers of both."""
    if axes is None:
        axes = range(-(len(shape) if s is None else len(s)), 0)
    along = [axis_of(axis, len(shape)) for axis in axes]
    if s is None:
        return [_Line(axis, points_of(shape[axis])) for axis in along]
    given = [operator.index(length) for length in s]
    if len(given) != len(along):
        raise ShapeError(f"{len(given)} lengths s = {tuple(given)} do not fit {len(along)} axes")
    pairs = zip(along, given, strict=True)
    return [_Line(axis, points_of(shape[axis] if points == -1 else points)) for axis, points in pairs]


def _size(lines: Sequence[_Line]) -> int:
    return prod([line.points for line in lines])
