"""A step that comes again: drafts a body that a read ends like the body that the last read ended. Pure.

A program that reads a value in each step, such as an agent, records the same ops between two reads, with other handles
and values. What is the same is kept from the last draft: structure, live results, what is carried. One pass over the
records and the deaths finds out whether it is the same, and what is not.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from fusewire._recording.cutting.drafts import Draft
from fusewire._recording.cutting.segments import Flags, Liveness, Structure
from fusewire._recording.integer_scans import inputs_of_step
from fusewire._recording.tape import Integers
from fusewire_protos.frames import Scalar


class KnownStep(NamedTuple):
    """What the steps have in common. `body` are the signature numbers of the loop's body, in the cutter's own array."""

    body: Integers
    draft: Draft
    structure: Integers
    live: Flags  # for each op

    @classmethod
    def of(cls, draft: Draft, body: Integers | None) -> KnownStep | None:
        """Returns the step of a draft that takes all unsent ops, or None if it is no body that runs once."""
        if body is None or draft.piece.bodies != 1 or len(draft.later) or len(draft.liveness.waiting):
            return None
        live = np.zeros(draft.piece.ops, bool)
        live[[*draft.liveness.live]] = True
        return cls(body, draft, np.frombuffer(draft.structure.key, np.int64), live)

    def again(
        self, records: Integers, first: int, dead: Integers, values_of: Callable[[Integers], list[Scalar]]
    ) -> Draft | None:
        """Drafts the step that begins with op number `first`, or returns None if it is another one.

        `records` are those of its ops, `dead` the handles known to be dead. `values_of` is that of `Unsent`.
        """
        found = inputs_of_step(self.structure, self.live, records, first, dead)
        if found is None:
            return None
        inputs, deaths = found
        last = self.draft
        if len(inputs) != len(last.structure.inputs):  # some pass values on, and take nothing in this iteration
            return None
        taken = set(inputs)
        liveness = Liveness(
            last.liveness.live,
            [handle for handle in deaths if handle in taken],
            [handle for handle in deaths if handle not in taken],
            last.liveness.waiting,
        )
        structure = Structure(last.structure.key, inputs)
        return Draft(last.piece, first, structure, liveness, values_of(records), last.later, loop_form=last.loop_form)
