"""The frequencies to which the elements of a transform belong, and their order."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, SupportsIndex

from fusewire._api.array import Array
from fusewire._api.devices import Device, session_on
from fusewire._api.functions.arrangement.places import roll
from fusewire._api.functions.elementwise.choices import where
from fusewire._api.ops import operations
from fusewire._api.ops.filled import counted
from fusewire._api.ops.operands import asarray
from fusewire._api.ops.operations import axis_of, dtype_of, integers_of
from fusewire._errors import ArgumentError, DtypeError
from fusewire_protos.ops import dtypes


def fftfreq(n: SupportsIndex, d: float = 1.0, *, dtype: Any = None, device: Device = None) -> Array:
    """Returns the frequencies of the `n` elements of a transform: 0, 1, … and the negative ones, divided by n · d.

    `d` is the distance of the samples. The dtype is float64 unless another float is given. Raises ArgumentError for no
    elements and for a distance of 0.
    """
    count = _checked(n, d)
    numbers = counted(session_on(device), count)
    return _frequencies(where(numbers < (count + 1) // 2, numbers, numbers - count), count, d, dtype)


def rfftfreq(n: SupportsIndex, d: float = 1.0, *, dtype: Any = None, device: Device = None) -> Array:
    """Returns the n // 2 + 1 frequencies of the elements of `rfft` of `n` real numbers (see `fftfreq`)."""
    count = _checked(n, d)
    return _frequencies(counted(session_on(device), count // 2 + 1), count, d, dtype)


def fftshift(x: Any, /, axes: int | Sequence[int] | None = None) -> Array:
    """Returns the elements in the order of their frequencies, 0 in the middle, along `axes` or by default all."""
    return _shifted(x, axes, lambda length: length // 2)


def ifftshift(x: Any, /, axes: int | Sequence[int] | None = None) -> Array:
    """Returns the inverse of `fftshift`."""
    return _shifted(x, axes, lambda length: -(length // 2))


def _checked(n: SupportsIndex, d: float) -> int:
    count = operator.index(n)
    if count < 1 or d == 0:
        raise ArgumentError(f"frequencies of {count} samples at a distance of {d}: both are other than 0")
    return count


def _frequencies(numbers: Array, count: int, d: float, dtype: Any) -> Array:
    wanted = dtypes.float64 if dtype is None else dtype_of(dtype)
    if not wanted.is_floating:
        raise DtypeError(f"frequencies are floats, not {wanted.name}")
    frequencies = operations.astype(numbers, dtypes.float64) * (1 / (count * d))
    return operations.astype(frequencies, wanted, copy=False)


def _shifted(x: Any, axes: int | Sequence[int] | None, shift: Any) -> Array:
    given = asarray(x)
    along = [axis_of(axis, given.ndim) for axis in (range(given.ndim) if axes is None else integers_of(axes))]
    return roll(given, [shift(given.shape[axis]) for axis in along], along)
