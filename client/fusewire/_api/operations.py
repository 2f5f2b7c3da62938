"""Ops with attributes, on arrays: what the methods of an array and the functions of the namespace share."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, SupportsIndex, TypeVar

import numpy as np

from fusewire._errors import ArgumentError, DtypeError, ShapeError
from fusewire._recording.record_op import PYTHON_SCALARS, Recorded, apply, apply_to_one, create
from fusewire_protos import dtypes, shapes
from fusewire_protos.catalogue import BY_NAME, Category, Op
from fusewire_protos.dtypes import DType
from fusewire_protos.shapes import Shape

R = TypeVar("R", bound=Recorded)
Axis = int | Sequence[int] | None

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "equal": operator.eq,
    "not_equal": operator.ne,
    "less": operator.lt,
    "less_equal": operator.le,
    "greater": operator.gt,
    "greater_equal": operator.ge,
}

_PYTHON_DTYPES = {bool: dtypes.bool_, int: dtypes.int64, float: dtypes.float64}


def dtype_of(given: Any) -> DType:
    """Our dtype for ours, a name, a Python type or whatever NumPy takes for one. Raises DtypeError."""
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
    return dtypes.from_numpy(in_numpy)


def axis_of(axis: SupportsIndex, rank: int) -> int:
    """`axis`, an integer of Python's or NumPy's, counted from the front. Raises ShapeError."""
    return shapes.normalise_axis(operator.index(axis), rank)


def axes_of(axis: Axis, rank: int) -> Shape:
    """`axis` as reductions take it: ascending, counted from the front; None means all. Raises ShapeError."""
    if axis is None:
        return tuple(range(rank))
    if isinstance(axis, int):
        return (shapes.normalise_axis(axis, rank),)
    axes = tuple(sorted(axis_of(each, rank) for each in integers_of(axis)))
    if len(set(axes)) != len(axes):
        raise ShapeError(f"axis {axis} names an axis twice")
    return axes


def integers_of(given: SupportsIndex | Iterable[SupportsIndex]) -> Sequence[SupportsIndex]:
    """What may be one integer or several, as several."""
    if isinstance(given, tuple | list):
        return given
    try:
        return (operator.index(given),)  # type: ignore[arg-type]  # TypeError tells
    except TypeError:
        if not isinstance(given, Iterable):
            raise
    return tuple(given)


def shape_of(given: SupportsIndex | Sequence[int]) -> Shape:
    """A shape from an integer or a sequence of them. Raises ShapeError."""
    return shapes.check([operator.index(dim) for dim in integers_of(given)])


def reduce(name: str, x: R, axis: Axis, *, keepdims: bool, scalars: Sequence[float] = ()) -> R:
    """The reduction `name` over `axis`; `scalars` are its operands behind the array."""
    op, rank = BY_NAME[name], len(x._spec.shape)
    if not rank and axis in (0, -1) and op.category is Category.REDUCTION:  # as NumPy allows it, for these alone
        axis = None
    attributes = (axes_of(axis, rank), bool(keepdims))
    if not scalars:
        return apply_to_one(op, x, attributes)
    result: R = apply(op, (x, *scalars), attributes)
    return result


def reduce_nothing(op: Op, x: R, axis: Axis, value: float, *, keepdims: bool) -> R:
    """What `reduce` gives for an `x` without elements, where that is `value` and the op itself takes none."""
    shape = shapes.reduce(x._spec.shape, axes_of(axis, len(x._spec.shape)), keepdims=keepdims)
    dtype = op.dtype_rule((x._spec.dtype,), ()).result
    return create(type(x), x._recorder.owner.recorder(), BY_NAME["full"], ((dtype, value),), (shape, dtype.code))


def correction_of(correction: float, ddof: float) -> float:
    """What `var` takes off the number of elements, by either of its names. Raises ArgumentError for both."""
    if correction and ddof:
        raise ArgumentError(f"correction = {correction} and ddof = {ddof} are two words for one number; give one")
    return float(correction or ddof)


def along(name: str, x: R, axis: Axis, scalars: Sequence[float] = ()) -> R:
    """An op like softmax, which keeps the shape and looks along `axis`."""
    result: R = apply(BY_NAME[name], (x, *scalars), (axes_of(axis, len(x._spec.shape)),))
    return result


def arg_reduce(name: str, x: R, axis: int | None, *, keepdims: bool) -> R:
    """argmin or argmax: along one axis, or over the flattened array. Raises TypeError for several axes."""
    if type(axis) is not int and axis is not None and not hasattr(axis, "__index__"):
        raise TypeError(f"{name} takes one axis or None, not {axis!r}")
    if axis is None and len(x._spec.shape) > 1:
        flat = arg_reduce(name, reshape(x, (-1,)), 0, keepdims=False)
        return reshape(flat, (1,) * len(x._spec.shape)) if keepdims else flat
    return reduce(name, x, axis, keepdims=keepdims)


def astype(x: R, dtype: Any, *, copy: bool = True) -> R:
    """`x` in another dtype; the very same array if it has that one and no copy is asked for."""
    wanted = dtype_of(dtype)
    if wanted is x._spec.dtype and not copy:
        return x
    return apply_to_one(BY_NAME["astype"], x, (wanted.code,))


def reshape(x: R, shape: int | Sequence[int]) -> R:
    """One dim may be −1: it takes what is left."""
    dims = [operator.index(dim) for dim in integers_of(shape)]
    if -1 in dims:
        dims = _fill_in(dims, x._spec.shape)
    return apply_to_one(BY_NAME["reshape"], x, (shapes.check(dims),))


def transpose(x: R, axes: Sequence[int] | None = None) -> R:
    """`axes` reversed if none are given."""
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
    """`op` beside Python integers that the operands' integer dtype cannot hold, as in NumPy.

    Comparisons have one answer for all elements; ops that compute in another dtype, as division does, take the integer
    in that one. Raises `overflow` where it has no meaning, and where such an integer stands in a list.
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
    """Such an integer is on the same side of every value of the dtype, 0 among them."""
    x = next(operand for operand in operands if isinstance(operand, Recorded))
    if not x._spec.dtype.is_integer:
        raise overflow
    answer = _COMPARISONS[op.name](*(0 if operand is x else operand for operand in operands))
    recorder = x._recorder.owner.recorder()
    return create(type(x), recorder, BY_NAME["full"], ((dtypes.bool_, answer),), (x._spec.shape, dtypes.bool_.code))


def check_exponent(base: Any, exponent: Any) -> None:
    """Raises ArgumentError for integers to the power of a negative one. In an array it has a defined value."""
    if not isinstance(exponent, int | np.integer) or exponent >= 0:
        return
    dtype = base._spec.dtype if isinstance(base, Recorded) else dtypes.from_numpy(np.asarray(base).dtype)
    if not dtype.is_floating:
        raise no_integer(dtype, int(exponent))


def no_integer(dtype: DType, exponent: int) -> ArgumentError:
    """The refusal of integers of `dtype` to a negative power."""
    return ArgumentError(f"{dtype.name} to the power of {exponent} is no integer; cast with astype first")


def _in_dtype(value: int, dtype: DType) -> Any:
    if dtype.is_boolean:
        return bool(value)
    with np.errstate(over="ignore"):  # a half is infinite where NumPy's is
        return dtypes.to_numpy(dtype).type(float(value))


def _dtypes_of(operands: Sequence[Any]) -> tuple[DType, ...]:
    """Those of an op's operands, where Python scalars adapt to what is beside them."""
    strong = [_strong_dtype(operand) for operand in operands]
    beside = dtypes.promote_all(dtype for dtype in strong if dtype is not None)
    return tuple(
        dtypes.of_scalar(operand, beside) if dtype is None else dtype
        for operand, dtype in zip(operands, strong, strict=True)
    )


def _strong_dtype(operand: Any) -> DType | None:
    if isinstance(operand, Recorded):
        return operand._spec.dtype
    return dtypes.from_numpy(operand.dtype) if isinstance(operand, np.generic) else None


def round_to(x: R, decimals: SupportsIndex) -> R:
    """To so many decimals, halves to even; negative `decimals` round to tens, hundreds, …"""
    places = operator.index(decimals)
    dtype = x._spec.dtype
    if places == 0 or (places > 0 and not dtype.is_floating):
        return apply_to_one(BY_NAME["round"], x, ())
    into, out_of = ("multiply", "divide") if places > 0 else ("divide", "multiply")
    factor = float(f"1e{abs(places)}")  # infinite beyond the floats, as in NumPy
    scaled = apply(BY_NAME[into], (x, factor))
    rounded: R = apply(BY_NAME[out_of], (apply_to_one(BY_NAME["round"], scaled, ()), factor))
    return astype(rounded, dtype, copy=False)


def broadcast_to(x: R, shape: int | Sequence[int]) -> R:
    return apply_to_one(BY_NAME["broadcast_to"], x, (shape_of(shape),))


def take(x: R, indices: Any, axis: int) -> R:
    """Indices from the back count as in NumPy; those out of range take the first or the last element."""
    axis = axis_of(axis, len(x._spec.shape))
    result: R = apply(BY_NAME["take"], (x, from_the_front(indices, x._spec.shape[axis])), (axis,))
    return result


def from_the_front(indices: R, length: int) -> R:
    """Indices of which negative ones count from the back of an axis of `length`."""
    if not indices._spec.dtype.is_integer:
        raise DtypeError(f"indices have dtype {indices._spec.dtype.name}, not an integer one")
    if not indices._spec.dtype.is_signed:
        return indices
    is_negative = apply(BY_NAME["less"], (indices, 0))
    result: R = apply(BY_NAME["where"], (is_negative, apply(BY_NAME["add"], (indices, length)), indices))
    return result


def _fill_in(dims: list[int], shape: Shape) -> list[int]:
    given = prod(dim for dim in dims if dim != -1)
    if dims.count(-1) > 1 or given == 0 or prod(shape) % given:
        raise ShapeError(f"cannot reshape {shape} ({prod(shape)} elements) to {tuple(dims)}")
    return [prod(shape) // given if dim == -1 else dim for dim in dims]
