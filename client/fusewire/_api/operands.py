"""What users give to functions, as operands of ops.

An operand is an array, a Python scalar (which adapts to the arrays beside it), a NumPy scalar (which keeps its
dtype), or anything that can be uploaded. Functions without an array operand use the default session.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fusewire._api import operations
from fusewire._api.array import Array
from fusewire._recording.default_session import default_session
from fusewire._recording.record_op import PYTHON_SCALARS, apply
from fusewire_protos.catalogue import Attributes, Op

_OPERANDS = (Array, np.generic, *PYTHON_SCALARS)  # what an op takes as it is


def asarray(data: Any, dtype: Any = None, *, copy: bool | None = None) -> Array:
    """An array of `data`: `data` itself if it is one (unless `copy`), else uploaded to the default session."""
    if not isinstance(data, Array):
        uploaded: Array = default_session().array(data, dtype)
        return uploaded
    array = data if dtype is None else operations.astype(data, dtype, copy=False)
    return array.copy() if copy and array is data else array


def arrays_of(*given: Any) -> list[Array]:
    """All as arrays of one session: that of the first array among them."""
    session = next((each.session for each in given if isinstance(each, Array)), None) or default_session()
    return [each if isinstance(each, Array) else session.array(each) for each in given]


def apply_to_any(op: Op, *operands: Any, attributes: Attributes = ()) -> Array:
    """Records an op of arrays, scalars and whatever can be uploaded."""
    lead = next((operand for operand in operands if isinstance(operand, Array)), None)
    if lead is None:
        lead = asarray(operands[0])
        operands = (lead, *operands[1:])
    usable = [operand if isinstance(operand, _OPERANDS) else lead.session.array(operand) for operand in operands]
    try:
        result: Array = apply(op, usable, attributes)
    except OverflowError as overflow:
        if attributes:
            raise
        result = operations.apply_beyond_range(op, usable, overflow)
    return result
