"""A recorded body that can be recorded again, with other inputs and values: of a function, or of a training step."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Self

import numpy as np

from fusewire._recording.cutting.segments import Structure
from fusewire._recording.integer_scans import places_of_signatures
from fusewire._recording.signature import ArraySpec, signature_of
from fusewire._recording.tape import Integers
from fusewire_protos.frames import Scalar


class RecordedBody(NamedTuple):
    """The ops of a body. The results at the indices `live`, of these `specs`, are handed out; all others are `dead`.

    `values` are its scalars and slice starts in the order of its ops.
    """

    structure: Structure
    cells: Integers  # the integers of the structure
    signatures: Integers  # of each op
    live: tuple[int, ...]
    specs: tuple[ArraySpec, ...]
    dead: Integers
    values: list[Scalar]
    places: Sequence[int]  # for each op the number of the place that recorded it

    @classmethod
    def of(cls, structure: Structure, live: tuple[int, ...], values: list[Scalar], places: Sequence[int]) -> Self:
        cells = np.frombuffer(structure.key, np.int64)
        signatures = cells[places_of_signatures(cells)]
        dead = np.setdiff1d(np.arange(len(signatures)), live)
        specs = tuple([signature_of(int(signatures[op])).result for op in live])
        return cls(structure, cells, signatures, live, specs, dead, values, places)

    def handing_out(self, live: tuple[int, ...]) -> Self:
        """Returns this body with the results at other indices handed out."""
        return self if live == self.live else type(self).of(self.structure, live, self.values, self.places)
