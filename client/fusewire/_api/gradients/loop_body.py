"""The noted ops of a loop's body: what they take, and how they are recorded again with other values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from fusewire._api.array import Array
from fusewire._recording.notes import NotedLoop, NotedOp
from fusewire._recording.record_op import operand_handle
from fusewire._recording.recorded_ops import record
from fusewire._recording.recorder import Recorder
from fusewire._recording.signature import signature_of
from fusewire._recording.stepped_integer import SteppedInteger
from fusewire_protos.ops.shapes import Spec


class LoopBody:
    """The ops of the body. A value is named by the handle that it had when the body was recorded first."""

    def __init__(self, noted: NotedLoop) -> None:
        self._ops = noted.body
        self._inside = {op.result for op in noted.body} | {*noted.initial, noted.counter}

    def needed(self, values: set[int]) -> set[int]:
        """Returns values of the body, and all of which they are computed."""
        found = set(values)
        for op in reversed(self._ops):
            if op.result in found:
                found.update(op.handles)
        return found

    @property
    def captured(self) -> list[int]:
        """Returns the arrays that the body takes from outside."""
        return self.outside({handle for op in self._ops for handle in op.handles})

    def outside(self, values: set[int]) -> list[int]:
        """Returns those of some values that are from outside."""
        return sorted(values - self._inside)

    def spec_of(self, handle: int) -> Spec:
        """Returns the spec of a value that ops of the body take."""
        return next(spec for op in self._ops for taken, spec in _taken(op) if taken == handle)

    def record_again(self, values: dict[int, Array], needed: set[int], start: Callable[[Any], Any]) -> None:
        """Records the ops whose results are needed, and adds these to the values. `start` is as in `with_starts`."""
        recorder = next(iter(values.values()))._recorder.owner.recorder()
        for op in self._ops:
            if op.result in needed:
                values[op.result] = _recorded(recorder, with_starts(op, start), values)


def with_starts(op: NotedOp, start: Callable[[SteppedInteger], Any]) -> NotedOp:
    """Returns an op whose slices that move with the counter begin where `start` says."""
    if not any(isinstance(value, SteppedInteger) for value in op.values):
        return op
    return op._replace(values=tuple([start(each) if isinstance(each, SteppedInteger) else each for each in op.values]))


def as_noted(start: SteppedInteger) -> SteppedInteger:
    """Returns the start of a slice as it is."""
    return start


def from_the_end(start: SteppedInteger) -> SteppedInteger:
    """Returns the start of a slice in a loop that goes from the last iteration to the first."""
    last = start + start.step * (start.iterations - 1)
    return SteppedInteger(last, -start.step, start.iterations)


def _taken(op: NotedOp) -> list[tuple[int, Spec]]:
    signature = signature_of(op.signature)
    cells = zip(signature.cells, signature.specs, strict=True)
    return [(op.handles[cell], spec) for cell, spec in cells if cell < len(op.handles)]


def _recorded(recorder: Recorder, op: NotedOp, values: Mapping[int, Array]) -> Array:
    """Records an op with other values in place of its operands."""
    pins: list[Any] = []
    operands = tuple([values[handle] for handle in op.handles])
    handles = [operand_handle(each, recorder, pins) for each in operands]
    made = record(Array, recorder, signature_of(op.signature), handles, op.values, operands)
    if pins:
        recorder.keep(pins, recorder.next_number - 1)
    return made
