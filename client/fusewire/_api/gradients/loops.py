"""A loop whose body was recorded once, as a step that is gone back by two more such loops.

The first runs the loop once more and stores what going back takes of each iteration's carry, in arrays with an axis of
iterations. The second goes through them from the last iteration to the first. Both record the noted ops of the body
again, so that the user's function is not called again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusewire._api.array import Array
from fusewire._api.gradients.rules.parts import full_beside
from fusewire._api.gradients.steps import Arrays, Cotangents, OpStep, add, relevant
from fusewire._api.recorded_once.loops import fori_loop
from fusewire._recording.notes import NotedLoop, NotedOp
from fusewire._recording.record_op import admit
from fusewire._recording.recorded_ops import record
from fusewire._recording.recorder import Recorder
from fusewire._recording.signature import signature_of
from fusewire._recording.stepped_integer import SteppedInteger


class LoopStep:
    """A loop as a step."""

    def __init__(self, noted: NotedLoop) -> None:
        self._noted = noted
        self._inside: set[int] = set()  # the active values of the body
        self._steps: list[OpStep] = []  # of the body, which are gone back
        self._remade: set[int] = set()  # the values of the body that going back takes

    @property
    def results(self) -> tuple[int, ...]:
        return tuple(self._noted.carried.values())

    def activate(self, active: set[int]) -> None:
        noted = self._noted
        steps = [OpStep(op) for op in noted.body]
        sources = active | {parameter for parameter, handle in noted.initial.items() if handle in active}
        while True:  # what becomes active in an iteration is so in the next
            results = set(noted.carried.values())
            self._steps, self._inside = relevant(steps, sources, results)
            more = {parameter for parameter, result in noted.carried.items() if result in self._inside} - sources
            if not more:
                break
            sources |= more
        active.update(results & self._inside)
        self._remade = self._needed({handle for step in self._steps for handle in step.taken()})

    def sources(self, active: set[int]) -> tuple[int, ...]:
        initial = [handle for handle in self._noted.initial.values() if handle in active]
        return (*initial, *[handle for handle in self._captured() if handle in active])

    def taken(self) -> tuple[int, ...]:
        return (*self._noted.initial.values(), *[handle for handle in self._outer(self._remade)])

    def go_back(self, cotangents: Cotangents, active: set[int], arrays: Arrays) -> None:
        noted, count = self._noted, self._noted.iterations
        given = {result: cotangents.pop(result, None) for result in self.results}
        lead = next((each for each in given.values() if each is not None), None)
        if lead is None:
            return
        initial = {parameter: arrays[handle] for parameter, handle in noted.initial.items()}
        constant = {handle: arrays[handle] for handle in self._outer(self._remade)}
        constant |= {parameter: array for parameter, array in initial.items() if parameter not in noted.carried}
        stored = self._stored(initial, constant)
        chained = [parameter for parameter in noted.carried if parameter in self._inside]
        gathered = [parameter for parameter in initial if parameter in self._inside and parameter not in noted.carried]
        gathered += [handle for handle in self._captured() if handle in self._inside]

        def start(parameter: int) -> Array:
            known, spec = given.pop(noted.carried[parameter], None), initial[parameter]
            return full_beside(spec, spec.shape, 0.0) if known is None else known

        def total(handle: int) -> Array:
            known = cotangents.pop(noted.initial.get(handle, handle), None)
            spec = self._spec_of(handle)
            return full_beside(lead, spec.shape, 0.0, spec.dtype) if known is None else known

        def body(number: Array, carry: tuple[list[Array], list[Array]]) -> tuple[list[Array], list[Array]]:
            index = (count - 1) - number
            values: dict[int, Array] = {**constant, noted.counter: index}
            values |= {parameter: stack[index] for parameter, stack in stored.items()}
            self._record_again(values, self._remade, _from_the_end)
            inner: Cotangents = {}
            for parameter, cotangent in zip(chained, carry[0], strict=True):
                add(inner, noted.carried[parameter], cotangent)
            for handle, cotangent in zip(gathered, carry[1], strict=True):
                add(inner, handle, cotangent)
            for step in reversed(self._steps):
                _at(step, _from_the_end).go_back(inner, self._inside, values)
            before = [self._or_zeros(inner, parameter, initial[parameter]) for parameter in chained]
            return before, [inner[handle] for handle in gathered]

        first = [start(parameter) for parameter in chained], [total(handle) for handle in gathered]
        ended, totals = fori_loop(count, body, first)
        for parameter, cotangent in zip(chained, ended, strict=True):
            if noted.initial[parameter] in active:
                add(cotangents, noted.initial[parameter], cotangent)
        for handle, cotangent in zip(gathered, totals, strict=True):
            add(cotangents, noted.initial.get(handle, handle), cotangent)

    def _stored(self, initial: Arrays, constant: Arrays) -> dict[int, Array]:
        """Runs the loop once more. Returns the values of the parameters that going back takes, of all iterations."""
        noted = self._noted
        kept = [parameter for parameter in noted.carried if parameter in self._remade]
        if not kept:
            return {}
        run = self._needed({noted.carried[parameter] for parameter in kept} | set(kept))
        while more := {noted.carried[each] for each in noted.carried if each in run} - run:
            run = self._needed(run | more)
        carried = [parameter for parameter in noted.carried if parameter in run]
        outside = {handle: array for handle, array in constant.items()}

        def body(index: Array, carry: tuple[list[Array], list[Array]]) -> tuple[list[Array], list[Array]]:
            values = {**outside, noted.counter: index, **dict(zip(carried, carry[0], strict=True))}
            stacks = [stack.at[index].set(values[each]) for stack, each in zip(carry[1], kept, strict=True)]
            self._record_again(values, run, lambda value: value)
            return [values[noted.carried[parameter]] for parameter in carried], stacks

        stacks = [
            full_beside(array, (noted.iterations, *array.shape), 0, array.dtype)
            for array in (initial[each] for each in kept)
        ]
        _, stored = fori_loop(noted.iterations, body, ([initial[each] for each in carried], stacks))
        return dict(zip(kept, stored, strict=True))

    def _needed(self, values: set[int]) -> set[int]:
        """Returns values of the body, and all of which they are computed."""
        found = set(values)
        for op in reversed(self._noted.body):
            if op.result in found:
                found.update(op.handles)
        return found

    def _captured(self) -> list[int]:
        """Returns the handles of the arrays that the body takes from outside."""
        return self._outer({handle for op in self._noted.body for handle in op.handles})

    def _outer(self, values: set[int]) -> list[int]:
        inside = {op.result for op in self._noted.body} | {*self._noted.initial, self._noted.counter}
        return sorted(values - inside)

    def _record_again(self, values: dict[int, Array], needed: set[int], start: Callable[[Any], Any]) -> None:
        """Records the ops of the body whose results are needed, and adds these to the values."""
        recorder = next(iter(values.values()))._recorder.owner.recorder()
        for op in self._noted.body:
            if op.result in needed:
                values[op.result] = _recorded(recorder, _with_starts(op, start), values)

    def _spec_of(self, handle: int) -> Any:
        """Returns the spec of a parameter, or of an array from outside."""
        for op in self._noted.body:
            signature = signature_of(op.signature)
            for place, cell in enumerate(signature.cells):
                if cell < len(op.handles) and op.handles[cell] == handle:
                    return signature.specs[place]
        raise AssertionError(f"no op of the body takes {handle}")

    @staticmethod
    def _or_zeros(cotangents: Cotangents, handle: int, like: Array) -> Array:
        found = cotangents.get(handle)
        return full_beside(like, like.shape, 0.0) if found is None else found


def _recorded(recorder: Recorder, op: NotedOp, values: Arrays) -> Array:
    """Records an op with other values in place of its operands."""
    pins: list[Any] = []
    operands = tuple([values[handle] for handle in op.handles])
    handles = [admit(each, recorder, pins) for each in operands]
    made = record(Array, recorder, signature_of(op.signature), handles, op.values, operands)
    if pins:
        recorder.keep(pins, recorder.next_number - 1)
    return made


def _at(step: OpStep, start: Callable[[Any], Any]) -> OpStep:
    return OpStep(_with_starts(step.noted, start))


def _with_starts(op: NotedOp, start: Callable[[Any], Any]) -> NotedOp:
    values: Sequence[Any] = op.values
    if not any(isinstance(value, SteppedInteger) for value in values):
        return op
    return op._replace(values=tuple([start(value) if isinstance(value, SteppedInteger) else value for value in values]))


def _from_the_end(start: SteppedInteger) -> SteppedInteger:
    """Returns the start of a slice in a loop that goes from the last iteration to the first."""
    last = start + start.step * (start.iterations - 1)
    return SteppedInteger(last, -start.step, start.iterations)
