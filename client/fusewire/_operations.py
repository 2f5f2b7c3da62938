"""Ops with attributes, on arrays: what the methods of an array and the functions of the namespace share."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from math import prod
from typing import Any, SupportsIndex, TypeVar

import numpy as np

from fusewire import _indexing as indexing
from fusewire._errors import ArgumentError, DtypeError, ShapeError
from fusewire._indexing import Index
from fusewire._recording import PYTHON_SCALARS, Recorded, apply, apply_to_one, create
from fusewire_protos import dtypes, shapes
from fusewire_protos.catalogue import BY_NAME, Category, Op
from fusewire_protos.dtypes import DType
from fusewire_protos.shapes import Region, Shape

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


def get_item(x: R, key: Any, as_array: Callable[[Any], R]) -> R:
    """`x[key]`; `as_array` uploads indices that are not on the server yet."""
    index = indexing.read_window(key, x._spec.shape) or indexing.read_index(key, x._spec.shape)
    if index.region is not None:
        x = _region(x, index.region, index.starts)
    if index.new_shape is not None:
        x = reshape(x, index.new_shape)
    return x if index.gather is None else _gather(x, index.gather, as_array)


def with_item(x: R, key: Any, value: Any, as_array: Callable[[Any], R]) -> R:
    """What `x` is after `x[key] = value`; of several values for one element the last stays.

    `value` is an array, or a scalar of Python's or NumPy's; `as_array` uploads where it goes.
    """
    mask = _mask_of(key)
    if mask is not None:
        return _with_masked(x, mask, value, as_array)
    index = indexing.read_index(key, x._spec.shape)
    if index.gather is None:
        return _with_region(x, index, _in_region(value, x._spec.shape, index))
    if index.region is None:
        return _with_gathered(x, index, value, as_array)
    part = _region(x, index.region, index.starts)
    return _with_region(x, index, _with_gathered(part, index, value, as_array))


def _with_region(x: R, index: Index, value: Any) -> R:
    region = index.region or indexing.whole(x._spec.shape)
    starts = index.starts or (0,) * len(region.axes)
    result: R = apply(BY_NAME["assign_slice"], (x, value), tuple(region), starts)
    return result


def _in_region(value: Any, shape: Shape, index: Index) -> Any:
    """`value`, which is to be assigned to a region of an array of `shape`, without the index's new axes."""
    if not isinstance(value, Recorded):
        return value
    if index.new_axes:
        return _laid_out(value, index, (), ())
    return _without_leading_ones(value, len(shape) - (len(index.region.dropped) if index.region else 0))


def _with_gathered(part: R, index: Index, value: Any, as_array: Callable[[Any], R]) -> R:
    """What `part`, the region of an index that gathers, is after the assignment."""
    assert index.gather is not None
    axis, given, shape = index.gathered_axis, index.gather.indices, part._spec.shape
    is_written: Recorded
    if isinstance(given, Recorded):
        is_written = _is_at(given, shape[axis])
        value = _laid_out(value, index, shape, given._spec.shape)
    else:
        indices = indexing.indices_of(given)
        writes = indexing.last_writes(indices, shape[axis])
        is_written = as_array(writes.is_written)
        value = _laid_out(value, index, shape, indices.shape)
        if isinstance(value, Recorded) and value._spec.shape[axis] > 1:
            value = take(value, as_array(writes.writer), axis)
    if isinstance(value, Recorded) and value._spec.shape[axis] == 0:
        return part
    return _where(is_written, value, part, behind=len(shape) - axis - 1)


def _is_at(index: R, length: int) -> R:
    """Of each place of an axis, whether it is the one that an index on the server means."""
    if index._spec.dtype.is_boolean:
        raise indexing.mask_refused()
    if prod(index._spec.shape) != 1:
        raise ArgumentError(
            "of indices on the server one at a time can be assigned to; read several: x[indices.numpy()] = value"
        )
    scalars = (dtypes.int64, 0), (dtypes.int64, 1)
    attributes = length, dtypes.int64.code
    places = create(type(index), index._recorder.owner.recorder(), BY_NAME["arange"], scalars, attributes)
    result: R = apply(BY_NAME["equal"], (places, take(places, reshape(index, ()), 0)))
    return result


def _laid_out(value: Any, index: Index, part: Shape, indices: Shape) -> Any:
    """`value`, which broadcasts to what `index` selects, as it broadcasts to the region of shape `part`.

    The axes of the indices, whose shape is `indices`, become one; the index's new axes go.
    """
    if not isinstance(value, Recorded):
        return value
    value = _of_rank(value, index.selected(part, indices))
    if index.gather is not None:
        value = _joined(value, index.gather, indices)
    old = [dim for axis, dim in enumerate(value._spec.shape) if axis not in index.new_axes]
    return reshape(value, old) if index.new_axes else value


def _of_rank(value: R, target: Shape) -> R:
    """`value` with as many axes as `target`, to which it broadcasts. Raises ShapeError if it does not."""
    value = _without_leading_ones(value, len(target))
    shape = value._spec.shape
    shapes.broadcast_to(shape, target)
    return value if len(shape) == len(target) else reshape(value, (1,) * (len(target) - len(shape)) + shape)


def _joined(value: R, gather: indexing.Gather, indices: Shape) -> R:
    """`value` with the axes of the indices as one, in the place of the axis that they select along."""
    shape, first = value._spec.shape, 0 if gather.comes_first else gather.axis
    behind = first + len(indices)
    if prod(shape[first:behind]) != 1:
        value = broadcast_to(value, shape[:first] + indices + shape[behind:])
    others = [axis for axis in range(len(shape)) if not first <= axis < behind]
    if first != gather.axis:
        value = transpose(value, [*others[: gather.axis], *range(first, behind), *others[gather.axis :]])
    dims = [shape[axis] for axis in others]
    joined = prod(value._spec.shape[gather.axis : gather.axis + len(indices)])
    return reshape(value, [*dims[: gather.axis], joined, *dims[gather.axis :]])


def _mask_of(key: Any) -> Any:
    """`key` as an array of booleans, here or on the server; None if it is none."""
    if isinstance(key, tuple) and len(key) == 1:
        (key,) = key
    if isinstance(key, Recorded):
        return key if key._spec.dtype.is_boolean else None
    host = np.asarray(key) if isinstance(key, list | np.ndarray) else None
    return host if host is not None and host.dtype == np.bool_ else None


def _with_masked(x: R, mask: Any, value: Any, as_array: Callable[[Any], R]) -> R:
    """`x` after an assignment under a mask of its own shape or of its first axes."""
    shape, of_mask = x._spec.shape, mask._spec.shape if isinstance(mask, Recorded) else mask.shape
    if of_mask != shape[: len(of_mask)]:
        raise ArgumentError(f"a mask of shape {of_mask} selects nothing of {shape}: it has that shape, or begins it")
    behind = shape[len(of_mask) :]
    if isinstance(value, Recorded) and not isinstance(mask, Recorded):
        rows = reshape(x, (prod(of_mask), *behind))
        index = Index(None, (), None, indexing.Gather(0, np.flatnonzero(mask), comes_first=False))
        return reshape(_with_gathered(rows, index, value, as_array), shape)
    if isinstance(value, Recorded):
        value = _one_for_all(value, behind)
    return _where(as_array(mask), value, x, behind=len(behind))


def _one_for_all(value: R, shape: Shape) -> R:
    """`value` as it is assigned to each of the elements, of `shape`, that a mask on the server selects."""
    value = _without_leading_ones(value, len(shape))
    try:
        shapes.broadcast_to(value._spec.shape, shape)
    except ShapeError as error:
        raise ShapeError(
            f"{error}; what a mask on the server selects is assigned one value for all, or use where(mask, value, x)"
        ) from None
    return value


def _where(condition: Recorded, value: Any, x: R, *, behind: int) -> R:
    """`value` where `condition` holds, else `x`, whose last axes, so many, the condition has not."""
    if behind:
        condition = reshape(condition, condition._spec.shape + (1,) * behind)
    result: R = apply(BY_NAME["where"], (condition, _in_dtype_of(x, value), x))
    return result


def _in_dtype_of(x: R, value: Any) -> Any:
    """`value` cast before it meets `x`: promoted to a common dtype, the elements that stay might change."""
    dtype = x._spec.dtype
    if isinstance(value, Recorded):
        return astype(value, dtype, copy=False)
    given = dtypes.from_numpy(value.dtype) if isinstance(value, np.generic) else dtypes.of_scalar(value, dtype)
    if given is dtype:
        return value
    plain = value.item() if isinstance(value, np.generic) else value
    scalar = create(type(x), x._recorder.owner.recorder(), BY_NAME["full"], ((given, plain),), ((), given.code))
    return astype(scalar, dtype)


def _gather(x: R, gather: indexing.Gather, as_array: Callable[[Any], R]) -> R:
    indices = _index_array(gather.indices, as_array)
    gathered = take(x, indices, gather.axis)
    if not gather.comes_first:
        return gathered
    axes = list(range(len(gathered._spec.shape)))
    end = gather.axis + len(indices._spec.shape)
    return transpose(gathered, [*axes[gather.axis : end], *axes[: gather.axis], *axes[end:]])


def _region(x: R, region: Region, starts: Sequence[int]) -> R:
    return apply_to_one(BY_NAME["slice"], x, tuple(region), starts)


def _index_array(indices: Any, as_array: Callable[[Any], R]) -> R:
    if isinstance(indices, list | tuple):
        host = np.asarray(indices)
        indices = host if host.size else host.astype(np.int64)  # an empty list has floats by default
    array = as_array(indices)
    if array._spec.dtype.is_boolean:
        raise indexing.mask_refused()
    return array


def _without_leading_ones(value: Any, rank: int) -> Any:
    shape = value._spec.shape
    surplus = len(shape) - rank
    if surplus > 0 and all(dim == 1 for dim in shape[:surplus]):
        return reshape(value, shape[surplus:])
    return value


def _fill_in(dims: list[int], shape: Shape) -> list[int]:
    given = prod(dim for dim in dims if dim != -1)
    if dims.count(-1) > 1 or given == 0 or prod(shape) % given:
        raise ShapeError(f"cannot reshape {shape} ({prod(shape)} elements) to {tuple(dims)}")
    return [prod(shape) // given if dim == -1 else dim for dim in dims]
