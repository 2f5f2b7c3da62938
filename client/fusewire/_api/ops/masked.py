"""Reductions of the elements that a mask chooses, and of a number beside them: NumPy's `where` and `initial`.

An element that the mask leaves out counts as the identity of the reduction.
"""

from __future__ import annotations

from typing import Any

from fusewire._api.ops import operations
from fusewire._api.ops.operations import Axis, R
from fusewire._errors import ArgumentError
from fusewire._recording.record_op import Recorded, apply
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.reductions import Reduction


def reduce(name: str, x: R, axis: Axis, *, keepdims: bool, initial: Any = None, where: Any = True) -> R:
    """Records the reduction `name` of the elements of `x` where `where` is true, and of `initial`.

    Raises ArgumentError for a mask without `initial` if the reduction of nothing has no value.
    """
    if initial is None and where is True:
        return operations.reduce(name, x, axis, keepdims=keepdims)
    op = BY_NAME[name]
    reduction: Any = op.reduction
    if initial is None and not reduction.takes_nothing:
        raise ArgumentError(f"{name} has no identity, so with where= it needs initial= too")
    if where is not True:
        x = chosen(x, where, _identity(reduction, x._spec.dtype))
    if initial is None:
        return operations.reduce(name, x, axis, keepdims=keepdims)
    if 0 in x._spec.shape and not reduction.takes_nothing:
        start = _identity(reduction, op.dtype_rule((x._spec.dtype,), ()).result)
        result = operations.reduce_nothing(op, x, axis, start, keepdims=keepdims)
    else:
        result = operations.reduce(name, x, axis, keepdims=keepdims)
    combined: R = apply(BY_NAME[reduction.combine], (result, initial))
    return operations.astype(combined, result._spec.dtype, copy=False)


def chosen(x: R, where: Any, other: float) -> R:
    """Returns `x` with `other` where the mask is false. Raises ShapeError if the mask does not broadcast to `x`."""
    result: R = apply(BY_NAME["where"], (mask_of(x, where), x, other))
    return result


def replaced(x: R, where: Any, new: Any) -> R:
    """Returns `x` with the elements of `new` where the mask is true."""
    result: R = apply(BY_NAME["where"], (mask_of(x, where), new, x))
    return result


def mask_of(x: R, where: Any) -> R:
    """Returns a mask in the shape of `x`."""
    mask: Any = where if isinstance(where, Recorded) else x._recorder.owner.array(where)
    whole: R = operations.broadcast_to(operations.astype(mask, dtypes.bool_, copy=False), x._spec.shape)
    return whole


def mean(x: R, axis: Axis, where: Any, *, keepdims: bool) -> R:
    """Returns the mean of the elements where `where` is true; NaN of nothing."""
    if where is True:
        return operations.reduce("mean", x, axis, keepdims=keepdims)
    of_chosen: R = _mean(_wide(x), axis, mask_of(x, where), keepdims=keepdims)
    return operations.astype(of_chosen, _quotient(x), copy=False)


def var(x: R, axis: Axis, where: Any, correction: float, *, keepdims: bool) -> R:
    """Returns the variance of the elements where `where` is true; NaN of too few."""
    if where is True:
        return operations.reduce("var", x, axis, keepdims=keepdims, scalars=(correction,))
    if x._spec.dtype.is_complex:  # the mean of |z − mean|² is the sum of the variances of both parts
        both: Any = x
        variances = [var(part, axis, where, correction, keepdims=keepdims) for part in both.parts]
        total: R = apply(BY_NAME["add"], variances)
        return total
    wide, mask = _wide(x), mask_of(x, where)
    distance: Any = chosen(apply(BY_NAME["subtract"], (wide, _mean(wide, axis, mask, keepdims=True))), mask, 0.0)
    squares = operations.reduce("sum", distance * distance, axis, keepdims=keepdims)
    degrees: Any = _count(mask, axis, wide._spec.dtype, keepdims=keepdims)
    degrees = degrees - correction
    variance: R = apply(BY_NAME["where"], (degrees > 0, squares / degrees, float("nan")))
    return operations.astype(variance, _quotient(x), copy=False)


def std(x: R, axis: Axis, where: Any, correction: float, *, keepdims: bool) -> R:
    """Returns the square root of `var`, rounded once."""
    if where is True:
        return operations.reduce("std", x, axis, keepdims=keepdims, scalars=(correction,))
    wide = operations.astype(x, _quotient(x).accumulator, copy=False)
    root: R = apply(BY_NAME["sqrt"], (var(wide, axis, where, correction, keepdims=keepdims),))
    return operations.astype(root, dtypes.part_of(_quotient(x)), copy=False)


def _identity(reduction: Reduction, dtype: DType) -> bool | int | float:
    identity = reduction.identity_in(dtype)
    return bool(identity) if dtype.is_boolean else identity


def _mean(wide: R, axis: Axis, mask: R, *, keepdims: bool) -> Any:
    total: Any = operations.reduce("sum", chosen(wide, mask, 0.0), axis, keepdims=keepdims)
    return total / _count(mask, axis, wide._spec.dtype, keepdims=keepdims)


def _count(mask: R, axis: Axis, dtype: DType, *, keepdims: bool) -> R:
    return operations.astype(operations.reduce("sum", mask, axis, keepdims=keepdims), dtype)


def _quotient(x: Recorded) -> DType:
    return dtypes.quotient(x._spec.dtype)


def _wide(x: R) -> R:
    return operations.astype(x, _quotient(x).accumulator, copy=False)
