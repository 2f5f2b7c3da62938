"""Gathers elements at places that count from the front, as PyTorch's do. The general functions count from both ends.

One op does it, so a call is known by its arguments, and is recorded as fast as a sum. A session that debugs takes the
general functions, which check the places.
"""

from __future__ import annotations

import fusewire as fw
from fusewire import Array
from fusewire._recording.record_op import apply
from fusewire._recording.recorded_ops import known_call
from fusewire_protos.ops.catalogue import BY_NAME


def rows_at(array: Array, places: Array) -> Array:
    """Returns the parts of an array at places on its first axis."""
    return _rows_at(array, places) if _is_unchecked(array, places) else fw.take(array, places, axis=0)


def along_last_axis(array: Array, places: Array) -> Array:
    """Returns elements of each vector along the last axis. All other axes of `places` are those of `array`."""
    if _is_unchecked(array, places):
        return _along_last_axis(array, places)
    return fw.take_along_axis(array, places, axis=-1)


def _is_unchecked(array: Array, places: Array) -> bool:
    return array.session.index_checks is None and places.dtype.is_integer


@known_call
def _rows_at(array: Array, places: Array) -> Array:
    taken: Array = apply(BY_NAME["take"], (array, places), (0,))
    return taken


@known_call
def _along_last_axis(array: Array, places: Array) -> Array:
    taken: Array = apply(BY_NAME["take_along_axis"], (array, places), (array.ndim - 1,))
    return taken
