"""Finds the results that a program at tier 0 may write over inputs that nobody reads again. Pure."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from fusewire_kernels.plan.plan import Donation
from fusewire_protos.programs.program import Program


def tier0_donations(program: Program, dying: Iterable[int]) -> list[Donation]:
    """Pairs each of the `dying` inputs with a result of the same size in bytes, while such results are left.

    No input or result is in two pairs. At tier 0 any result may be written over any input of the same size, because
    results are written after all ops have run.
    """
    positions: defaultdict[int, list[int]] = defaultdict(list)  # positions by size in bytes
    for position, index in enumerate(program.live):
        positions[program.result_spec(index).size_bytes].append(position)
    fitting = [(number, positions[program.inputs[number].size_bytes]) for number in dying]
    return [Donation(number, places.pop()) for number, places in fitting if places]
