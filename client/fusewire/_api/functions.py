"""The public functions that are written by hand, with the parameters of NumPy and the array API standard.

A function is here for one of three reasons: its parameters are not the operands and attributes of its op, it consists
of several ops, or it is a second name of a function. All other functions are in `catalogued`.
"""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Iterable, Sequence
from itertools import cycle, pairwise
from numbers import Integral
from typing import Any

import numpy as np

from fusewire import _conversions as conversions
from fusewire._api import operations
from fusewire._api.array import Array
from fusewire._api.catalogued import floor, maximum, minimum, power
from fusewire._api.operands import apply_to_any, array_beside, arrays_of, asarray
from fusewire._api.operations import Axis, axes_of, axis_of, dtype_of, integers_of, shape_of
from fusewire._errors import ArgumentError, QuotaExceeded, ShapeError
from fusewire._recording.default_session import default_session
from fusewire._recording.record_op import PYTHON_SCALARS, apply, apply_to_one, create
from fusewire_protos.frames import Scalar
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.programs.limits import MOST_LEAVES

ShapeLike = int | Sequence[int]


def array(data: Any, dtype: Any = None, *, copy: bool | None = True) -> Array:
    """Does the same as `asarray`, but copies `data` by default if it is an array."""
    return asarray(data, dtype, copy=copy)


# ---- pointwise ----


pow = power  # noqa: A001  # the standard's name


def round(x: Any, /, decimals: int = 0) -> Array:  # noqa: A001  # the standard's name
    """Rounds `x` to `decimals` places, with ties to even. Negative `decimals` round to tens, hundreds, …"""
    return asarray(x).round(decimals)


def where(condition: Any, x1: Any, x2: Any, /) -> Array:
    """Returns `x1` where `condition` holds, else `x2`."""
    return apply_to_any(BY_NAME["where"], condition, x1, x2)


def clip(x: Any, /, min: Any = None, max: Any = None) -> Array:  # noqa: A002  # the standard's names
    """Limits `x` to values from `min` to `max`. None sets no bound."""
    least, most = _bounds(x, min, max)
    if least is None and most is None:
        return array(x)
    if least is None:
        return minimum(x, most)
    if most is None:
        return maximum(x, least)
    return apply_to_any(BY_NAME["clip"], x, least, most)


def _bounds(x: Any, least: Any, most: Any) -> tuple[Any, Any]:
    """Returns the bounds of `clip`.

    A Python integer that limits no value of the operands' integer dtype becomes None.
    """
    strong = [dtype_of(each.dtype) for each in (x, least, most) if isinstance(each, Array | np.ndarray | np.generic)]
    if not strong or not dtypes.promote_all(strong).is_integer:
        return least, most
    limits = np.iinfo(dtypes.to_numpy(dtypes.promote_all(strong)))
    is_below = type(least) is int and least <= limits.min
    is_above = type(most) is int and most >= limits.max
    return (None if is_below else least), (None if is_above else most)


def astype(x: Any, dtype: Any, /, *, copy: bool = True) -> Array:
    """Casts `x` to another dtype. Floats become integers by truncation; floats out of range saturate, NaN becomes 0."""
    return operations.astype(asarray(x), dtype, copy=copy)


# ---- reductions, and ops along axes ----


def sum(x: Any, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Array:  # noqa: A001
    """Returns the sum along `axis`. Integers and booleans are summed in int64, 16-bit floats in float32."""
    return asarray(x).sum(axis, dtype=dtype, keepdims=keepdims)


def prod(x: Any, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """Returns the product along `axis`. Integers and booleans are multiplied in int64, 16-bit floats in float32."""
    return asarray(x).prod(axis, dtype=dtype, keepdims=keepdims)


def mean(x: Any, /, axis: Axis = None, dtype: Any = None, *, keepdims: bool = False) -> Array:
    """Returns the mean along `axis`. The mean of integers is float64."""
    return asarray(x).mean(axis, dtype=dtype, keepdims=keepdims)


def var(x: Any, /, axis: Axis = None, *, correction: float = 0, ddof: float = 0, keepdims: bool = False) -> Array:
    """Returns the variance along `axis`: the sum of squared distances from the mean, divided by n − `correction`.

    n is the number of elements. `ddof` is NumPy's name of `correction`.
    """
    return asarray(x).var(axis, correction=correction, ddof=ddof, keepdims=keepdims)


def std(x: Any, /, axis: Axis = None, *, correction: float = 0, ddof: float = 0, keepdims: bool = False) -> Array:
    """Returns the square root of `var`."""
    return asarray(x).std(axis, correction=correction, ddof=ddof, keepdims=keepdims)


def argmin(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Returns the index of the first least element, in int64."""
    return asarray(x).argmin(axis, keepdims=keepdims)


def argmax(x: Any, /, axis: int | None = None, *, keepdims: bool = False) -> Array:
    """Returns the index of the first greatest element, in int64."""
    return asarray(x).argmax(axis, keepdims=keepdims)


def layer_norm(x: Any, weight: Any = None, bias: Any = None, *, axis: Axis = -1, epsilon: float = 1e-5) -> Array:
    """Returns (x − mean) / sqrt(var + epsilon) along `axis`, times `weight` and plus `bias` if they are given."""
    normal = operations.along("layer_norm", array_beside(x, weight, bias), axis, (float(epsilon),))
    scaled = normal if weight is None else normal * weight
    return scaled if bias is None else scaled + bias


# ---- products ----


def dot(x1: Any, x2: Any, /) -> Array:
    """Returns the product of two matrices, vectors or scalars as NumPy does, for ranks up to 2."""
    a, b = arrays_of(x1, x2)
    if not a.ndim or not b.ndim:
        return a * b
    if a.ndim > 2 or b.ndim > 2:
        raise ShapeError(f"dot takes ranks up to 2, not {a.ndim} and {b.ndim}; use matmul")
    return a @ b


def outer(x1: Any, x2: Any, /) -> Array:
    """Flattens `x1` and `x2`, and returns the product of each element of `x1` with each element of `x2`."""
    a, b = arrays_of(x1, x2)
    return a.reshape(-1, 1) * b.reshape(1, -1)


# ---- shapes and places ----


def reshape(x: Any, /, shape: ShapeLike) -> Array:
    """Returns the elements of `x` in another shape. One dim may be −1: it is computed from the others."""
    return operations.reshape(asarray(x), shape)


def ravel(x: Any, /) -> Array:
    return operations.reshape(asarray(x), (-1,))


def transpose(x: Any, /, axes: Sequence[int] | None = None) -> Array:
    """Returns `x` with its axes in the order of `axes`, or in reverse order if `axes` is None."""
    return operations.transpose(asarray(x), axes)


permute_dims = transpose


def matrix_transpose(x: Any, /) -> Array:
    """Returns `x` with its last two axes exchanged."""
    return asarray(x).mT


def swapaxes(x: Any, /, axis1: int, axis2: int) -> Array:
    given = asarray(x)
    order = list(range(given.ndim))
    first, second = (axis_of(axis, given.ndim) for axis in (axis1, axis2))
    order[first], order[second] = order[second], order[first]
    return operations.transpose(given, order)


def squeeze(x: Any, /, axis: Axis = None) -> Array:
    """Returns `x` without the axes in `axis`, or without all axes of length 1 if `axis` is None."""
    return operations.squeeze(asarray(x), axis)


def expand_dims(x: Any, /, axis: int | Sequence[int]) -> Array:
    """Returns `x` with a new axis of length 1 at each place in `axis`."""
    return operations.expand_dims(asarray(x), axis)


def broadcast_to(x: Any, /, shape: ShapeLike) -> Array:
    return operations.broadcast_to(asarray(x), shape)


def concat(arrays: Sequence[Any], /, axis: int | None = 0) -> Array:
    """Joins the arrays along `axis`. If `axis` is None, flattens the arrays first."""
    given = arrays_of(*arrays)
    if not given:
        raise ArgumentError("concat takes at least one array")
    if axis is None:
        given, axis = [ravel(each) for each in given], 0
    most = given[0].session.limits.program_operands
    if len(given) > most:
        raise QuotaExceeded(f"concat of {len(given)} operands; limits.program_operands = {most}")
    if len(given) > MOST_LEAVES:
        raise QuotaExceeded(f"concat of {len(given)} operands; the most is {MOST_LEAVES}")
    joined: Array = apply(BY_NAME["concat"], given, (axis_of(axis, given[0].ndim),))
    return joined


concatenate = concat


def stack(arrays: Sequence[Any], /, axis: int = 0) -> Array:
    """Joins the arrays along a new axis."""
    given = arrays_of(*arrays)
    if not given:
        raise ArgumentError("stack takes at least one array")
    if len({each.shape for each in given}) > 1:
        raise ShapeError(f"stack takes arrays of one shape, not {', '.join(str(each.shape) for each in given)}")
    new = axis_of(axis, given[0].ndim + 1)
    shape = (*given[0].shape[:new], 1, *given[0].shape[new:])
    return concat([apply_to_one(BY_NAME["reshape"], each, (shape,)) for each in given], axis=new)


def split(x: Any, /, indices_or_sections: int | Sequence[int], axis: int = 0) -> list[Array]:
    """Splits `x` along `axis` into a number of equal parts, or at the given indices."""
    given = asarray(x)
    axis = axis_of(axis, given.ndim)
    length = given.shape[axis]
    places = [0, *_split_points(indices_or_sections, length), length]
    before = (slice(None),) * axis
    return [given[*before, slice(start, stop)] for start, stop in pairwise(places)]


def _split_points(sections: int | Sequence[int], length: int) -> Sequence[int]:
    """Returns the indices at which `split` divides an axis of `length`."""
    if isinstance(sections, Iterable):
        return sections
    parts = operator.index(sections)
    if parts < 1 or length % parts:
        raise ShapeError(f"an axis of length {length} does not split into {parts} equal parts")
    part = length // parts
    return [part * count for count in range(1, parts)]


def flip(x: Any, /, axis: Axis = None) -> Array:
    """Reverses the order of the elements of `x` along `axis`, or along all axes if `axis` is None."""
    given = asarray(x)
    axes = axes_of(axis, given.ndim)
    return given[tuple(slice(None, None, -1 if each in axes else 1) for each in range(given.ndim))]


def roll(x: Any, /, shift: int | Sequence[int], axis: int | Sequence[int] | None = None) -> Array:
    """Moves the elements of `x` by `shift` along `axis`; those that leave at one end come in at the other.

    Several axes have a shift each, or one for all. If `axis` is None, flattens `x` first and restores the shape then.
    """
    given = asarray(x)
    if axis is None:
        return reshape(roll(ravel(given), shift, 0), given.shape)
    axes = [axis_of(each, given.ndim) for each in integers_of(axis)]
    shifts = [operator.index(each) for each in integers_of(shift)]
    if len(axes) != len(shifts) and 1 not in (len(axes), len(shifts)):
        raise ArgumentError(f"roll by {len(shifts)} shifts along {len(axes)} axes")
    pairs = zip(axes * len(shifts), shifts, strict=True) if len(axes) == 1 else zip(axes, cycle(shifts), strict=False)
    moved = given.copy()
    for along, places in pairs:
        moved = _rolled(moved, places, along)
    return moved


def _rolled(x: Array, shift: int, axis: int) -> Array:
    length, before = x.shape[axis], (slice(None),) * axis
    first = -shift % length if length else 0
    return concat([x[*before, slice(first, None)], x[*before, slice(None, first)]], axis=axis) if first else x


def take(x: Any, /, indices: Any, axis: int | None = None) -> Array:
    """Returns the elements at `indices` along `axis`. If `axis` is None, `indices` select from the flat array.

    Raises IndexError for an index out of range in a list or a NumPy array. In an array on the server it means the first
    or the last element.
    """
    return array_beside(x, indices).take(indices, axis)


def one_hot(x: Any, classes: int, *, dtype: Any = dtypes.float32) -> Array:
    """Returns `x` with a new last axis of length `classes`: a one at the index in `x`, zeros elsewhere."""
    encoded: Array = apply(BY_NAME["one_hot"], (asarray(x),), (shape_of(classes)[0], dtype_of(dtype).code))
    return encoded


# ---- creation ----


def full(shape: ShapeLike, fill_value: Any, dtype: Any = None) -> Array:
    """Returns an array filled with one number, by default in the number's dtype."""
    wanted = dtype_of(_dtype_or_type(fill_value) if dtype is None else dtype)
    value = wanted, _fitting(fill_value, wanted)
    return _create("full", (value,), (shape_of(shape), wanted.code))


def zeros(shape: ShapeLike, dtype: Any = None) -> Array:
    """Returns an array of zeros, by default float64 as in NumPy."""
    return full(shape, 0, dtypes.float64 if dtype is None else dtype)


def ones(shape: ShapeLike, dtype: Any = None) -> Array:
    """Returns an array of ones, by default float64 as in NumPy."""
    return full(shape, 1, dtypes.float64 if dtype is None else dtype)


empty = zeros


def full_like(x: Any, /, fill_value: Any, dtype: Any = None) -> Array:
    """Returns an array filled with one number, in the shape of `x` and by default in its dtype. Does not upload `x`."""
    like = x if isinstance(x, Array) else np.asarray(x)
    session = x.session if isinstance(x, Array) else default_session()
    wanted = dtype_of(like.dtype if dtype is None else dtype)
    value = wanted, _fitting(fill_value, wanted)
    return create(Array, session.recorder(), BY_NAME["full"], (value,), (shape_of(like.shape), wanted.code))


def zeros_like(x: Any, /, dtype: Any = None) -> Array:
    return full_like(x, 0, dtype)


def ones_like(x: Any, /, dtype: Any = None) -> Array:
    return full_like(x, 1, dtype)


empty_like = zeros_like


def arange(start: Any = None, stop: Any = None, step: Any = 1, dtype: Any = None) -> Array:
    """Returns start, start + step, … below stop. The default dtype is int64 if all three are integers, else float64.

    In an integer dtype the first two elements are truncated, and their distance becomes the step, as in NumPy.
    """
    if stop is None:
        start, stop = None, start
    if stop is None:
        raise TypeError("arange needs to know where to stop")
    start = 0 if start is None else start
    start, stop, step = (_as_python(given) for given in (start, stop, step))
    if step == 0:
        raise ArgumentError("arange with a step of 0 has no end")
    are_integers = builtins.all(isinstance(given, Integral) for given in (start, stop, step))
    wanted = dtype_of(dtype) if dtype is not None else (dtypes.int64 if are_integers else dtypes.float64)
    (length,) = shape_of(_steps_between(start, stop, step))
    if not length:
        start = 0  # without elements, it need not fit the dtype
    if length <= 1:
        step = 0  # an infinite step has no multiple of zero
    if wanted.is_integer:
        start, step = int(start), _whole_step(start, step, wanted) if length > 1 else 0
    return _create("arange", ((wanted, start), (wanted, step)), (length, wanted.code))


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


def linspace(start: float, stop: float, num: int = 50, *, dtype: Any = None, endpoint: bool = True) -> Array:
    """Returns `num` evenly spaced points from `start` to `stop`, by default in float64.

    With `endpoint` the last point is exactly `stop`; without `endpoint` the last point is one step before `stop`. For
    an integer dtype the points are rounded down.
    """
    wanted = dtypes.float64 if dtype is None else dtype_of(dtype)
    (count,) = shape_of(num)
    gaps = count - 1 if endpoint else count
    distance = float(stop) - float(start)
    step = distance / gaps if gaps > 0 else distance
    scalars = (dtypes.float64, float(start)), (dtypes.float64, step)
    points = _create("linspace", scalars, (count, dtypes.float64.code))
    if endpoint and count > 1:
        points[-1] = float(stop)
    return operations.astype(floor(points) if wanted.is_integer else points, wanted, copy=False)


def eye(rows: int, columns: int | None = None, /, *, k: int = 0, dtype: Any = None) -> Array:
    """Returns a matrix with ones on the k-th diagonal and zeros elsewhere, by default float64."""
    wanted = dtypes.float64 if dtype is None else dtype_of(dtype)
    height, width = shape_of((rows, rows if columns is None else columns))
    # Every diagonal outside the matrix gives zeros. The nearest of these is recorded, because attributes are bounded.
    diagonal = builtins.max(-height, builtins.min(operator.index(k), width))
    return _create("eye", (), (height, width, diagonal, wanted.code))


# ---- about dtypes ----


def result_type(*operands: Any) -> DType:
    """Returns the common dtype of arrays, dtypes and Python scalars."""
    strong = [
        operand.dtype if isinstance(operand, Array) else dtype_of(_dtype_in(operand))
        for operand in operands
        if not isinstance(operand, PYTHON_SCALARS)
    ]
    common = dtypes.promote_all(strong) if strong else dtypes.bool_
    for operand in operands:
        if isinstance(operand, PYTHON_SCALARS):
            common = dtypes.of_scalar(operand, common)
    return common


def _dtype_in(operand: Any) -> Any:
    """Returns the dtype of a NumPy array or scalar. Any other operand names a dtype and is returned as it is."""
    return operand.dtype if isinstance(operand, np.ndarray | np.generic) else operand


def _create(name: str, scalars: Sequence[tuple[DType, Scalar]], attributes: tuple[Any, ...]) -> Array:
    return create(Array, default_session().recorder(), BY_NAME[name], scalars, attributes)


def _dtype_or_type(value: Any) -> Any:
    """Returns the dtype of an array or NumPy scalar, or the type of a Python scalar."""
    return value.dtype if isinstance(value, Array | np.ndarray | np.generic) else type(value)


def _fitting(value: Any, dtype: DType) -> Scalar:
    """Returns a fill value as a Python scalar that fits `dtype`. Casts a float to an integer as `astype` does."""
    plain = _as_python(value)
    if not hasattr(plain, "__float__"):
        raise TypeError(f"an array is filled with a number, not with a {type(plain).__name__}")
    fitting: Scalar = plain
    if dtype.is_integer:
        fitting = int(plain) if isinstance(plain, Integral) else _whole(float(plain), dtype)
    return fitting


def _whole(value: float, dtype: DType) -> int:
    """Casts `value` to an integer dtype as `astype` does."""
    cast: int = conversions.cast(np.asarray(value), dtypes.to_numpy(dtype)).item()
    return cast


def _as_python(value: Any) -> Any:
    """Returns a scalar, or the only element of an array, as a Python scalar."""
    return value.item() if isinstance(value, Array | np.ndarray | np.generic) else value
