"""Makes an array larger at its ends: by a number, or by elements of its own."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from fusewire._api.array import Array
from fusewire._api.functions.arrangement.joining import concat
from fusewire._api.functions.arrangement.shapes import broadcast_to
from fusewire._api.ops.filled import filled
from fusewire._api.ops.operands import asarray
from fusewire._conversions import Host
from fusewire._errors import ArgumentError, ShapeError

__all__ = ["pad"]

_MODES = ("edge", "reflect", "symmetric", "wrap")


def pad(x: Any, /, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0) -> Array:
    """Returns `x` with more elements at both ends of its axes.

    `pad_width` is (before, after) for each axis, one pair for all, or one number for all ends; so are the numbers
    `constant_values`. `mode` is "constant"; "edge", the last element; "reflect" and "symmetric", the elements mirrored
    without and with the last; or "wrap", the elements from the other end. Raises ArgumentError for another mode or a
    negative width, and ShapeError if there is nothing to mirror.

        fw.pad(fw.asarray([1, 2, 3]), (1, 2), "edge")  # [1, 1, 2, 3, 3, 3]
    """
    given = asarray(x)
    widths = _pairs(pad_width, given.ndim, "pad_width")
    numbers = _pairs(constant_values, given.ndim, "constant_values")
    if mode != "constant" and mode not in _MODES:
        raise ArgumentError(f"pad has no mode {mode!r}, but constant, {', '.join(_MODES)}")
    if any(width != int(width) or width < 0 for width in chain.from_iterable(widths)):
        raise ArgumentError(f"pad_width {pad_width} is not a number of elements, 0 or more")
    padded = given
    for axis, (ends, values) in enumerate(zip(widths, numbers, strict=True)):
        before, after = (int(width) for width in ends)
        if before or after:
            parts = (
                [_constant(padded, axis, before, values[0]), padded, _constant(padded, axis, after, values[1])]
                if mode == "constant"
                else _with_own(padded, axis, (before, after), mode)
            )
            padded = concat([part for part in parts if part.shape[axis]] or [padded], axis=axis)
    return padded.copy() if padded is given else padded


def _pairs(given: Any, rank: int, name: str) -> list[tuple[Any, Any]]:
    """Returns a pair for each axis, of one number, one pair or a pair for each."""
    try:
        return [(before, after) for before, after in np.broadcast_to(np.asarray(given), (rank, 2)).tolist()]
    except ValueError:
        raise ArgumentError(f"{name} {given} is no pair for each of {rank} axes") from None


def _constant(x: Array, axis: int, length: int, value: Any) -> Array:
    return filled(x.session, (*x.shape[:axis], length, *x.shape[axis + 1 :]), value, x.dtype)


def _with_own(x: Array, axis: int, ends: Sequence[int], mode: str) -> list[Array]:
    """Returns the parts of the axis, padded by elements of its own. NumPy tells which."""
    length = x.shape[axis]
    if not length:
        raise ShapeError(f"pad by {mode}: axis {axis} of {x.shape} has no elements")
    places = np.pad(np.arange(length), tuple(ends), mode)  # type: ignore[call-overload]  # one of the modes
    return [_part(x, axis, places[: ends[0]]), x, _part(x, axis, places[ends[0] + length :])]


def _part(x: Array, axis: int, places: Host) -> Array:
    """Returns the elements at these places: a slice where they are one, so that nothing is uploaded."""
    before, count = (slice(None),) * axis, len(places)
    first = int(places[0]) if count else 0
    steps = set(np.diff(places).tolist())
    if count < 2 or steps == {1}:
        return x[*before, first : first + count]
    if steps == {-1}:
        return x[*before, slice(first, first - count if first >= count else None, -1)]
    if steps == {0}:
        one = x[*before, first : first + 1]
        return broadcast_to(one, (*x.shape[:axis], count, *x.shape[axis + 1 :]))
    return x.take(places, axis=axis)
