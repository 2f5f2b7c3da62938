"""Records what is written to places on one axis of an array: the last value of each place, or a combination of all.

Places are a vector of integers from 0 to the axis's length − 1, on this machine or on the server.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeVar

import numpy as np

from fusewire._api.in_place import is_higher_kind
from fusewire._api.indexing.keys import dtype_of_places
from fusewire._api.ops.operations import astype, broadcast_to, dtype_of, reshape, take_places
from fusewire._api.ops.segments import Segments
from fusewire._conversions import Host
from fusewire._errors import DtypeError
from fusewire._recording.record_op import Recorded, apply, create
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType

R = TypeVar("R", bound=Recorded)
# The new value of an array, for the array, the axis, the places, the values, and what uploads values of this machine.
# An array of values has one value or as many as there are places along the axis, and broadcasts along the others.
Write = Callable[[Any, int, Any, Any, Callable[[Any], Any]], Any]


class Writes(NamedTuple):
    """Tells for each place of an axis whether an assignment writes to the place, and which value.

    Both are arrays of shape (length,), on this machine or on the server.
    """

    is_written: Any  # bool
    writer: Any  # integers: the index of the written value; any legal one if no value is written


class Combination(NamedTuple):
    """A way to combine values with elements: the name of the op of two, and of the op that combines segments."""

    op: str
    segment_op: str

    def check_kind(self, x: Recorded, value: Any) -> None:
        """Raises DtypeError unless NumPy would cast the combination with `value` to the dtype of `x`."""
        dtype = x._spec.dtype
        given = _dtype_beside(dtype, value)
        if is_higher_kind(given, dtype):
            raise DtypeError(
                f"{self.op} keeps {dtype.name}, but the values are {given.name}: cast one of them by astype"
            )

    def of(self, element: Recorded, value: Any) -> Any:
        """Returns each element combined with a value, in the dtype of the elements."""
        return apply(BY_NAME[self.op], (element, in_dtype_of(element, value)))

    def written(self, x: R, axis: int, places: Any, value: Any, as_array: Callable[[Any], R]) -> Any:
        """Returns `x` with all values of a place combined with its elements. Is a `Write`."""
        shape, (count,) = x._spec.shape, places._spec.shape if isinstance(places, Recorded) else places.shape
        values = _array_of(x, value)
        values = broadcast_to(values, (*shape[:axis], count, *shape[axis + 1 :]))
        segments = Segments(as_array(places), shape[axis])
        combined = segments.reduced(self.segment_op, values, axis)
        return chosen(segments.last() > 0, self.of(x, combined), x, behind=len(shape) - axis - 1)


COMBINATIONS = {
    "add": Combination("add", "segment_sum"),
    "subtract": Combination("subtract", "segment_sum"),
    "multiply": Combination("multiply", "segment_prod"),
    "minimum": Combination("minimum", "segment_min"),
    "maximum": Combination("maximum", "segment_max"),
}


def overwritten(x: R, axis: int, places: Any, value: Any, as_array: Callable[[Any], R]) -> R:
    """Returns `x` with the last value of each place in place of its elements. Is a `Write`."""
    length = x._spec.shape[axis]
    writes = writes_on_server(places, length) if isinstance(places, Recorded) else last_writes(places, length)
    if isinstance(value, Recorded) and value._spec.shape[axis] > 1:
        value = take_places(value, as_array(writes.writer), axis)
    return chosen(as_array(writes.is_written), value, x, behind=len(x._spec.shape) - axis - 1)


def last_writes(places: Host, length: int) -> Writes:
    """Returns the effect of an assignment to `places` of this machine on an axis of `length`."""
    writes = Writes(np.zeros(length, np.bool_), np.zeros(length, dtype_of_places(length)))
    writes.is_written[places] = True
    writes.writer[places] = np.arange(places.size)  # NumPy assigns in order, so the last value stays
    return writes


def writes_on_server(places: Any, length: int) -> Writes:
    """Returns the effect of an assignment to `places` of the server on an axis of `length`."""
    last = Segments(places, length).last()
    return Writes(last > 0, apply(BY_NAME["maximum"], (last - 1, 0)))


def chosen(condition: Recorded, value: Any, x: R, *, behind: int) -> R:
    """Returns `value` where `condition` holds, else `x`. The condition lacks the last `behind` axes of `x`."""
    if behind:
        condition = reshape(condition, condition._spec.shape + (1,) * behind)
    result: R = apply(BY_NAME["where"], (condition, in_dtype_of(x, value), x))
    return result


def in_dtype_of(x: Recorded, value: Any) -> Any:
    """Casts `value` to the dtype of `x`, because a promotion of `x` could change elements that are not assigned."""
    dtype = x._spec.dtype
    if isinstance(value, Recorded):
        return astype(value, dtype, copy=False)
    return value if _dtype_beside(dtype, value) is dtype else _array_of(x, value)


def _array_of(x: Recorded, value: Any) -> Any:
    """Returns `value` as an array in the dtype of `x`."""
    if isinstance(value, Recorded):
        return in_dtype_of(x, value)
    dtype = x._spec.dtype
    given = _dtype_beside(dtype, value)
    plain = value.item() if isinstance(value, np.generic) else value
    if dtype.is_complex:
        both: Any = x
        number = complex(plain)
        return type(both)(
            *[_array_of(part, each) for part, each in zip(both.parts, (number.real, number.imag), strict=True)]
        )
    scalar = create(type(x), x._recorder.owner.recorder(), BY_NAME["full"], ((given, plain),), ((), given.code))
    return astype(scalar, dtype, copy=False)


def _dtype_beside(dtype: DType, value: Any) -> DType:
    """Returns the dtype of an array or a scalar, beside an array of `dtype`."""
    if isinstance(value, Recorded):
        return value._spec.dtype
    return dtype_of(value.dtype) if isinstance(value, np.generic) else dtypes.of_scalar(value, dtype)
