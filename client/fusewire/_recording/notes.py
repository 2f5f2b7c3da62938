"""Notes what a thread records while a gradient is wanted: ops and loops, in order, and the arrays that they take.

A value is named by its handle, which is given once. An array object may get another handle, as `x[i] = v` does; so a
note names handles alone, and the objects are kept beside, among which each handle is found at the end.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from fusewire._recording.recorded_ops import Recorded
from fusewire_protos.frames import Scalar


class NotedOp(NamedTuple):
    """An op: the handle of its result, the number of its signature, and what its record holds."""

    result: int
    signature: int
    handles: tuple[int, ...]
    values: tuple[Scalar, ...]  # the scalars among the operands, and behind them the starts of slices


class NotedLoop(NamedTuple):
    """A loop whose body was recorded once, of the handle `counter` in the body.

    For each parameter of the body, `initial` holds the handle that it is in the first iteration, and `carried` the
    result that it is in the next, if it changes. After the loop these handles are those of the loop's results.
    """

    iterations: int
    counter: int
    initial: Mapping[int, int]
    carried: Mapping[int, int]
    body: Sequence[NotedOp]


class Notes:
    """What has been noted. Gradients within gradients share the notes of the outermost, each from a place on."""

    __slots__ = ("_kept", "items")

    def __init__(self) -> None:
        self.items: list[NotedOp | NotedLoop] = []
        self._kept: list[Any] = []  # for each item what holds its arrays, or an array that got another handle

    def add(
        self, result: int, signature: int, handles: tuple[int, ...], values: tuple[Scalar, ...], operands: Any
    ) -> None:
        """Notes an op. `operands` are nested tuples that hold its arrays, the result among them."""
        self._kept.append(operands)
        self.items.append(NotedOp(result, signature, handles, values))

    def keep(self, held: Any) -> None:
        """Keeps an array, or the arrays in nested tuples, beside the notes."""
        self._kept.append(held)

    @property
    def place(self) -> tuple[int, int]:
        """Returns where the next notes will stand."""
        return len(self.items), len(self._kept)

    def arrays_since(self, place: tuple[int, int]) -> dict[int, Recorded]:
        """Returns the arrays of the notes since a place, by the handles that they have now."""
        return {array._handle: array for array in _arrays_in(self._kept[place[1] :])}

    def cut(self, place: tuple[int, int]) -> tuple[list[NotedOp], list[Recorded]]:
        """Removes the notes since a place, at which a body began, and returns its ops and the arrays."""
        items, kept = self.items[place[0] :], self._kept[place[1] :]
        del self.items[place[0] :], self._kept[place[1] :]
        return [each for each in items if isinstance(each, NotedOp)], [*_arrays_in(kept)]

    def add_loop(self, loop: NotedLoop, arrays: Sequence[Recorded]) -> None:
        """Notes a loop. `arrays` hold its results, and all that comes from outside."""
        self._kept.append(tuple(arrays))
        self.items.append(loop)


def _arrays_in(held: Iterable[Any]) -> Iterable[Recorded]:
    for each in held:
        if isinstance(each, Recorded):
            yield each
        elif isinstance(each, tuple):
            yield from _arrays_in(each)
