"""The body of a function in stages: its ops, and the loops that stand between them.

A stage is recorded again by itself. Values are named by the handles that they had when the body was recorded first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from fusewire._errors import QuotaExceeded, RequestError
from fusewire._recording.bodies.body import recording_body
from fusewire._recording.bodies.recorded_body import RecordedBody
from fusewire._recording.pinned_handles import HandlePin
from fusewire._recording.record_op import R, repeat
from fusewire._recording.recorder import Recorder
from fusewire_protos.programs.limits import MOST_LIVE

Handles = Mapping[int, int]


class OpsStage(NamedTuple):
    """Ops. The first of them had the number `first`."""

    body: RecordedBody
    first: int

    @property
    def inputs(self) -> Sequence[int]:
        """Returns the handles that it takes."""
        return self.body.structure.inputs

    def record_again(
        self, kind: type[R], recorder: Recorder, known: Mapping[int, int], pins: list[HandlePin]
    ) -> list[R]:
        """Records it with the handles that `known` has for earlier ones. Returns its live results."""
        handles = [known.get(handle, handle) for handle in self.inputs]
        return repeat(kind, recorder, self.body, handles, self.body.values, pins)


class LoopStage(NamedTuple):
    """A loop whose body has parameters.

    For each parameter, `initial` holds the handle that it is in the first iteration, and `carried` the result that it
    is in the next, if it changes.
    """

    body: RecordedBody
    first: int
    initial: Mapping[int, int]
    carried: Mapping[int, int]
    iterations: int
    index_steps: bool

    @property
    def inputs(self) -> Sequence[int]:
        """Returns the handles that it takes."""
        captured = [handle for handle in self.body.structure.inputs if handle not in self.initial]
        return [*captured, *self.initial.values()]

    def record_again(
        self, kind: type[R], recorder: Recorder, known: Mapping[int, int], pins: list[HandlePin]
    ) -> list[R]:
        """Sends the loop with the handles that `known` has for earlier ones. Returns its live results."""
        with recording_body(recorder):
            # Each input has a number of its own, so that the structure is the same where two are one value.
            inputs = {each: recorder.mint_parameter() for each in {*self.initial, *self.body.structure.inputs}}
            handles = [inputs[each] for each in self.body.structure.inputs]
            results = repeat(kind, recorder, self.body, handles, self.body.values, pins)
            sources = {number: self.initial.get(each, each) for each, number in inputs.items()}
            bound = {number: known.get(source, source) for number, source in sources.items()}
            numbers = {self.first + op: each._handle for op, each in zip(self.body.live, results, strict=True)}
            carried = {inputs[each]: numbers[result] for each, result in self.carried.items()}
            try:
                recorder.owner.send_body(
                    recorder,
                    lambda: recorder.draft_loop(bound, carried, self.iterations, index_steps=self.index_steps),
                )
            finally:  # also if Ctrl-C ends the wait for credit
                recorder.forget_parameters([*inputs.values()])
        return results


Stage = OpsStage | LoopStage


def handing_out(stages: Sequence[Stage], results: Iterable[int]) -> list[Stage]:
    """Returns the stages that lead to these results. Each hands out those of its results that are taken later.

    Raises QuotaExceeded if those of a stage are too many for a program, and RequestError if a value of a loop's body is
    taken that the loop does not carry.
    """
    wanted, found = {*results}, []
    for stage in reversed(stages):
        ops = len(stage.body.signatures)
        live = tuple(sorted(handle - stage.first for handle in wanted if 0 <= handle - stage.first < ops))
        if not live:
            continue
        if isinstance(stage, LoopStage):  # all that it carries
            carried = {result - stage.first for result in stage.carried.values()}
            if not carried.issuperset(live):
                raise RequestError("a function takes a value of the body of a loop that is not in the loop's carry")
            live = tuple(sorted(carried))
        if len(live) > MOST_LIVE:
            raise QuotaExceeded(f"a body of {len(live)} results; the most is {MOST_LIVE}")
        found.append(stage._replace(body=stage.body.handing_out(live)))
        wanted.update(stage.inputs)
    found.reverse()
    return found
