"""Functions of the parts of complex numbers, which real numbers have too."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import abs, atan2, isnan  # noqa: A004  # the standard's name
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.functions.creation.creation import full_like, zeros_like
from fusewire._api.functions.dtypes import finfo
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.functions.elementwise.signs import signbit
from fusewire._api.ops.operands import asarray
from fusewire._api.ops.operations import astype
from fusewire._errors import DtypeError
from fusewire_protos.ops import dtypes

__all__ = ["angle", "conj", "imag", "iscomplex", "iscomplexobj", "isreal", "isrealobj", "real", "real_if_close"]


def conj(x: Any, /) -> Array:
    """Returns the complex conjugate of `x`: a real number is its own. Raises DtypeError for booleans."""
    given = _number(x)
    return ComplexArray(given.real_part.copy(), -given.imag_part) if isinstance(given, ComplexArray) else given.copy()


def real(x: Any, /) -> Array:
    """Returns a copy of the real part of `x`, which is all of a real number. Raises DtypeError for booleans."""
    given = _number(x)
    return given.real if isinstance(given, ComplexArray) else given.copy()


def imag(x: Any, /) -> Array:
    """Returns a copy of the imaginary part of `x`, which is 0 of a real number. Raises DtypeError for booleans."""
    given = _number(x)
    return given.imag if isinstance(given, ComplexArray) else zeros_like(given)


def angle(x: Any, /, deg: bool = False) -> Array:  # noqa: FBT001, FBT002  # as NumPy calls it
    """Returns the angle of `x` in the complex plane, from −π to π; of a real number 0 or π. With `deg` in degrees."""
    given = asarray(x)
    if isinstance(given, ComplexArray):
        radians = atan2(given.imag_part, given.real_part)
        return radians * (180.0 / math.pi) if deg else radians
    wide = astype(given, dtypes.to_floating(given.dtype), copy=False)
    return where(isnan(wide), wide, astype(signbit(wide), wide.dtype) * (180.0 if deg else math.pi))


def isreal(x: Any, /) -> Array:
    """Returns for each element whether it has no imaginary part, or one of 0."""
    given = asarray(x)
    return given.imag_part == 0 if isinstance(given, ComplexArray) else full_like(given, True, dtypes.bool_)


def iscomplex(x: Any, /) -> Array:
    """Returns for each element whether it has an imaginary part that is not 0."""
    given = asarray(x)
    return given.imag_part != 0 if isinstance(given, ComplexArray) else zeros_like(given, dtypes.bool_)


def isrealobj(x: Any, /) -> bool:
    """Returns whether the dtype of `x` is not complex."""
    return not x.dtype.is_complex if isinstance(x, Array) else np.isrealobj(x)


def iscomplexobj(x: Any, /) -> bool:
    """Returns whether the dtype of `x` is complex."""
    return not isrealobj(x)


def real_if_close(x: Any, /, tol: float = 100) -> Array:
    """Waits for the imaginary parts. Returns the real part of `x` if all of them are near 0, else a copy of `x`.

    Near is less than `tol` times the distance between 1 and the next number, or than `tol` itself up to 1.
    """
    given = asarray(x)
    if not isinstance(given, ComplexArray):
        return given.copy()
    bound = tol * finfo(given.dtype).eps if tol > 1 else tol
    return given.real if bool((abs(given.imag_part) < bound).all()) else given.copy()


def _number(x: Any) -> Array:
    given = asarray(x)
    if given.dtype.is_boolean:
        raise DtypeError("a boolean has no complex parts; cast with astype first")
    return given
