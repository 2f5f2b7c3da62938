"""A loop whose body was recorded once, as a step that is gone back by two more such loops.

The first runs the loop once more and stores what going back takes of each iteration's carry, in arrays with an axis of
iterations. The second goes through them from the last iteration to the first. Both record the noted ops of the body
again, so that the user's function is not called again.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from fusewire._api.array import Array
from fusewire._api.gradients.loop_body import LoopBody, as_noted, from_the_end, with_starts
from fusewire._api.gradients.rules.parts import full_beside
from fusewire._api.gradients.steps import Arrays, Cotangents, OpStep, add, relevant
from fusewire._api.recorded_once.loops import fori_loop
from fusewire._recording.notes import NotedLoop

_Lists = tuple[list[Array], list[Array]]


class _Values(NamedTuple):
    """What the loop computes with, by handles of the body."""

    initial: Arrays  # of the parameters
    constant: Arrays  # those that are the same in each iteration
    stored: Arrays  # of parameters that change, with an axis of iterations


class LoopStep:
    """A loop as a step."""

    def __init__(self, noted: NotedLoop) -> None:
        self._noted = noted
        self._body = LoopBody(noted)
        self._inside: set[int] = set()  # the active values of the body
        self._steps: list[OpStep] = []  # of the body, which are gone back
        self._remade: set[int] = set()  # the values of the body that going back takes, and of which they are computed
        self._stored: list[int] = []  # the parameters among them whose values are stored
        self._run: set[int] = set()  # the values of the body of which those are computed

    @property
    def results(self) -> tuple[int, ...]:
        return tuple(self._noted.carried.values())

    def activate(self, active: set[int]) -> None:
        noted, results = self._noted, {*self.results}
        steps = [OpStep(op) for op in noted.body]
        sources = active | {parameter for parameter, handle in noted.initial.items() if handle in active}
        while True:  # what becomes active in an iteration is so in the next
            self._steps, self._inside = relevant(steps, sources, results)
            more = {parameter for parameter, result in noted.carried.items() if result in self._inside} - sources
            if not more:
                break
            sources |= more
        active.update(results & self._inside)
        self._choose_values()

    def _choose_values(self) -> None:
        """Finds out which values going back takes, and which of them are stored."""
        carried = self._noted.carried
        taken = {handle for step in self._steps for handle in step.taken(self._inside)}
        self._remade = self._body.needed(taken)
        self._stored = [parameter for parameter in carried if parameter in self._remade]
        self._run = self._body.needed({*self._stored})
        while more := {result for each, result in carried.items() if each in self._run} - self._run:
            self._run = self._body.needed(self._run | more)

    def sources(self, active: set[int]) -> tuple[int, ...]:
        handles = [*self._noted.initial.values(), *self._body.captured]
        return tuple([handle for handle in handles if handle in active])

    def taken(self, active: set[int]) -> set[int]:
        return {*self._noted.initial.values(), *self._body.outside(self._remade | self._run)}

    def go_back(self, cotangents: Cotangents, active: set[int], arrays: Arrays) -> None:
        given = {result: cotangents.pop(result) for result in {*self.results} if result in cotangents}
        if not given:
            return
        noted, lead = self._noted, next(iter(given.values()))
        values = self._values(arrays)
        starts = [given.pop(noted.carried[each], None) for each in self._chained]
        totals = [cotangents.pop(noted.initial.get(each, each), None) for each in self._gathered]
        first = (
            [_or_zeros(known, values.initial[each]) for known, each in zip(starts, self._chained, strict=True)],
            [self._or_zeros(known, each, lead) for known, each in zip(totals, self._gathered, strict=True)],
        )
        ended, gathered = fori_loop(noted.iterations, partial(self._one_back, values), first)
        for parameter, cotangent in zip(self._chained, ended, strict=True):
            if noted.initial[parameter] in active:
                add(cotangents, noted.initial[parameter], cotangent)
        for handle, cotangent in zip(self._gathered, gathered, strict=True):
            add(cotangents, noted.initial.get(handle, handle), cotangent)

    @property
    def _chained(self) -> list[int]:
        """Returns the active parameters that change; the cotangents of one iteration follow from those of the next."""
        return [parameter for parameter in self._noted.carried if parameter in self._inside]

    @property
    def _gathered(self) -> list[int]:
        """Returns the active values that are the same in each iteration, whose cotangents all iterations add to."""
        initial = [each for each in self._noted.initial if each not in self._noted.carried]
        return [each for each in (*initial, *self._body.captured) if each in self._inside]

    def _one_back(self, values: _Values, number: Array, carry: _Lists) -> _Lists:
        """Is the body of the loop that goes back. The carry is the cotangents of what is chained, and of the rest."""
        noted = self._noted
        index = (noted.iterations - 1) - number
        known = {**values.constant, noted.counter: index}
        known |= {parameter: stack[index] for parameter, stack in values.stored.items()}
        self._body.record_again(known, self._remade, from_the_end)
        inner: Cotangents = dict(zip(self._gathered, carry[1], strict=True))
        for parameter, cotangent in zip(self._chained, carry[0], strict=True):
            add(inner, noted.carried[parameter], cotangent)
        for step in reversed(self._steps):
            OpStep(with_starts(step.noted, from_the_end)).go_back(inner, self._inside, known)
        before = [_or_zeros(inner.get(each), values.initial[each]) for each in self._chained]
        return before, [inner[each] for each in self._gathered]

    def _values(self, arrays: Arrays) -> _Values:
        noted = self._noted
        initial = {parameter: arrays[handle] for parameter, handle in noted.initial.items()}
        constant = {handle: arrays[handle] for handle in self._body.outside(self._remade | self._run)}
        constant |= {parameter: array for parameter, array in initial.items() if parameter not in noted.carried}
        values = _Values(initial, constant, {})
        return values._replace(stored=self._run_again(values)) if self._stored else values

    def _run_again(self, values: _Values) -> dict[int, Array]:
        """Runs the loop once more. Returns the values that are stored, of all iterations."""
        noted = self._noted
        carried = [parameter for parameter in noted.carried if parameter in self._run]

        def body(index: Array, carry: _Lists) -> _Lists:
            known = {**values.constant, noted.counter: index, **dict(zip(carried, carry[0], strict=True))}
            stacks = [stack.at[index].set(known[each]) for stack, each in zip(carry[1], self._stored, strict=True)]
            self._body.record_again(known, self._run, as_noted)
            return [known[noted.carried[parameter]] for parameter in carried], stacks

        initial = [values.initial[each] for each in self._stored]
        stacks = [full_beside(each, (noted.iterations, *each.shape), 0) for each in initial]
        _, stored = fori_loop(noted.iterations, body, ([values.initial[each] for each in carried], stacks))
        return dict(zip(self._stored, stored, strict=True))

    def _or_zeros(self, cotangent: Array | None, handle: int, lead: Array) -> Array:
        if cotangent is not None:
            return cotangent
        spec = self._body.spec_of(handle)
        return full_beside(lead, spec.shape, 0.0, spec.dtype)


def _or_zeros(cotangent: Array | None, like: Array) -> Array:
    return full_beside(like, like.shape, 0.0) if cotangent is None else cotangent
