"""Defines `x += v` and the like: the array object gets a new value of its dtype and shape, as by `x[...] = x + v`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusewire._api.ops.operations import astype
from fusewire._errors import DtypeError, ShapeError
from fusewire._recording.bodies.body import check_may_assign
from fusewire._recording.recorded_ops import exchange, in_place_operator
from fusewire._recording.signature import ArraySpec
from fusewire_protos.ops.dtypes import DType

Operator = Callable[[Any, Any], Any]


def in_place(operator: Operator) -> Operator:
    """Returns the method of `x op= v`, for the method of `x op v`. All names of the object `x` show the new value.

    As in NumPy, a result of another dtype is cast to the dtype of `x` if it is of the same kind or a lower one, in the
    order of booleans, unsigned integers, signed integers, floats and complex numbers. An array of rank 0 is left as it
    is, and the name is bound to the result, which may have any shape and dtype, because NumPy has a scalar there. The
    method raises DtypeError and ShapeError, and RequestError in the body of a loop or function if `x` is from outside.
    """

    def assign(x: Any, value: Any) -> Any:
        if not x._spec.shape:
            return operator(x, value)
        check_may_assign(x)
        return _replaced(x, operator(x, value))

    return in_place_operator(operator, assign, _replaced)


def _replaced(x: Any, result: Any) -> Any:
    """Gives `x` the value of a result, and returns `x`. Returns NotImplemented if the result is that."""
    if result is NotImplemented:
        return result
    exchange(x, result if result._spec is x._spec else _cast(result, x._spec))
    return x


def _cast(result: Any, spec: ArraySpec) -> Any:
    """Returns the result as an array of this spec. Raises ShapeError and DtypeError."""
    dtype, of_result = spec.dtype, result._spec
    if of_result.shape != spec.shape:
        raise ShapeError(f"an assignment in place keeps the shape {spec.shape}, but its result has {of_result.shape}")
    if is_higher_kind(of_result.dtype, dtype):
        raise DtypeError(
            f"an assignment in place keeps {dtype.name}, but its result is {of_result.dtype.name}: "
            "write x = x + v, with the operator in place of +, or assign the result cast by astype"
        )
    return astype(result, dtype)


def is_higher_kind(dtype: DType, of: DType) -> bool:
    """Returns whether `dtype` is of a higher kind than `of`, so that NumPy does not cast to it in an assignment."""
    return _order(dtype) > _order(of)


def _order(dtype: DType) -> int:
    """Returns the place of the dtype's kind in NumPy's order of kinds."""
    if dtype.is_integer:
        return 1 + dtype.is_signed
    if dtype.is_complex:
        return 4
    return 3 if dtype.is_floating else 0
