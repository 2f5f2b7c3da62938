"""Functions that make arrays: of one number, of evenly spaced ones, of ones at places."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Sequence
from numbers import Integral
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.catalogue.catalogued import floor
from fusewire._api.complex.complex_array import ComplexArray
from fusewire._api.devices import Device, check_device, session_on
from fusewire._api.ops import operations
from fusewire._api.ops.filled import as_python, counted, filled
from fusewire._api.ops.operands import asarray
from fusewire._api.ops.operations import dtype_of, shape_of
from fusewire._errors import ArgumentError, DtypeError
from fusewire._recording.default_session import default_session
from fusewire._recording.record_op import apply, create
from fusewire_protos.frames import Scalar
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType

__all__ = [
    "arange",
    "array",
    "asarray",
    "copy",
    "empty",
    "empty_like",
    "eye",
    "from_dlpack",
    "full",
    "full_like",
    "identity",
    "linspace",
    "one_hot",
    "ones",
    "ones_like",
    "tri",
    "zeros",
    "zeros_like",
]

ShapeLike = int | Sequence[int]


def array(data: Any, dtype: Any = None, *, device: Device = None, copy: bool | None = True, ndmin: int = 0) -> Array:
    """Does the same as `asarray`, but copies `data` by default if it is an array. Axes of length 1 come in front of
    less than `ndmin` ones.
    """
    made = asarray(data, dtype, device=device, copy=copy)
    return made.reshape((1,) * (ndmin - made.ndim) + made.shape) if made.ndim < ndmin else made


def copy(x: Any, /) -> Array:
    """Returns a copy of an array, and uploads what is none."""
    return array(x)


def from_dlpack(x: Any, /, *, device: Device = None, copy: bool | None = None) -> Array:
    """Returns a copy of an array of ours, and uploads what another library exports by DLPack.

    Another library's array must be in this machine's memory. Raises AttributeError for what does not export,
    BufferError for what cannot be exported, and ArgumentError, a ValueError, if `copy` is False and `x` is no array of
    ours.
    """
    if isinstance(x, Array):
        return asarray(x, device=device, copy=copy is not False)
    return asarray(np.from_dlpack(x), device=device, copy=copy)


def one_hot(x: Any, classes: int, *, dtype: Any = dtypes.float32) -> Array:
    """Returns `x` with a new last axis of length `classes`: a one at the index in `x`, zeros elsewhere."""
    encoded: Array = apply(BY_NAME["one_hot"], (asarray(x),), (shape_of(classes)[0], dtype_of(dtype).code))
    return encoded


def full(shape: ShapeLike, fill_value: Any, dtype: Any = None, *, device: Device = None) -> Array:
    """Returns an array filled with one number, by default in the number's dtype.

    fw.full((2, 3), 7).dtype  # fusewire.int64
    """
    wanted = dtype_of(_dtype_or_type(fill_value) if dtype is None else dtype)
    return filled(session_on(device), shape_of(shape), fill_value, wanted)


def zeros(shape: ShapeLike, dtype: Any = None, *, device: Device = None) -> Array:
    """Returns an array of zeros, by default float64 as in NumPy."""
    return full(shape, 0, dtypes.float64 if dtype is None else dtype, device=device)


def ones(shape: ShapeLike, dtype: Any = None, *, device: Device = None) -> Array:
    """Returns an array of ones, by default float64 as in NumPy."""
    return full(shape, 1, dtypes.float64 if dtype is None else dtype, device=device)


empty = zeros


def full_like(x: Any, /, fill_value: Any, dtype: Any = None, *, device: Device = None) -> Array:
    """Returns an array filled with one number, in the shape of `x` and by default in its dtype. Does not upload `x`."""
    like = x if isinstance(x, Array) else np.asarray(x)
    session = x.session if isinstance(x, Array) else default_session()
    check_device(session, device)
    wanted = dtype_of(like.dtype if dtype is None else dtype)
    return filled(session, shape_of(like.shape), fill_value, wanted)


def zeros_like(x: Any, /, dtype: Any = None, *, device: Device = None) -> Array:
    """Returns an array of zeros, in the shape of `x` and by default in its dtype. Does not upload `x`."""
    return full_like(x, 0, dtype, device=device)


def ones_like(x: Any, /, dtype: Any = None, *, device: Device = None) -> Array:
    """Returns an array of ones, in the shape of `x` and by default in its dtype. Does not upload `x`."""
    return full_like(x, 1, dtype, device=device)


empty_like = zeros_like


def arange(start: Any = None, stop: Any = None, step: Any = 1, dtype: Any = None, *, device: Device = None) -> Array:
    """Returns start, start + step, … below stop. The default dtype is int64 if all three are integers, else float64.

    In an integer dtype the first two elements are truncated, and their distance becomes the step, as in NumPy.
    """
    if stop is None:
        start, stop = None, start
    if stop is None:
        raise TypeError("arange needs to know where to stop")
    start = 0 if start is None else start
    start, stop, step = (as_python(given) for given in (start, stop, step))
    if step == 0:
        raise ArgumentError("arange with a step of 0 has no end")
    are_integers = builtins.all(isinstance(given, Integral) for given in (start, stop, step))
    wanted = dtype_of(dtype) if dtype is not None else (dtypes.int64 if are_integers else dtypes.float64)
    if wanted.is_complex:
        return operations.astype(arange(start, stop, step, dtypes.part_of(wanted), device=device), wanted)
    (length,) = shape_of(_steps_between(start, stop, step))
    if not length:
        start = 0  # without elements, it need not fit the dtype
    if length <= 1:
        step = 0  # an infinite step has no multiple of zero
    if wanted.is_integer:
        start, step = int(start), _whole_step(start, step, wanted) if length > 1 else 0
    return _create("arange", ((wanted, start), (wanted, step)), (length, wanted.code), device)


def _steps_between(start: Any, stop: Any, step: Any) -> int:
    """Returns how many of start, start + step, … come before stop. Raises ArgumentError if that is no number."""
    steps = (stop - start) / step
    if not math.isfinite(steps):
        raise ArgumentError(f"arange({start}, {stop}, {step}) has no length")
    is_first_alone = steps == 0 and stop != start and math.copysign(1, steps) > 0  # the step is beyond all bounds
    return 1 if is_first_alone else builtins.max(math.ceil(steps), 0)


def _whole_step(start: Any, step: Any, dtype: DType) -> int:
    """Returns the distance between the first two elements in an integer dtype.

    In an unsigned dtype a negative distance wraps around.
    """
    distance = int(start + step) - int(start)
    least_distance = -np.iinfo(dtypes.to_numpy(dtype)).max
    if not dtype.is_signed and least_distance <= distance < 0:
        return distance - least_distance + 1
    return distance


def linspace(  # the standard's parameters
    start: complex,
    stop: complex,
    num: int = 50,
    *,
    dtype: Any = None,
    device: Device = None,
    endpoint: bool = True,
    retstep: bool = False,
) -> Any:
    """Returns `num` evenly spaced points from `start` to `stop`, by default in float64.

    With `retstep` their distance follows, and the two are a tuple.
    With `endpoint` the last point is exactly `stop`; without `endpoint` the last point is one step before `stop`. For
    an integer dtype the points are rounded down. Complex ends, or a complex dtype, give points on a line of the plane.
    """
    if isinstance(start, complex) or isinstance(stop, complex) or (dtype is not None and dtype_of(dtype).is_complex):
        ends = complex(start), complex(stop)
        return _complex_linspace(ends, num, dtype, device, endpoint=endpoint, retstep=retstep)
    wanted = dtypes.float64 if dtype is None else dtype_of(dtype)
    (count,) = shape_of(num)
    gaps = count - 1 if endpoint else count
    distance = float(stop) - float(start)
    step = distance / gaps if gaps > 0 else distance
    scalars = (dtypes.float64, float(start)), (dtypes.float64, step)
    points = _create("linspace", scalars, (count, dtypes.float64.code), device)
    if endpoint and count > 1:
        points[-1] = float(stop)
    spaced = operations.astype(floor(points) if wanted.is_integer else points, wanted, copy=False)
    return (spaced, step if gaps > 0 else math.nan) if retstep else spaced


def _complex_linspace(
    ends: tuple[complex, complex], num: int, dtype: Any, device: Device, *, endpoint: bool, retstep: bool
) -> Any:
    """Returns what `linspace` does. The two parts are evenly spaced by themselves."""
    wanted = dtypes.complex128 if dtype is None else dtype_of(dtype)
    if not wanted.is_complex:
        raise DtypeError(f"linspace of complex numbers has a complex dtype, not {wanted.name}")
    (real, step), (imag, imag_step) = [
        linspace(first, last, num, device=device, endpoint=endpoint, retstep=True)
        for first, last in zip(*[(each.real, each.imag) for each in ends], strict=True)
    ]
    points = operations.astype(ComplexArray(real, imag), wanted, copy=False)
    return (points, complex(step, imag_step)) if retstep else points


def eye(rows: int, columns: int | None = None, /, *, k: int = 0, dtype: Any = None, device: Device = None) -> Array:
    """Returns a matrix with ones on the k-th diagonal and zeros elsewhere, by default float64."""
    wanted = dtypes.float64 if dtype is None else dtype_of(dtype)
    if wanted.is_complex:
        return operations.astype(eye(rows, columns, k=k, dtype=dtypes.part_of(wanted), device=device), wanted)
    height, width = shape_of((rows, rows if columns is None else columns))
    # Every diagonal outside the matrix gives zeros. The nearest of these is recorded, because attributes are bounded.
    diagonal = builtins.max(-height, builtins.min(operator.index(k), width))
    return _create("eye", (), (height, width, diagonal, wanted.code), device)


def identity(n: int, dtype: Any = None) -> Array:
    """Returns the square matrix with ones on its diagonal, by default float64."""
    return eye(n, dtype=dtype)


def tri(rows: int, columns: int | None = None, /, k: int = 0, dtype: Any = None) -> Array:
    """Returns a matrix with ones on the k-th diagonal and below, and zeros above, by default float64."""
    height, width = shape_of((rows, rows if columns is None else columns))
    session = session_on(None)
    is_below = counted(session, width) - counted(session, height).reshape(-1, 1) <= operator.index(k)
    return operations.astype(is_below, dtypes.float64 if dtype is None else dtype)


def _create(name: str, scalars: Sequence[tuple[DType, Scalar]], attributes: tuple[Any, ...], device: Device) -> Array:
    return create(Array, session_on(device).recorder(), BY_NAME[name], scalars, attributes)


def _dtype_or_type(value: Any) -> Any:
    """Returns the dtype of an array or NumPy scalar, or the type of a Python scalar."""
    return value.dtype if isinstance(value, Array | np.ndarray | np.generic) else type(value)
