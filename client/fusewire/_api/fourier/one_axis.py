"""Transforms along one axis."""

from __future__ import annotations

import operator
from typing import Any, SupportsIndex

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
from fusewire._api.fourier.norms import Norm, factor_of, turned
from fusewire._api.ops.operations import axis_of
from fusewire_protos.ops.rules.fourier import checked_points, real_points


def fft(x: Any, /, n: SupportsIndex | None = None, axis: SupportsIndex = -1, norm: Norm = "backward") -> ComplexArray:
    """Returns the discrete Fourier transform along an axis: sums of x[j] · exp(−2πi·jk/n) over j, for k from 0.

    `x` is real or complex, of float32 or float64; integers are computed in float64 and 16-bit floats in float32. If
    `n` is another length than that of the axis, the last elements are left out, or zeros are added. `norm` says what is
    scaled: "backward" the inverse transform by 1/n, "forward" this one, "ortho" both by 1/√n.

    Raises ShapeError for no points or more than 2^26, AxisError, and ArgumentError for another norm.
    """
    return _complex(x, n, axis, norm, inverse=False)


def ifft(x: Any, /, n: SupportsIndex | None = None, axis: SupportsIndex = -1, norm: Norm = "backward") -> ComplexArray:
    """Returns the inverse of `fft`: sums of x[k] · exp(+2πi·jk/n) over k, divided by n unless `norm` says otherwise."""
    return _complex(x, n, axis, norm, inverse=True)


def _complex(x: Any, n: SupportsIndex | None, axis: SupportsIndex, norm: Norm, *, inverse: bool) -> ComplexArray:
    parts = parts_of(x)
    along = axis_of(axis, parts.real.ndim)
    points = points_of(parts.real.shape[along] if n is None else n)
    factor = factor_of(norm, points, inverse=inverse)
    return joined(scaled(transformed(parts, along, points, inverse=inverse), factor))


def rfft(x: Any, /, n: SupportsIndex | None = None, axis: SupportsIndex = -1, norm: Norm = "backward") -> ComplexArray:
    """Returns the first n // 2 + 1 elements of the `fft` of real numbers; the others are their conjugates.

    Raises DtypeError for complex numbers.
    """
    return joined(_of_real(x, n, axis, norm))


def _of_real(x: Any, n: SupportsIndex | None, axis: SupportsIndex, norm: Norm) -> Parts:
    given = real_of(x)
    along = axis_of(axis, given.ndim)
    points = points_of(given.shape[along] if n is None else n)
    return scaled(transformed_real(given, along, points), factor_of(norm, points, inverse=False))


def irfft(x: Any, /, n: SupportsIndex | None = None, axis: SupportsIndex = -1, norm: Norm = "backward") -> Array:
    """Returns the `n` real numbers whose `rfft` is `x`. By default `n` is even: 2 · (m − 1) for m elements.

    Real numbers have a real first element, and if `n` is even a real last one: their imaginary parts are not read.
    """
    return _to_real(parts_of(x), n, axis, norm)


def _to_real(parts: Parts, n: SupportsIndex | None, axis: SupportsIndex, norm: Norm) -> Array:
    along = axis_of(axis, parts.real.ndim)
    points = points_of(real_points(parts.real.shape[along], is_odd=False) if n is None else n)
    factor = factor_of(norm, points, inverse=True)
    return real_lines(parts, along, points, factor)


def hfft(x: Any, /, n: SupportsIndex | None = None, axis: SupportsIndex = -1, norm: Norm = "backward") -> Array:
    """Returns the `n` real numbers that are the `fft` of a line of which `x` is the first half.

    Its other half are the conjugates of the first. By default `n` is even: 2 · (m − 1) for m elements.
    """
    real, imag = parts_of(x)
    return _to_real(Parts(real, -imag), n, axis, turned(norm))


def ihfft(x: Any, /, n: SupportsIndex | None = None, axis: SupportsIndex = -1, norm: Norm = "backward") -> ComplexArray:
    """Returns the inverse of `hfft`: the first n // 2 + 1 elements of the `ifft` of real numbers.

    Raises DtypeError for complex numbers.
    """
    real, imag = _of_real(x, n, axis, turned(norm))
    return joined(Parts(real, -imag))


def points_of(n: SupportsIndex) -> int:
    """Returns a number of points. Raises ShapeError for none, and for too many."""
    return checked_points(operator.index(n))
