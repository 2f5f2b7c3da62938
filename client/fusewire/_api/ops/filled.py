"""Makes arrays of one number, and of counted ones, in a session that is given."""

from __future__ import annotations

from numbers import Integral
from typing import Any

import numpy as np

from fusewire import _conversions as conversions
from fusewire._api.array import Array
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._recording.record_op import create
from fusewire_protos.frames import Scalar
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Shape


def filled(session: Any, shape: Shape, value: Any, dtype: DType) -> Array:
    """Returns an array filled with one number, which is cast to `dtype` as `astype` casts. It is no upload."""
    if dtype.is_complex:
        number, part = complex(as_python(value)), dtypes.part_of(dtype)
        return ComplexArray(*[filled(session, shape, each, part) for each in (number.real, number.imag)])
    scalars = ((dtype, fitting(value, dtype)),)
    return create(Array, session.recorder(), BY_NAME["full"], scalars, (shape, dtype.code))


def counted(session: Any, length: int) -> Array:
    """Returns 0, 1, … below `length` in int64."""
    numbers = ((dtypes.int64, 0), (dtypes.int64, 1))
    return create(Array, session.recorder(), BY_NAME["arange"], numbers, (length, dtypes.int64.code))


def fitting(value: Any, dtype: DType) -> Scalar:
    """Returns a fill value as a Python scalar that fits `dtype`. Casts a float to an integer as `astype` does."""
    plain = as_python(value)
    if not hasattr(plain, "__float__"):
        raise TypeError(f"an array is filled with a number, not with a {type(plain).__name__}")
    scalar: Scalar = plain
    if dtype.is_integer:
        scalar = int(plain) if isinstance(plain, Integral) else _whole(float(plain), dtype)
    return scalar


def _whole(value: float, dtype: DType) -> int:
    """Casts `value` to an integer dtype as `astype` does."""
    cast: int = conversions.cast(np.asarray(value), dtypes.to_numpy(dtype)).item()
    return cast


def as_python(value: Any) -> Any:
    """Returns a scalar, or the only element of an array, as a Python scalar."""
    return value.item() if isinstance(value, Array | np.ndarray | np.generic) else value
