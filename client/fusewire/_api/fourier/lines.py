"""Records the transforms of lines along one axis, unscaled, of the two parts of complex numbers.

The ops transform along the last axis. What they lack is made of other ops here: other axes, other lengths, and the
imaginary part of real numbers, which is 0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from fusewire._api.array import Array
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.functions.arrangement.joining import concat
from fusewire._api.functions.arrangement.shapes import moveaxis
from fusewire._api.ops import operations
from fusewire._api.ops.filled import filled
from fusewire._api.ops.operands import asarray
from fusewire._api.ops.several_results import apply_for_several
from fusewire._errors import DtypeError
from fusewire._recording.record_op import apply
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.rules import fourier


class Parts(NamedTuple):
    """The real and the imaginary parts of complex numbers, of one shape."""

    real: Array
    imag: Array


def real_of(x: Any) -> Array:
    """Returns `x` as an array of real numbers. Raises DtypeError for complex ones."""
    given = asarray(x)
    if isinstance(given, ComplexArray):
        raise DtypeError(f"a transform of real numbers takes no {given.dtype.name}; take x.real, or fft of all")
    return given


def parts_of(x: Any) -> Parts:
    """Returns the parts of complex or real numbers."""
    given = asarray(x)
    if isinstance(given, ComplexArray):
        return Parts(*given.parts)
    return Parts(given, filled(given.session, given.shape, 0.0, fourier.dtype_of((given.dtype,))))


def joined(parts: Parts) -> ComplexArray:
    """Returns complex numbers of parts that nobody else holds."""
    return ComplexArray(*parts)


def scaled(parts: Parts, factor: float) -> Parts:
    return parts if factor == 1 else Parts(parts.real * factor, parts.imag * factor)


def transformed(parts: Parts, axis: int, points: int, *, inverse: bool) -> Parts:
    """Returns the transforms of complex lines of `points` elements along an axis, counted from the front."""
    lines = [_last(_resized(each, axis, points), axis) for each in parts]
    return _parts_back(apply_for_several(BY_NAME["fft"], lines, (inverse,)), axis)


def transformed_real(x: Array, axis: int, points: int) -> Parts:
    """Returns the transforms of real lines of `points` elements, at the frequencies that are not negative."""
    return _parts_back(apply_for_several(BY_NAME["rfft"], [_last(_resized(x, axis, points), axis)]), axis)


def real_lines(parts: Parts, axis: int, points: int, factor: float) -> Array:
    """Returns the real lines of `points` elements whose transforms these are, times `points` and the factor.

    Those of real 16-bit floats have their dtype, as NumPy's do.
    """
    lines = [_last(_resized(each, axis, points // 2 + 1), axis) for each in parts]
    found = _back(apply(BY_NAME["irfft"], lines, (points % 2 == 1,)), axis)
    if factor != 1:
        found = found * factor
    return operations.astype(found, parts.real.dtype, copy=False) if parts.real.dtype.is_half else found


def _resized(x: Array, axis: int, length: int) -> Array:
    """Returns the first elements along an axis, or all elements and zeros behind them."""
    missing, before = length - x.shape[axis], (slice(None),) * axis
    if missing <= 0:
        return x[*before, slice(length)] if missing else x
    zeros = filled(x.session, (*x.shape[:axis], missing, *x.shape[axis + 1 :]), 0, x.dtype)
    return concat([x, zeros], axis=axis)


def _parts_back(parts: Sequence[Array], axis: int) -> Parts:
    real, imag = parts
    return Parts(_back(real, axis), _back(imag, axis))


def _last(x: Array, axis: int) -> Array:
    return x if axis == x.ndim - 1 else moveaxis(x, axis, -1)


def _back(x: Array, axis: int) -> Array:
    return x if axis == x.ndim - 1 else moveaxis(x, -1, axis)
