"""The iterations of a row whose segment is a loop: which value each input and result has in each of them. Pure.

A result is written in turn to the values of its *ring*. The first value of a ring gets the result of the last
iteration, the second value that of the iteration before, and so on. So a result that nothing carries has a ring of one
value, which each iteration writes over. A result that is carried over n iterations has a ring of n + 1 values; but one
that is updated in place, as by `y[i] = h`, has one. A result that the client keeps of the last n iterations has a ring
of at least n values.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain

from fusewire_protos.frames import Repetition
from fusewire_protos.in_steps import InSteps
from fusewire_protos.programs.program import Program
from fusewire_server.programs.dependent_results import MOST_A_STEP, first_failed
from fusewire_server.sessions.session import Value

Stepped = Mapping[int, Sequence[int]]  # for each stepped input the indices of its values among a row's inputs

ONCE = range(1)  # the iterations of a row that is no loop


class Iterations:
    """The iterations of one row. The engine thread owns `begun`.

    `kept` says for each live result of how many of the last iterations the client holds it.
    """

    __slots__ = ("begun", "count", "kept", "program", "rings", "scalars", "starts", "stepped")

    def __init__(
        self, program: Program, repetition: Repetition, rings: Sequence[Sequence[Value]], stepped: Stepped
    ) -> None:
        self.program = program
        self.count = repetition.iterations
        self.rings = rings  # one for each live result, in order
        self.kept = repetition.kept or ()
        self.stepped = stepped
        self.scalars = dict(repetition.scalars)
        self.starts = dict(repetition.starts)
        self.begun = 0  # how many iterations the device has been told to run

    @property
    def outputs(self) -> list[Value]:
        """All values that the iterations write: first the results of the last iteration, in order."""
        return [*(ring[0] for ring in self.rings), *chain.from_iterable([ring[1:] for ring in self.rings])]

    def results(self) -> Iterator[tuple[Value, int]]:
        """Yields the values that the client may hold, and the last of each other result, each with its iteration."""
        for ring, kept in zip(self.rings, self.kept, strict=True):
            for age, value in enumerate(ring[: max(kept, 1)]):
                yield value, self.count - 1 - age

    def position_of(self, source: int) -> int | None:
        """Returns the position of an operand among the live results, or None if the operand is an input."""
        index = source - self.program.first_result
        return self.program.live_positions[index] if index >= 0 else None

    def inputs_of(self, values: Sequence[Value], iteration: int) -> list[Value]:
        """Returns the value of each input in an iteration. `values` are all inputs of the row."""
        return [self._input(values, number, iteration) for number in range(len(self.program.inputs))]

    def outputs_of(self, iteration: int) -> list[Value]:
        """Returns the value that each live result gets in an iteration."""
        age = self.count - 1 - iteration
        return [ring[age % len(ring)] for ring in self.rings]

    def _input(self, values: Sequence[Value], number: int, iteration: int) -> Value:
        origin = self.program.origins.get(number)
        if origin is not None:
            if iteration < len(origin.initial):
                number, iteration = origin.initial[iteration], 0
            elif (position := self.position_of(origin.source)) is not None:
                ring = self.rings[position]
                return ring[(self.count - 1 - iteration + len(origin.initial)) % len(ring)]
            else:
                number, iteration = origin.source, iteration - len(origin.initial)
        stepped = self.stepped.get(number)
        return values[number] if stepped is None else values[stepped[iteration % len(stepped)]]


def first_uses(stepped: Stepped, positions: Iterable[int]) -> dict[int, tuple[int, int]]:
    """Returns for each position among a row's inputs the first iteration that takes its value, and the input.

    There may be tens of thousands of positions, so they are not looked up one by one.
    """
    uses = {
        position: (iteration, number) for number, taken in stepped.items() for iteration, position in enumerate(taken)
    }
    return {position: uses.get(position, (0, position)) for position in positions}


def failure_causes(program: Program, stepped: Stepped, failed: Iterable[int]) -> InSteps[dict[int, tuple[int, int]]]:
    """Returns for each op that depends on a failed input the first iteration that does, and the input's position.

    `failed` are positions among a row's inputs. If an op depends on several failed inputs in the same iteration, the
    first of them counts. The iteration may be one that the row does not run.
    """
    uses = sorted([(use, position) for position, use in first_uses(stepped, failed).items()])
    first: dict[int, tuple[int, int]] = {}
    for (iteration, number), position in uses:
        first.setdefault(number, (iteration, position))
    taken_first = {number: iteration for number, (iteration, _) in first.items()}
    if len(first) > MOST_A_STEP:  # they have taken a step
        yield
    causes = yield from first_failed(program, taken_first, is_loop=True)
    return {op: (iteration, first[number][1]) for op, (iteration, number) in causes.items()}
