"""Integers of a range from random bits."""

from __future__ import annotations

from collections.abc import Callable
from operator import index
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.ops.operations import astype, dtype_of
from fusewire._errors import ArgumentError, DtypeError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType

_WORDS = 2**64  # how many values the bits of one counter have
_NARROW = 2**32  # up to so many values, one remainder is fair to 2^-32
_HALF = 0xFFFFFFFF


def integers_from(draw: Callable[[], Array], low: int, span: int, dtype: DType) -> Array:
    """Returns integers from `low` on, `span` different ones. `draw` returns random bits of the shape that is wanted.

    Of up to 2^32 values none is likelier than another by more than 2^-32 of its probability, and of more values by more
    than 2^-64: an integer is then the integral part of `span` times a fraction of 128 bits.
    """
    if span == _WORDS:
        offset = draw()
    elif span <= _NARROW or _WORDS % span == 0:
        offset = draw() % span
    else:
        offset = _integral_part(draw(), draw(), span)
    return astype(offset + low % _WORDS if low else offset, dtype, copy=False)


def _integral_part(lower: Array, upper: Array, span: int) -> Array:
    """Returns the integral part of `span` times the fraction whose 128 bits these are, 32 bits at a time."""
    high, low = divmod(span, 2**32)
    carry: Any = 0
    for word in (lower & _HALF, lower >> 32, upper & _HALF, upper >> 32):
        carry = word * high + ((word * low + (carry & _HALF)) >> 32) + (carry >> 32)
    part: Array = carry
    return part


def range_of(low: Any, high: Any, dtype: Any, *, endpoint: bool) -> tuple[int, int, DType]:
    """Returns the least integer, how many there are, and their dtype, as NumPy reads the arguments of `integers`.

    Raises ArgumentError, a ValueError, for an empty range and for bounds that the dtype does not hold, DtypeError for
    a float dtype, and TypeError for bounds that are not integers of this machine.
    """
    wanted = dtype_of(dtype)
    if wanted.is_floating:
        raise DtypeError(f"random integers have an integer dtype, not {wanted.name}")
    first, last = (0, _bound(low)) if high is None else (_bound(low), _bound(high))
    last -= not endpoint
    limits = np.iinfo(dtypes.to_numpy(wanted)) if wanted.is_integer else None
    least, most = (0, 1) if limits is None else (int(limits.min), int(limits.max))
    if first < least:
        raise ArgumentError(f"low = {first} is out of bounds for {wanted.name}")
    if last > most:
        raise ArgumentError(f"high is out of bounds for {wanted.name}, whose greatest value is {most}")
    if first > last:
        raise ArgumentError(f"no integers: low = {first}, and the greatest would be {last}")
    return first, last - first + 1, wanted


def _bound(given: Any) -> int:
    if isinstance(given, Array):
        raise TypeError("the bounds of random integers are integers of this machine, not arrays on the server")
    return index(given.item() if isinstance(given, np.ndarray) and not given.shape else given)
