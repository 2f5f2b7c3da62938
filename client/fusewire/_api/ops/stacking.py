"""Makes one array of nested lists that hold arrays, without reading them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.ops import operations
from fusewire._api.ops.filled import filled
from fusewire._errors import ShapeError
from fusewire._recording.record_op import PYTHON_SCALARS, apply, apply_to_one
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME

_MOST_JOINED = 256  # of one op; the limit of a program's operands is higher


def array_among(data: Any) -> Array | None:
    """Returns an array of ours that nested lists and tuples hold, or None."""
    if not isinstance(data, list | tuple):
        return None
    kinds = {*map(type, data)}  # a list may be long, and mostly has numbers of one type
    if any(issubclass(kind, Array) for kind in kinds):
        return next(each for each in data if isinstance(each, Array))
    if not any(issubclass(kind, list | tuple) for kind in kinds):
        return None
    return next((found for found in map(array_among, data) if found is not None), None)


def stacked(session: Any, data: Sequence[Any]) -> Array:
    """Returns the array that nested lists of arrays, numbers and data to be uploaded show. All are in `session`.

    The dtype is the one to which all promote, Python's numbers as int64, float64 or bool. Raises ShapeError if parts
    have different shapes.
    """
    parts = [_part(session, each) for each in data]
    shapes = {part.shape for part in parts}
    if len(shapes) != 1:
        raise ShapeError(f"the parts of an array have one shape, not {', '.join(map(str, sorted(shapes)))}")
    (shape,) = shapes
    dtype = dtypes.promote_all(part.dtype for part in parts)
    cast = [operations.astype(part, dtype, copy=False) for part in parts]
    rows = [apply_to_one(BY_NAME["reshape"], part, ((1, *shape),)) for part in cast]
    while len(rows) > 1:
        rows = [_joined(rows[first : first + _MOST_JOINED]) for first in range(0, len(rows), _MOST_JOINED)]
    return rows[0]


def _part(session: Any, given: Any) -> Array:
    if isinstance(given, (*PYTHON_SCALARS, complex)):  # no upload for each number
        return filled(session, (), given, operations.dtype_of(np.asarray(given).dtype))
    part: Array = session.array(given)
    return part


def _joined(rows: list[Array]) -> Array:
    joined: Array = apply(BY_NAME["concat"], rows, (0,))
    return joined
