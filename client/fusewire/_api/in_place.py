"""Defines `x += v` and the like: the name `x` is bound to a new array, of the dtype and the shape of the old one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fusewire._api.operations import astype
from fusewire._errors import DtypeError, ShapeError
from fusewire_protos.ops.dtypes import DType

Operator = Callable[[Any, Any], Any]


def in_place(operator: Operator) -> Operator:
    """Returns the method of `x op= v`, for the method of `x op v`.

    As in NumPy, a result of another dtype is cast to the dtype of `x` if it is of the same kind or a lower one, in the
    order of booleans, unsigned integers, signed integers and floats. An array of rank 0 may become any other, because
    NumPy has a scalar there. The method raises DtypeError and ShapeError.
    """

    def assign(x: Any, value: Any) -> Any:
        result = operator(x, value)
        if result is NotImplemented or result._spec is x._spec or not x._spec.shape:
            return result
        dtype, shape, of_result = x._spec.dtype, x._spec.shape, result._spec
        if of_result.shape != shape:
            raise ShapeError(f"an assignment in place keeps the shape {shape}, but its result has {of_result.shape}")
        if _order(of_result.dtype) > _order(dtype):
            raise DtypeError(
                f"an assignment in place keeps {dtype.name}, but its result is {of_result.dtype.name}: "
                "write x = x + v, with the operator in place of +, or assign the result cast by astype"
            )
        return astype(result, dtype)

    return assign


def _order(dtype: DType) -> int:
    """Returns the place of the dtype's kind in NumPy's order of kinds."""
    if dtype.is_integer:
        return 1 + dtype.is_signed
    return 3 if dtype.is_floating else 0
