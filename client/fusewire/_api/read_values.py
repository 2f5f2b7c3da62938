"""Keeps copies of the small values that were read last, so that `repr` shows them without waiting."""

from __future__ import annotations

import threading
from typing import Any

import numpy.typing as npt

MOST_ELEMENTS = 1000  # of a value that is kept; NumPy, too, prints so many in full
_MOST_VALUES = 256  # in memory, at most 2 MiB


class ReadValues:
    """Copies of the values of one session, by handle. Any thread may use them.

    An array that changes in place gets another handle, so that a kept value is always the array's own.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._values: dict[int, npt.NDArray[Any]] = {}  # the oldest first

    def keep(self, handle: int, value: npt.NDArray[Any]) -> None:
        """Keeps a copy, because users may write to `value`. Drops the oldest one if there are too many."""
        if value.size > MOST_ELEMENTS:
            return
        copy = value.copy()
        with self._lock:
            self._values.pop(handle, None)
            self._values[handle] = copy
            if len(self._values) > _MOST_VALUES:
                del self._values[next(iter(self._values))]

    def get(self, handle: int) -> npt.NDArray[Any] | None:
        """Returns the kept value, or None. Do not change it."""
        with self._lock:
            return self._values.get(handle)
