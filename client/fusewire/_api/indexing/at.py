"""Defines `x.at[key]`, whose methods return `x` with some elements changed, as in JAX."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

from fusewire._api.indexing.assignment import with_combined_item, with_item
from fusewire._api.indexing.selection import get_item
from fusewire._api.indexing.writes import COMBINATIONS
from fusewire._recording.record_op import Recorded

R = TypeVar("R", bound=Recorded)


class At(Generic[R]):
    """What `x.at` is. The brackets behind it hold what those behind `x` may hold."""

    def __init__(self, x: R, as_array: Callable[[Any], R], as_operand: Callable[[Any], Any]) -> None:
        self._x = x
        self._as_array = as_array
        self._as_operand = as_operand

    def __getitem__(self, key: Any) -> Elements[R]:
        return Elements(self._x, key, self._as_array, self._as_operand)


class Elements(Generic[R]):
    """What `x.at[key]` is: some elements of `x`.

    Each method takes a scalar, an array, or data that is uploaded, which broadcasts to `x[key]`. It returns a new array
    of the shape and dtype of `x`. All values that go to one element count, but for `set`, of which the last stays. The
    methods raise IndexError and ShapeError as an assignment does, and but for `set` DtypeError as `x += v` does.
    """

    def __init__(self, x: R, key: Any, as_array: Callable[[Any], R], as_operand: Callable[[Any], Any]) -> None:
        self._x = x
        self._key = key
        self._as_array = as_array
        self._as_operand = as_operand

    def get(self) -> R:
        """Returns `x[key]`."""
        return get_item(self._x, self._key, self._as_array)

    def set(self, value: Any) -> R:
        """Returns `x` with `value` in place of the elements."""
        return with_item(self._x, self._key, self._as_operand(value), self._as_array)

    def add(self, value: Any) -> R:
        """Returns `x` with the sum of all values of an element added to it."""
        return self._combined("add", value)

    def subtract(self, value: Any) -> R:
        """Returns `x` with the sum of all values of an element subtracted from it."""
        return self._combined("subtract", value)

    def multiply(self, value: Any) -> R:
        """Returns `x` with elements multiplied by the product of all their values."""
        return self._combined("multiply", value)

    def min(self, value: Any) -> R:
        """Returns `x` with the least of an element and all its values."""
        return self._combined("minimum", value)

    def max(self, value: Any) -> R:
        """Returns `x` with the greatest of an element and all its values."""
        return self._combined("maximum", value)

    def _combined(self, op: str, value: Any) -> R:
        operand = self._as_operand(value)
        return with_combined_item(self._x, self._key, operand, self._as_array, COMBINATIONS[op])
