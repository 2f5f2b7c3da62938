"""Converts the arguments of functions to operands of ops.

An argument is an array, a Python scalar (which adapts to the dtypes of the arrays), a NumPy scalar (which keeps its
dtype), or anything that can be uploaded. A function without an array among its arguments uses the default session.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.devices import Device, check_device, session_on
from fusewire._api.ops import operations
from fusewire._api.ops.stacking import array_among
from fusewire._errors import ArgumentError
from fusewire._recording.default_session import default_session
from fusewire._recording.record_op import PYTHON_SCALARS, apply
from fusewire._recording.recorded_ops import record_known
from fusewire_protos.ops.op import Attributes, Op

OPERANDS = (Array, np.generic, *PYTHON_SCALARS, complex)  # the types that ops take without an upload


def asarray(data: Any, dtype: Any = None, *, device: Device = None, copy: bool | None = None) -> Array:
    """Returns `data` itself if it is an array (unless `copy`), else uploads `data` to the default session.

    Raises ArgumentError, a ValueError, if `copy` is False and a copy is needed: for an upload or for another dtype.
    Also raises it if `device` is neither None nor the session's device.
    """
    if not isinstance(data, Array):
        return _uploaded(data, dtype, device, copy=copy)
    check_device(data.session, device)
    array = data if dtype is None else operations.astype(data, dtype, copy=False)
    if copy is False and array is not data:
        raise ArgumentError(f"copy=False: {array.dtype.name} of {data.dtype.name} is a copy; leave copy out")
    return array.copy() if copy and array is data else array


def _uploaded(data: Any, dtype: Any, device: Device, *, copy: bool | None) -> Array:
    if copy is False:
        raise ArgumentError("copy=False: an upload to a server is a copy; leave copy out")
    among = array_among(data)
    session = session_on(device) if among is None else among.session
    check_device(session, device)
    uploaded: Array = session.array(data, dtype)
    return uploaded


def array_beside(x: Any, *others: Any) -> Array:
    """Returns `x` as an array. Uploads it, if it is none, to the session of the first array among the others."""
    if isinstance(x, Array):
        return x
    uploaded: Array = session_of(others).array(x)
    return uploaded


def arrays_of(*given: Any) -> list[Array]:
    """Returns the arguments as arrays. Uploads those that are no arrays, to the session of the first array among them.

    If there is no array, uploads to the default session.
    """
    if all(isinstance(each, Array) for each in given):
        return [*given]
    session = session_of(given)
    return [each if isinstance(each, Array) else session.array(each) for each in given]


def apply_to_any(op: Op, *operands: Any, attributes: Attributes = ()) -> Array:
    """Records an op of arrays, scalars and data to be uploaded."""
    recorded: Array | None = record_known(op, operands, attributes)
    return _apply_any(op, operands, attributes) if recorded is None else recorded


def _apply_any(op: Op, operands: tuple[Any, ...], attributes: Attributes) -> Array:
    lead = next((operand for operand in operands if isinstance(operand, Array)), None)
    if lead is None:
        lead = asarray(operands[0])
        operands = (lead, *operands[1:])
    usable = [operand if isinstance(operand, OPERANDS) else lead.session.array(operand) for operand in operands]
    try:
        result: Array = apply(op, usable, attributes)
    except OverflowError as overflow:
        if attributes:
            raise
        result = operations.apply_beyond_range(op, usable, overflow)
    return result


def session_of(given: Sequence[Any]) -> Any:
    """Returns the session of the first array among the arguments, or else the default session."""
    return next((each.session for each in given if isinstance(each, Array)), None) or default_session()
