"""Converts users' data to arrays that can be sent: in C order, little-endian, and of a dtype that the server knows."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from fusewire import _conversions as conversions
from fusewire._conversions import Host
from fusewire_protos.ops import dtypes, shapes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Spec

_PYTHONS = {int, float, bool}  # NumPy converts these to integers one by one, and raises if a number is out of range
_NESTED = {list, tuple, np.ndarray}


def host_of(data: Any, dtype: DType | None) -> Host:
    """Returns `data` as a NumPy array. Bytes become uint8. An array keeps its dtype. Python numbers become `dtype`.

    If an integer `dtype` cannot hold one of the Python floats, all numbers become floats instead. Raises OverflowError
    for a Python integer that is out of range for `dtype`, or for int64 and uint64 if `dtype` is None.
    """
    if isinstance(data, bytes):
        return np.frombuffer(data, np.uint8)
    if isinstance(data, np.ndarray):
        return np.asarray(data)
    if dtype is not None and not dtype.is_integer:
        return np.asarray(data, dtypes.to_numpy(dtype))
    if dtype is not None and _types_in(data) <= _PYTHONS:
        return _integers(data, dtype)
    host = np.asarray(data)
    if isinstance(data, int | list | tuple) and host.dtype == np.object_:
        _check_integers(data, dtypes.int64)
    return host


def _types_in(data: Any) -> set[type]:
    """Returns the types of all elements of a list or tuple, also of nested ones. Returns the type of other `data`."""
    if not isinstance(data, list | tuple):
        return {type(data)}
    types = set(map(type, data))
    return types if types.isdisjoint(_NESTED) else set(map(type, np.asarray(data, object).flat))


def _integers(data: Any, dtype: DType) -> Host:
    """Converts Python numbers to an integer `dtype`. Returns floats if a float is out of range.

    Raises OverflowError if an integer is out of range.
    """
    try:
        return np.asarray(data, dtypes.to_numpy(dtype))
    except (OverflowError, ValueError):
        _check_integers(data, dtype)
        return np.asarray(data)


def _check_integers(data: Any, dtype: DType) -> None:
    """Raises OverflowError for a Python integer that is out of range."""
    limits = np.iinfo(dtypes.to_numpy(dtype))
    for value in np.asarray(data, object).flat:
        if type(value) is int and not limits.min <= value <= limits.max:
            raise OverflowError(f"{value} is out of range for {dtype.name}")


def spec_of(host: Host, dtype: DType | None) -> Spec:
    """Returns the spec with which `host` is sent. Its dtype is `dtype`, or that of `host` if `dtype` is None.

    Raises DtypeError if `dtype` is None and the dtype of `host` is not supported.
    """
    return Spec(dtype or dtypes.from_numpy(host.dtype), shapes.check(host.shape))


def sendable(host: Host, spec: Spec) -> Host:
    """Returns `host` in the dtype and shape of `spec`, in C order. Copies only if needed.

    The cast gives the same values as `astype` on the server.
    """
    dtype = _wire_dtype(spec.dtype)
    cast = host if host.dtype == dtype else conversions.cast(host, dtype)
    dense = np.asarray(cast, order="C")
    return _ones_and_zeros(dense) if spec.dtype.is_boolean else dense


@cache
def _wire_dtype(dtype: DType) -> np.dtype[Any]:
    return dtypes.to_numpy(dtype).newbyteorder("<")


def _ones_and_zeros(truths: Host) -> Host:
    """Returns `truths` with every byte 0 or 1. NumPy booleans hold other bytes if they are a view of uint8 data."""
    as_bytes = truths.view(np.uint8)
    return truths if as_bytes.max(initial=0) <= 1 else np.asarray(as_bytes != 0)


def chunks_of(host: Host, chunk_bytes: int) -> list[memoryview]:
    """Returns the bytes of `host` in memory order, in chunks of `chunk_bytes`. The last chunk may be shorter."""
    source = host.reshape(-1).view(np.uint8).data
    return [source[start : start + chunk_bytes] for start in range(0, len(source), chunk_bytes)]
