"""Brings the operands of a function that consists of several ops to one dtype, so that its result is rounded once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from typing import Any, ParamSpec

from fusewire._api.array import Array
from fusewire._api.functions.dtypes import result_type
from fusewire._api.ops import operations
from fusewire._api.ops.filled import filled
from fusewire._api.ops.operands import OPERANDS, session_of
from fusewire._errors import DtypeError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType

_P = ParamSpec("_P")

# What computes a function of complex numbers, by the function's name. `_api.complex` adds them.
complex_functions: dict[str, Callable[..., Any]] = {}


def in_floats(function: Callable[_P, Array]) -> Callable[_P, Array]:
    """Makes a function of arrays of one float dtype take any operands. Halves are computed in float32.

    The result has the dtype to which the operands promote, or for integers and booleans the float that `exp` has.
    """
    return _with_operands(function, lambda common: common.accumulator)


def in_own_floats(function: Callable[_P, Array]) -> Callable[_P, Array]:
    """Does the same as `in_floats`, but leaves halves as they are, for a function that rounds nothing."""
    return _with_operands(function, lambda common: common)


def _with_operands(function: Callable[_P, Array], computed: Callable[[DType], DType]) -> Callable[_P, Array]:
    compute: Callable[..., Array] = function

    @wraps(function)
    def of_any(*operands: Any) -> Array:
        given = uploaded(operands)
        common = dtypes.to_floating(result_type(*given))
        if common.is_complex:
            return _of_complex(function.__name__, common, given)
        result = compute(*arrays_in(computed(common), given))
        return operations.astype(result, common, copy=False)

    return of_any  # type: ignore[return-value]  # of operands alone


def _of_complex(name: str, common: DType, operands: Sequence[Any]) -> Array:
    compute = complex_functions.get(name)
    if compute is None:
        raise DtypeError(f"{name} is not defined for {common.name}; take the parts, x.real and x.imag")
    result: Array = compute(*arrays_in(common, operands))
    return result


def promoted(*operands: Any) -> list[Array]:
    """Returns the operands as arrays of the dtype to which they promote."""
    given = uploaded(operands)
    return arrays_in(result_type(*given), given)


def uploaded(operands: Sequence[Any]) -> list[Any]:
    """Returns the operands, with data uploaded to the session of the first array. Scalars stay as they are."""
    return [each if isinstance(each, OPERANDS) else session_of(operands).array(each) for each in operands]


def arrays_in(dtype: DType, operands: Sequence[Any]) -> list[Array]:
    """Returns arrays and scalars as arrays of `dtype`. A scalar is no upload: its value comes with the ops."""
    return [
        operations.astype(each, dtype, copy=False) if isinstance(each, Array) else scalar_beside(operands, each, dtype)
        for each in operands
    ]


def scalar_beside(operands: Sequence[Any], value: Any, dtype: DType) -> Array:
    """Returns a scalar as an array of rank 0, in the session of the first array among the operands."""
    return filled(session_of(operands), (), value, dtype)
