"""Records ops with attributes. The methods of an array and the functions of the namespace share this code."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, SupportsIndex, TypeVar

import numpy as np

from fusewire._errors import ArgumentError, DtypeError, ShapeError
from fusewire._recording.record_op import (
    PYTHON_SCALARS,
    Recorded,
    apply,
    apply_to_one,
    create,
    recording_of_types,
)
from fusewire._recording.recorded_ops import known_call
from fusewire_protos.ops import dtypes, shapes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Category, Op
from fusewire_protos.ops.shapes import Shape

R = TypeVar("R", bound=Recorded)
_GREATEST_INDEX = 2**63 - 1
Axis = int | Sequence[int] | None

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}

_PYTHON_DTYPES = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64, complex: dtypes.complex128}


def one_or_many(given: tuple[Any, ...]) -> Any:
    """Returns the arguments of a call `f(…)` as one value.

    `f(1, 2)`, `f((1, 2))` and `f([1, 2])` mean the same. `f()` and `f(None)` give None.
    """
    if len(given) == 1:
        return given[0]
    return given or None


def dtype_of(given: Any) -> DType:
    """Returns the dtype that `given` names. Raises DtypeError.

    `given` is a DType, a name, a Python type, or anything that NumPy accepts as a dtype.
    """
    if isinstance(given, DType):
        return given
    if isinstance(given, str) and given in dtypes.BY_NAME:
        return dtypes.BY_NAME[given]
    if isinstance(given, type) and given in _PYTHON_DTYPES:
        return _PYTHON_DTYPES[given]
    try:
        in_numpy = np.dtype(given)
    except TypeError:
        raise DtypeError(f"{given!r} is no dtype") from None
    return dtypes.COMPLEX_BY_NAME.get(in_numpy.name) or dtypes.from_numpy(in_numpy)


def axis_of(axis: SupportsIndex, rank: int, parameter: str | None = None) -> int:
    """Returns `axis`, a Python or NumPy integer, as counted from the front. Raises AxisError, about `parameter`."""
    return shapes.normalise_axis(operator.index(axis), rank, parameter)


def axes_of(axis: Axis, rank: int) -> Shape:
    """Returns the axes of a reduction, ascending and counted from the front. None means all axes.

    Raises AxisError for an axis out of range, and ShapeError for one that is named twice.
    """
    if axis is None:
        return tuple(range(rank))
    if isinstance(axis, int):
        return (shapes.normalise_axis(axis, rank),)
    axes = tuple(sorted(axis_of(each, rank) for each in integers_of(axis)))
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axis {axis} names an axis twice")
    return axes


def integers_of(given: SupportsIndex | Iterable[SupportsIndex]) -> Sequence[SupportsIndex]:
    """Returns one integer or several as a sequence. Raises TypeError."""
    if isinstance(given, tuple | list):
        return given
    try:
        return (operator.index(given),)  # type: ignore[arg-type]  # raises TypeError for an iterable
    except TypeError:
        if not isinstance(given, Iterable):
            raise
    return tuple(given)


def shape_of(given: SupportsIndex | Sequence[int]) -> Shape:
    """Returns the shape that an integer or a sequence of integers gives. Raises ShapeError."""
    return shapes.check([operator.index(dim) for dim in integers_of(given)])


@known_call
def reduce(name: str, x: R, axis: Axis, *, keepdims: bool, scalars: Sequence[float] = ()) -> R:
    """Records the reduction `name` over `axis`; `scalars` are the operands behind the array."""
    op, rank = BY_NAME[name], len(x._spec.shape)
    if not rank and axis in (0, -1) and op.category is Category.REDUCTION:  # NumPy allows this axis for these ops
        axis = None
    result: R = apply(op, (x, *scalars), (axes_of(axis, rank), bool(keepdims)))
    return result


def reduce_nothing(op: Op, x: R, axis: Axis, value: float, *, keepdims: bool) -> R:
    """Records `value` everywhere as the reduction of an `x` without elements. The op itself refuses such an `x`."""
    shape = shapes.reduce(x._spec.shape, axes_of(axis, len(x._spec.shape)), keepdims=keepdims)
    dtype = op.dtype_rule((x._spec.dtype,), ()).result
    return create(type(x), x._recorder.owner.recorder(), BY_NAME["full"], ((dtype, value),), (shape, dtype.code))


def correction_of(correction: float, ddof: float) -> float:
    """Returns the number that `var` subtracts from the number of elements.

    Raises ArgumentError if it is given under both names.
    """
    if correction and ddof:
        raise ArgumentError(f"correction = {correction} and ddof = {ddof} are two names of one number; give one")
    return float(correction or ddof)


@known_call
def along(name: str, x: R, axis: Axis, scalars: Sequence[float] = ()) -> R:
    """Records an op like softmax, which keeps the shape and normalises along `axis`."""
    result: R = apply(BY_NAME[name], (x, *scalars), (axes_of(axis, len(x._spec.shape)),))
    return result


def arg_reduce(name: str, x: R, axis: int | None, *, keepdims: bool) -> R:
    """Records argmin or argmax along one axis, or of the flattened array. Raises TypeError for several axes."""
    if type(axis) is not int and axis is not None and not hasattr(axis, "__index__"):
        raise TypeError(f"{name} takes one axis or None, not {axis!r}")
    if axis is None and len(x._spec.shape) > 1:
        flat = arg_reduce(name, reshape(x, (-1,)), 0, keepdims=False)
        return reshape(flat, (1,) * len(x._spec.shape)) if keepdims else flat
    return reduce(name, x, axis, keepdims=keepdims)


@known_call
def astype(x: R, dtype: Any, *, copy: bool = True) -> R:
    """Returns `x` in another dtype, or `x` itself if it has that dtype already and `copy` is False."""
    wanted = dtype_of(dtype)
    if wanted is x._spec.dtype and not copy:
        return x
    if wanted.is_complex:  # the op does not know it
        return recording_of_types[complex](BY_NAME["astype"], (x,), (wanted.code,), ())  # type: ignore[no-any-return]
    return apply_to_one(BY_NAME["astype"], x, (wanted.code,))


@known_call
def reshape(x: R, shape: int | Sequence[int], order: str = "C") -> R:
    """Returns the elements of `x` in another shape. One dim may be −1: it is computed from the others.

    They are taken and laid out in row-major order, or with `order` "F" in column-major order. Raises ArgumentError for
    another order.
    """
    if order != "C":
        return _reshape_by_columns(x, shape, order)
    dims = [operator.index(dim) for dim in integers_of(shape)]
    if -1 in dims:
        dims = _fill_in(dims, x._spec.shape)
    return apply_to_one(BY_NAME["reshape"], x, (shapes.check(dims),))


def _reshape_by_columns(x: R, shape: int | Sequence[int], order: str) -> R:
    if order not in ("A", "F"):
        raise ArgumentError(f"order = {order!r} is none of 'C', 'F' and 'A'")
    if order == "A":  # of an array in row-major order that is row-major order
        return reshape(x, shape)
    return transpose(reshape(transpose(x), [operator.index(dim) for dim in integers_of(shape)][::-1]))


@known_call
def transpose(x: R, axes: Sequence[int] | None = None) -> R:
    """Returns `x` with its axes in the order of `axes`, or in reverse order if `axes` is None."""
    rank = len(x._spec.shape)
    order = range(rank - 1, -1, -1) if axes is None else (axis_of(axis, rank) for axis in integers_of(axes))
    return apply_to_one(BY_NAME["transpose"], x, (tuple(order),))


def squeeze(x: R, axis: Axis) -> R:
    shape = x._spec.shape
    axes = tuple(i for i, dim in enumerate(shape) if dim == 1) if axis is None else axes_of(axis, len(shape))
    if any(shape[each] != 1 for each in axes):
        raise ShapeError(f"cannot squeeze axes {axes} of {shape}: not all have length 1")
    return reshape(x, tuple(dim for each, dim in enumerate(shape) if each not in axes))


def expand_dims(x: R, axis: int | Sequence[int]) -> R:
    given = integers_of(axis)
    rank = len(x._spec.shape) + len(given)
    new = {axis_of(each, rank) for each in given}
    if len(new) != len(given):
        raise ShapeError(f"axis {axis} names an axis twice")
    old = iter(x._spec.shape)
    return reshape(x, tuple(1 if each in new else next(old) for each in range(rank)))


def apply_beyond_range(op: Op, operands: Sequence[Any], overflow: OverflowError) -> Any:
    """Records `op` with Python integers that the operands' integer dtype cannot hold, as NumPy does.

    A comparison has one answer for all elements. An op that computes in another dtype, such as division, converts the
    integer to that dtype. Other ops raise `overflow`, and so does such an integer in a list.
    """
    if not all(isinstance(operand, (Recorded, np.generic, *PYTHON_SCALARS)) for operand in operands):
        raise overflow
    if op.name in _COMPARISONS:
        return _compare_beyond_range(op, operands, overflow)
    given = _dtypes_of(operands)
    computed = op.dtype_rule(given, ()).operands[-1]
    if computed.is_integer or any(dtype.is_floating for dtype in given):
        raise overflow
    return apply(op, [_in_dtype(operand, computed) if type(operand) is int else operand for operand in operands])


def _compare_beyond_range(op: Op, operands: Sequence[Any], overflow: OverflowError) -> Any:
    """Records the answer. It is the same for all elements, so it is found with 0 in place of the array."""
    x = next(operand for operand in operands if isinstance(operand, Recorded))
    if not x._spec.dtype.is_integer:
        raise overflow
    answer = _COMPARISONS[op.name](*(0 if operand is x else operand for operand in operands))
    recorder = x._recorder.owner.recorder()
    return create(type(x), recorder, BY_NAME["full"], ((dtypes.bool_, answer),), (x._spec.shape, dtypes.bool_.code))


def check_exponent(base: Any, exponent: Any) -> None:
    """Raises ArgumentError for integers to a negative scalar power. A power in an array is not checked."""
    if not isinstance(exponent, int | np.integer) or exponent >= 0:
        return
    dtype = base._spec.dtype if isinstance(base, Recorded) else dtype_of(np.asarray(base).dtype)
    if not (dtype.is_floating or dtype.is_complex):
        raise no_integer(dtype, int(exponent))


def no_integer(dtype: DType, exponent: int) -> ArgumentError:
    """Returns the error for integers of `dtype` to a negative power."""
    return ArgumentError(f"{dtype.name} to the power of {exponent} is no integer; cast with astype first")


def _in_dtype(value: int, dtype: DType) -> Any:
    if dtype.is_boolean:
        return bool(value)
    with np.errstate(over="ignore"):  # a value too large for float16 becomes infinite, as in NumPy
        return dtypes.to_numpy(dtype).type(float(value))


def _dtypes_of(operands: Sequence[Any]) -> tuple[DType, ...]:
    """Returns the dtypes of an op's operands. Python scalars adapt to the other operands."""
    strong = [_strong_dtype(operand) for operand in operands]
    beside = dtypes.promote_all(dtype for dtype in strong if dtype is not None)
    return tuple(
        dtypes.of_scalar(operand, beside) if dtype is None else dtype
        for operand, dtype in zip(operands, strong, strict=True)
    )


def _strong_dtype(operand: Any) -> DType | None:
    if isinstance(operand, Recorded):
        return operand._spec.dtype
    return dtype_of(operand.dtype) if isinstance(operand, np.generic) else None


def round_to(x: R, decimals: SupportsIndex) -> R:
    """Rounds `x` to `decimals` places, with ties to even. Negative `decimals` round to tens, hundreds, …"""
    places = operator.index(decimals)
    dtype = x._spec.dtype
    if places == 0 or (places > 0 and not dtype.is_floating):
        return apply_to_one(BY_NAME["round"], x, ())
    into, out_of = ("multiply", "divide") if places > 0 else ("divide", "multiply")
    factor = float(f"1e{abs(places)}")  # infinite for more than 308 places, as in NumPy
    scaled = apply(BY_NAME[into], (x, factor))
    rounded: R = apply(BY_NAME[out_of], (apply_to_one(BY_NAME["round"], scaled, ()), factor))
    return astype(rounded, dtype, copy=False)


@known_call
def broadcast_to(x: R, shape: int | Sequence[int]) -> R:
    return apply_to_one(BY_NAME["broadcast_to"], x, (shape_of(shape),))


def take(x: R, indices: Recorded, axis: int) -> R:
    """Returns the elements at `indices`, an array on the server.

    Negative indices count from the back. Indices out of range mean the first or the last element, and a session that
    debugs raises IndexError at its next read.
    """
    axis = axis_of(axis, len(x._spec.shape))
    length, checks = x._spec.shape[axis], x._recorder.owner.index_checks
    places = from_the_front(indices, length)
    if checks is not None:
        checks.check(indices, length)
    return take_places(x, places, axis)


def take_places(x: R, places: Recorded, axis: int) -> R:
    """Returns the elements at `places`, an array on the server of integers that are counted from the front."""
    result: R = apply(BY_NAME["take"], (x, places), (axis,))
    return result


def from_the_front(indices: R, length: int) -> R:
    """Returns `indices` counted from the front of an axis of `length`; negative `indices` are counted from the back.

    They are wide enough to count so, and none is more than int64 holds, as which a server takes them.
    """
    dtype = indices._spec.dtype
    if not dtype.is_integer:
        raise DtypeError(f"indices have dtype {dtype.name}, not an integer one")
    if dtype is dtypes.uint64:
        at_most: R = apply(BY_NAME["minimum"], (indices, _GREATEST_INDEX))
        return at_most
    if not dtype.is_signed:
        return indices
    if length >> (8 * dtype.itemsize_bytes - 1):
        indices = astype(indices, dtypes.int64)
    is_negative = apply(BY_NAME["less"], (indices, 0))
    result: R = apply(BY_NAME["where"], (is_negative, apply(BY_NAME["add"], (indices, length)), indices))
    return result


def _fill_in(dims: list[int], shape: Shape) -> list[int]:
    given = prod(dim for dim in dims if dim != -1)
    if dims.count(-1) > 1 or given == 0 or prod(shape) % given:
        raise ShapeError(f"cannot reshape {shape} ({prod(shape)} elements) to {tuple(dims)}")
    return [prod(shape) // given if dim == -1 else dim for dim in dims]
