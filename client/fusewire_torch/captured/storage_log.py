"""Follows which storages of the device a step makes, reads and writes, and can undo what it wrote."""

from __future__ import annotations

import sys
from collections.abc import Callable
from itertools import count
from typing import Any, NamedTuple
from weakref import ref

from fusewire import Array, RequestError
from fusewire_torch.storage import Elements

_numbers = count(1)
_INNER = ("fusewire.", "fusewire_torch.", "torch.")


class Touched(NamedTuple):
    """Elements of a storage that existed before the step, and that the step has read or written."""

    elements: Elements
    before: Array | None  # None if no element of it was defined
    parameter: Array | None  # what stands for its array while the step is recorded


class StorageLog:
    """The storages of one call of a step."""

    def __init__(self) -> None:
        self._number = next(_numbers)
        self._new: list[Any] = []  # weak references
        self._touched: dict[int, Touched] = {}  # by the identity of the elements

    def on_new(self, elements: Elements) -> None:
        elements.made_in = self._number
        self._new.append(ref(elements))

    def on_touch(self, elements: Elements) -> None:
        if id(elements) in self._touched or self.has_made(elements):
            return
        self._touched[id(elements)] = self._touch(elements, elements.array)

    def on_transfer(self, what: str) -> None:
        """Lets a step that is not recorded read and upload."""

    def _touch(self, elements: Elements, before: Array | None) -> Touched:
        return Touched(elements, before, None)

    def has_made(self, elements: Elements) -> bool:
        return elements.made_in == self._number

    def has_touched(self, elements: Elements) -> bool:
        return id(elements) in self._touched

    @property
    def touched(self) -> list[Touched]:
        return [*self._touched.values()]

    def undo(self) -> None:
        """Gives all storages that existed before the arrays that they had."""
        for each in self._touched.values():
            each.elements.array = each.before


class RecordedLog(StorageLog):
    """The storages of a call that is recorded.

    `parameter_of` returns what stands for the array of a storage meanwhile. Two storages of one array get two of these,
    because at the next use they may have two arrays.
    """

    def __init__(self, parameter_of: Callable[[Array], Array]) -> None:
        super().__init__()
        self._parameter_of = parameter_of

    def on_transfer(self, what: str) -> None:
        """Raises RequestError: the value is not known yet, or would be the same at each replay."""
        raise RequestError(
            f"{line_of_user()} {what} within a step that is recorded once, which no replay would do: read values after "
            "the step, and give it tensors of the device as arguments"
        )

    def new_alive(self) -> list[tuple[Any, Array]]:
        """Returns the new storages with defined elements that something still holds, by weak references."""
        alive = [(weak, weak()) for weak in self._new]
        return [(weak, held.array) for weak, held in alive if held is not None and held.array is not None]

    def _touch(self, elements: Elements, before: Array | None) -> Touched:
        if before is None:
            return Touched(elements, None, None)
        parameter = elements.array = self._parameter_of(before)
        return Touched(elements, before, parameter)


def line_of_user() -> str:
    """Returns the innermost line on this thread's stack that is neither ours nor PyTorch's."""
    frame: Any = sys._getframe(1)
    while frame.f_back is not None and str(frame.f_globals.get("__name__", "")).startswith(_INNER):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"
