"""Makes Python's operators of arrays: methods that record the op of a name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fusewire._api.ops import operations
from fusewire._api.ops.operations import R
from fusewire._recording.record_op import PYTHON_SCALARS, apply, apply_of_one
from fusewire._recording.recorded_ops import Recorded, binary_operator, prefix_operator
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Op


def is_array_like(value: object) -> bool:
    """Returns whether an operator uploads `value`, the operand beside the array.

    An operator uploads a buffer, a list, or an object with `__array__`.
    """
    is_given = isinstance(value, np.ndarray | list | tuple | memoryview | bytearray)
    return is_given or hasattr(value, "__array__")


def _slow_path(op: Op, *, is_reflected: bool = False) -> Callable[[R, Any], R]:
    """Returns the function that records an operator if an operand is no Python scalar and no array of this thread."""

    def record_unusual(self: R, other: Any) -> R:
        if not isinstance(other, (Recorded, np.generic, *PYTHON_SCALARS, complex)):
            if not is_array_like(other):
                return NotImplemented  # type: ignore[no-any-return]  # as operators do
            other = self._recorder.owner.array(other)
        result: R = apply(op, (other, self) if is_reflected else (self, other))
        return result

    return record_unusual


def operator(name: str) -> Callable[[R, Any], R]:
    return binary_operator(BY_NAME[name], _slow_path(BY_NAME[name]))


def comparison(name: str) -> Callable[[R, Any], R]:
    """Returns an operator that also compares with a Python integer out of the dtype's range."""
    op = BY_NAME[name]
    slow_path = _slow_path(op)

    def record_any(self: R, other: Any) -> R:
        try:
            return slow_path(self, other)
        except OverflowError as overflow:
            recorded: R = operations.apply_beyond_range(op, (self, other), overflow)
            return recorded

    return binary_operator(op, record_any)


def power_operator() -> Callable[[R, Any], R]:
    """Returns the power operator. It refuses a negative power of integers, because the result is no integer.

    As in NumPy, `x ** 2`, `x ** 0.5` and `x ** -1` are the square, the square root and the reciprocal.
    """
    op = BY_NAME["power"]
    slow_path = _slow_path(op)

    def record_unusual(self: R, other: Any) -> R:
        operations.check_exponent(self, other)
        return slow_path(self, other)

    power = binary_operator(op, record_unusual, checked=_checked_exponent)

    def record_power(self: Any, exponent: Any) -> Any:
        special = _POWERS.get(exponent) if type(exponent) in (int, float) else None
        is_same = self.dtype.is_floating or (self.dtype.is_integer and type(exponent) is int and exponent > 0)
        return special(self) if special is not None and is_same else power(self, exponent)

    return record_power


_POWERS: dict[float, Callable[[Any], Any]] = {  # as NumPy's operator has them
    2: lambda x: apply(BY_NAME["square"], (x,)),
    0.5: lambda x: apply(BY_NAME["sqrt"], (x,)),
    -1: lambda x: apply(BY_NAME["divide"], (1, x)),
}


def _checked_exponent(dtype: DType, canonical: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Returns a function that converts exponents as `canonical` does, but refuses negative exponents of integers."""
    if not dtype.is_integer:
        return canonical

    def exponent_of(value: int) -> Any:
        if value < 0:
            raise operations.no_integer(dtype, value)
        return canonical(value)

    return exponent_of


def reflected(name: str) -> Callable[[R, Any], R]:
    op = BY_NAME[name]
    return binary_operator(op, _slow_path(op, is_reflected=True), is_reflected=True)


def prefix(name: str) -> Callable[[R], R]:
    return prefix_operator(BY_NAME[name], apply_of_one(BY_NAME[name]))


def divmod_of(self: R, other: Any) -> tuple[R, R]:
    array: Any = self
    return array // other, array % other


def reflected_divmod(self: R, other: Any) -> tuple[R, R]:
    array: Any = self
    return other // array, other % array
