"""The random numbers of a recorded step: which of its scalars are the key and the counters of the device's generator.

Each use of the step draws at the counters that come next, as the step itself would.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fusewire._recording.bodies.recorded_body import RecordedBody
from fusewire._recording.integer_scans import VALUE, places_of_signatures
from fusewire._recording.signature import signature_of
from fusewire_protos.frames import Scalar
from fusewire_torch import random_state

_COUNTERS = 2**64


class Draws(NamedTuple):
    """For each draw the place of its first scalar among the values of the recording, and its first counter.

    Counters are relative to that of the generator when the step begins; `taken` is how many the step takes.
    """

    offsets: tuple[tuple[int, int], ...]
    taken: int

    def values(self, recorded: list[Scalar]) -> list[Scalar]:
        """Returns the values of the next use."""
        if not self.offsets:
            return recorded
        generator = random_state.generator()
        values, start = recorded.copy(), generator._next_counter
        for place, offset in self.offsets:
            values[place], values[place + 2] = (start + offset) % _COUNTERS, _key(generator)
        return values

    def normal(self, recorded: list[Scalar]) -> list[Scalar]:
        """Returns the values without keys and with relative counters, so that two recordings can be compared."""
        values = recorded.copy()
        for place, offset in self.offsets:
            values[place], values[place + 2] = offset, 0
        return values

    def advance(self) -> None:
        """Makes later draws begin behind those of one use."""
        generator = random_state.generator()
        generator._next_counter = (generator._next_counter + self.taken) % _COUNTERS


def draws_of(body: RecordedBody, first_counter: int) -> Draws:
    """Returns the draws of a recording that has begun at a counter of the device's generator, and has just ended."""
    generator = random_state.generator()
    count = (generator._next_counter - first_counter) % _COUNTERS
    cells = body.cells
    found = []
    for place in places_of_signatures(cells).tolist():
        if signature_of(int(cells[place])).op.name == "random_bits":
            position = int(np.count_nonzero(cells[:place] == VALUE))
            start, _, key = body.values[position : position + 3]
            offset = (int(start) - first_counter) % _COUNTERS
            if key == _key(generator) and offset < count:
                found.append((position, offset))
    return Draws(tuple(found), count)


def _key(generator: random_state.DeviceGenerator) -> int:
    key = generator._key
    assert isinstance(key, int), "the device's generator is made of a seed"
    return key
