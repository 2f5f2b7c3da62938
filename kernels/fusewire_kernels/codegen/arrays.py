"""Keeps values in arrays of a kernel, and reuses arrays so that there are few. Pure."""

from __future__ import annotations

from collections.abc import Iterable

from fusewire_kernels.codegen.expressions import TYPES
from fusewire_protos.ops.dtypes import DType


class Arrays:
    """The arrays of one kernel. `types` are their element types, and `array_of[value]` is the array of a value.

    An array may be written in the step that reads it for the last time, because the step reads an element before it
    writes to the element's place.
    """

    def __init__(self) -> None:
        self.types: list[str] = []
        self.array_of: dict[int, int] = {}
        self._free: list[int] = []

    def take(self, value: int, dtype: DType) -> int:
        """Gives a value a free array of its type, or a new one. Returns the array."""
        element_type = TYPES[dtype].value
        fitting = [array for array in self._free if self.types[array] == element_type]
        if fitting:
            self._free.remove(fitting[0])
        else:
            self.types.append(element_type)
        self.array_of[value] = fitting[0] if fitting else len(self.types) - 1
        return self.array_of[value]

    def give_back(self, ended: Iterable[int]) -> None:
        """Frees the arrays of values that nothing reads any more."""
        self._free += [self.array_of[value] for value in ended]
