"""Runs a function while its ops are noted, and pulls the cotangents of its results back to its arguments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusewire._api.array import Array
from fusewire._api.gradients.loops import LoopStep
from fusewire._api.gradients.steps import Cotangents, OpStep, add, relevant, values_of
from fusewire._api.ops.filled import filled
from fusewire._recording.notes import NotedOp, Notes
from fusewire._recording.signature import ArraySpec


class Run:
    """What a function has recorded of its arguments, which are `sources`."""

    def __init__(self, sources: Sequence[Array]) -> None:
        """Begins with copies of the arguments. `sources` are in one session, and are floats."""
        # An array that the function takes from its surroundings may be the same as an argument, and is a constant.
        self.copies = [source.copy() for source in sources]
        self._handles = [copy._handle for copy in self.copies]
        self._specs = [copy._spec for copy in self.copies]
        self._session = sources[0].session
        self._steps: list[Any] = []
        self._arrays: dict[int, Any] = {}

    def call(self, function: Callable[[], Any]) -> Any:
        """Calls the function, which takes the copies, and notes what it records."""
        recorder = self.copies[0]._recorder
        notes = recorder.notes
        is_outermost = notes is None
        if notes is None:
            notes = recorder.notes = Notes()
        place = notes.place
        notes.keep(tuple(self.copies))
        try:
            returned = function()
        finally:
            if is_outermost:
                recorder.notes = None
        self._steps = [
            OpStep(each) if isinstance(each, NotedOp) else LoopStep(each) for each in notes.items[place[0] :]
        ]
        self._arrays = notes.arrays_since(place)
        return returned

    def end(self, results: Sequence[Array]) -> None:
        """Drops all that does not lead from the arguments to these results, and the values that going back does not
        take.
        """
        self._steps, self._active = relevant(self._steps, {*self._handles}, {each._handle for each in results})
        taken = {handle for step in self._steps for handle in step.taken(self._active)}
        self._arrays = {handle: self._arrays[handle] for handle in taken}
        self._taken, self._results = taken, [each._handle for each in results]
        self.copies = []

    def pull(self, cotangents: Sequence[Array | None], *, is_last: bool) -> list[Array]:
        """Returns the cotangents of the arguments, for those of the results.

        If `is_last`, drops each value when it has been taken.
        """
        known: Cotangents = {}
        for handle, cotangent in zip(self._results, cotangents, strict=True):
            if cotangent is not None and handle in self._active:
                add(known, handle, cotangent)
        arrays = values_of(self._taken, self._arrays)
        if is_last:
            self._arrays = {}
        for step in reversed(self._steps):
            step.go_back(known, self._active, arrays)
            if is_last:
                for result in step.results:
                    arrays.pop(result, None)
        owned = {id(cotangent) for cotangent in cotangents}  # by whoever gave them
        return [
            self._own(known.get(handle), spec, owned) for handle, spec in zip(self._handles, self._specs, strict=True)
        ]

    def _own(self, cotangent: Array | None, spec: ArraySpec, owned: set[int]) -> Array:
        """Returns a cotangent as an array that no other name has: one may be assigned to."""
        if cotangent is None:
            return filled(self._session, spec.shape, 0.0, spec.dtype)
        found = cotangent.copy() if id(cotangent) in owned else cotangent
        owned.add(id(found))
        return found
