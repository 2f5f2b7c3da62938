"""What the rule of an op's derivative is told of one use of the op."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fusewire._api.array import Array
from fusewire._recording.notes import NotedOp
from fusewire._recording.signature import Signature
from fusewire_protos.ops.op import Attributes, Op
from fusewire_protos.ops.shapes import Spec


class Use:
    """One use of an op. Its arrays are those that the rule says it takes."""

    __slots__ = ("_arrays", "_noted", "_shared", "signature")

    def __init__(self, noted: NotedOp, signature: Signature, arrays: Mapping[int, Array]) -> None:
        self._noted = noted
        self._arrays = arrays
        self._shared: Any = None
        self.signature = signature

    @property
    def op(self) -> Op:
        return self.signature.op

    @property
    def attributes(self) -> Attributes:
        return self.signature.attributes

    @property
    def starts(self) -> tuple[Any, ...]:
        """Returns the starts of the slice."""
        values = self._noted.values
        return values[len(values) - self.signature.starts :]

    def spec(self, place: int) -> Spec:
        """Returns the spec of the operand at a place."""
        return self.signature.specs[place]

    def operand(self, place: int) -> Any:
        """Returns the operand at a place: an array, or a Python scalar."""
        handles, cell = self._noted.handles, self.signature.cells[place]
        return self._arrays[handles[cell]] if cell < len(handles) else self._noted.values[cell - len(handles)]

    @property
    def result(self) -> Array:
        return self._arrays[self._noted.result]

    def shared(self, compute: Callable[[], Any]) -> Any:
        """Returns what the functions of several operands take, which the first of them computes."""
        if self._shared is None:
            self._shared = compute()
        return self._shared
