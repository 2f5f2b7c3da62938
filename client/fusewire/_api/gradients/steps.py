"""The noted ops as steps that are gone back: what each passes on, what values it takes, and its cotangents.

A value is *active* if it is a float that depends on what is differentiated. Cotangents are kept by handle until the
step that made the value has been gone back.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any, NamedTuple, Protocol

from fusewire._api.array import Array
from fusewire._api.gradients.rules.parts import full_beside
from fusewire._api.gradients.rules.rule import Rule
from fusewire._api.gradients.rules.table import RULES
from fusewire._api.gradients.use import Use
from fusewire._api.ops import operations
from fusewire._errors import RequestError
from fusewire._recording.notes import NotedOp
from fusewire._recording.signature import Signature, signature_of
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


class _Known(NamedTuple):
    """What all uses of a signature share."""

    signature: Signature
    rule: Rule | None
    places: tuple[tuple[int, int], ...]  # of the operands that are differentiated if they are arrays, and their cells


@cache
def _known(number: int) -> _Known:
    """Signatures are never freed, so that this holds no more than they do."""
    signature = signature_of(number)
    rule = RULES.get(signature.op.name)
    if rule is None or not signature.result.dtype.is_floating:
        return _Known(signature, None, ())
    arrays = len(signature.cells) - len(signature.scalars)
    cells = [(place, cell) for place, cell in enumerate(signature.cells) if cell < arrays and rule.takes(place)]
    return _Known(signature, rule, tuple(cells))


class OpStep:
    """An op as a step."""

    __slots__ = ("_known", "noted")

    def __init__(self, noted: NotedOp) -> None:
        self.noted = noted
        self._known = _known(noted.signature)

    @property
    def results(self) -> tuple[int, ...]:
        return (self.noted.result,)

    def activate(self, active: set[int]) -> None:
        handles = self.noted.handles
        for _, cell in self._known.places:
            if handles[cell] in active:
                active.add(self.noted.result)
                return

    def sources(self, active: set[int]) -> tuple[int, ...]:
        return tuple([handle for _, handle in self._active_operands(active)])

    def taken(self, active: set[int]) -> set[int]:
        rule, cells, handles = self._known.rule, self._known.signature.cells, self.noted.handles
        places = [place for place, _ in self._active_operands(active)]
        if rule is None or not places:
            return set()
        taken = {cells[each] for place in places for each in rule.values(place, len(cells))}
        return {handles[cell] for cell in taken if cell < len(handles)} | {*(self.results if rule.result else ())}

    def go_back(self, cotangents: Cotangents, active: set[int], arrays: Arrays) -> None:
        signature, rule = self._known.signature, self._known.rule
        cotangent = cotangents.pop(self.noted.result, None)
        if cotangent is None or rule is None:
            return
        use = Use(self.noted, signature, arrays)
        for place, handle in self._active_operands(active):
            spec, total = signature.specs[place], cotangents.get(handle)
            if rule.adding is not None:
                if total is None:
                    total = full_beside(cotangent, spec.shape, 0.0, spec.dtype)
                cotangents[handle] = rule.adding(cotangent, use, total)
            else:
                add(cotangents, handle, fitted(rule.pull(cotangent, use, place), spec))

    def _active_operands(self, active: set[int]) -> list[tuple[int, int]]:
        """Returns the places and the handles of the active operands."""
        handles = self.noted.handles
        return [(place, handles[cell]) for place, cell in self._known.places if handles[cell] in active]


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
