"""The noted ops as steps that are gone back: what each passes on, what values it takes, and its cotangents.

A value is *active* if it is a float that depends on what is differentiated. Cotangents are kept by handle until the
step that made the value has been gone back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Protocol

from fusewire._api.array import Array
from fusewire._api.gradients.rules.parts import full_beside
from fusewire._api.gradients.rules.table import RULES
from fusewire._api.gradients.use import Use
from fusewire._api.ops import operations
from fusewire._errors import RequestError
from fusewire._recording.notes import NotedOp
from fusewire._recording.signature import signature_of
from fusewire_protos.ops.shapes import Spec

Cotangents = dict[int, Array]
Arrays = Mapping[int, Array]


class Step(Protocol):
    """An op or a loop."""

    @property
    def results(self) -> tuple[int, ...]:
        """Returns the handles of its results."""

    def activate(self, active: set[int]) -> None:
        """Adds the results that are active to the active values."""

    def sources(self, active: set[int]) -> tuple[int, ...]:
        """Returns the handles of the active operands."""

    def taken(self, active: set[int]) -> set[int]:
        """Returns the handles of the values that going back takes. Called after `activate`."""

    def go_back(self, cotangents: Cotangents, active: set[int], arrays: Arrays) -> None:
        """Removes the cotangents of the results, and adds those of the active operands."""


class OpStep:
    """An op as a step."""

    __slots__ = ("noted", "rule", "signature")

    def __init__(self, noted: NotedOp) -> None:
        self.noted = noted
        self.signature = signature_of(noted.signature)
        self.rule = RULES.get(self.signature.op.name)

    @property
    def results(self) -> tuple[int, ...]:
        return (self.noted.result,)

    def activate(self, active: set[int]) -> None:
        if self.signature.result.dtype.is_floating and self.sources(active):
            active.add(self.noted.result)

    def sources(self, active: set[int]) -> tuple[int, ...]:
        return tuple([handle for _, handle in self._active_operands(active)])

    def taken(self, active: set[int]) -> set[int]:
        places = [place for place, _ in self._active_operands(active)]
        if self.rule is None or not places:
            return set()
        cells, handles = self.signature.cells, self.noted.handles
        taken = {cells[each] for place in places for each in self.rule.values(place, len(cells))}
        return {handles[cell] for cell in taken if cell < len(handles)} | {*(self.results if self.rule.result else ())}

    def go_back(self, cotangents: Cotangents, active: set[int], arrays: Arrays) -> None:
        cotangent = cotangents.pop(self.noted.result, None)
        if cotangent is None or self.rule is None:
            return
        use = Use(self.noted, self.signature, arrays)
        for place, handle in self._active_operands(active):
            spec, total = use.spec(place), cotangents.get(handle)
            if self.rule.adding is not None:
                if total is None:
                    total = full_beside(cotangent, spec.shape, 0.0, spec.dtype)
                cotangents[handle] = self.rule.adding(cotangent, use, total)
            else:
                add(cotangents, handle, fitted(self.rule.pull(cotangent, use, place), spec))

    def _active_operands(self, active: set[int]) -> list[tuple[int, int]]:
        """Returns the places and the handles of the active operands."""
        if self.rule is None:
            return []
        handles = self.noted.handles
        arrays = [(place, cell) for place, cell in enumerate(self.signature.cells) if cell < len(handles)]
        return [(place, handles[cell]) for place, cell in arrays if handles[cell] in active and self.rule.takes(place)]


def add(cotangents: Cotangents, handle: int, cotangent: Array) -> None:
    """Adds to the cotangent of a value."""
    known = cotangents.get(handle)
    cotangents[handle] = cotangent if known is None else known + cotangent


def fitted(cotangent: Array, spec: Spec) -> Array:
    """Returns the cotangent of an operand of this spec, whose elements the op may have broadcast and cast."""
    shape = cotangent.shape
    if shape != spec.shape:
        ahead = len(shape) - len(spec.shape)
        axes = [axis for axis, dim in enumerate(shape) if axis < ahead or spec.shape[axis - ahead] != dim]
        if any(axis >= ahead and spec.shape[axis - ahead] != 1 for axis in axes) or ahead < 0:
            cotangent = operations.broadcast_to(cotangent, spec.shape)  # elements that have one cotangent
        else:
            cotangent = operations.reshape(operations.reduce("sum", cotangent, tuple(axes), keepdims=False), spec.shape)
    return operations.astype(cotangent, spec.dtype, copy=False)


def relevant(steps: Sequence[Any], sources: set[int], results: set[int]) -> tuple[list[Any], set[int]]:
    """Returns the steps that lead from the sources to the results, and the active values."""
    active = set(sources)
    for step in steps:
        step.activate(active)
    wanted, found = results & active, []
    for step in reversed(steps):
        if not wanted.isdisjoint(step.results):
            found.append(step)
            wanted.update(step.sources(active))
    found.reverse()
    return found, active


def values_of(handles: set[int], arrays: Arrays) -> dict[int, Array]:
    """Returns the arrays of these handles. Raises RequestError if one has been given another value since."""
    return {handle: _unchanged(handle, arrays[handle]) for handle in handles}


def _unchanged(handle: int, array: Array) -> Array:
    if array._handle != handle:
        raise RequestError(
            f"an array of {array._spec!r}, whose value the gradient takes, has been assigned to since: assign to a copy"
        )
    return array
