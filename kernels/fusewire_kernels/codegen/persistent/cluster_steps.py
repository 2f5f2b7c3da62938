"""Orders the work of an iteration of a persistent cluster in steps, between which blocks send to one another. Pure.

A stage has a phase for each series of reductions, and one more. A phase computes what is reduced in the next one, and
what the stage writes as soon as it can. What is sent in one step is there in the next.

A product takes its left operand in the first step in which it is there. So all that was sent in the iteration before
has been read before this one sends for the second time.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from fusewire_kernels.codegen.statements import AnalysedKernel
from fusewire_kernels.ir.persistent import PersistentCluster, ReducedValue, Source, Stage


class Phase(NamedTuple):
    """Phase number `number` of the stage number `stage`."""

    stage: int
    number: int


class Step(NamedTuple):
    """The stages whose products are computed together, and the phases that follow.

    The phases `first` compute what is sent, and come before it is sent. The others do not delay it.
    """

    products: tuple[int, ...]
    first: tuple[Phase, ...]
    others: tuple[Phase, ...]


def steps_of(kernel: PersistentCluster, bodies: Sequence[AnalysedKernel]) -> list[Step]:
    """Returns the steps of an iteration. `bodies` are those of the kernel's stages."""
    of_product: dict[int, int] = {}
    of_phase: dict[Phase, int] = {}
    for number, stage in enumerate(kernel.stages):
        begin = 0
        if stage.product is not None and stage.product.is_new:
            parts = kernel.exchanged[stage.product.left].parts
            begin = max([of_phase[phase_of(each.source, bodies)] for each in parts]) + 1
        if stage.product is not None:
            of_product[number] = begin
        begin = max([begin, *[of_phase[phase_of(source, bodies)] for source in taken(stage)]])
        for phase in range(bodies[number].phases + 1):
            of_phase[Phase(number, phase)] = begin + phase
    sent = [phase_of(part.source, bodies) for each in kernel.exchanged for part in each.parts]
    steps = []
    for step in range(max(of_phase.values()) + 1):
        phases = [phase for phase, each in of_phase.items() if each == step]
        first = _with_taken([phase for phase in phases if phase in sent], kernel, bodies)
        steps.append(
            Step(
                tuple([stage for stage, each in of_product.items() if each == step]),
                tuple([phase for phase in phases if phase in first]),
                tuple([phase for phase in phases if phase not in first]),
            )
        )
    return steps


def phase_of(source: Source | ReducedValue, bodies: Sequence[AnalysedKernel]) -> Phase:
    """Returns the phase that computes a value."""
    body = bodies[source.stage]
    value = source.value if isinstance(source, ReducedValue) else body.stored[source.store]
    return Phase(source.stage, body.stages[value])


def taken(stage: Stage) -> list[Source]:
    """Returns what a stage takes of other stages in the same iteration."""
    return [each.source for each in stage.inputs if each.source is not None and each.operand is None]


def _with_taken(
    phases: Sequence[Phase], kernel: PersistentCluster, bodies: Sequence[AnalysedKernel]
) -> frozenset[Phase]:
    """Returns phases and all phases from which they take values in the same iteration."""
    found, reached = set[Phase](), [*phases]
    while reached:
        phase = reached.pop()
        if phase not in found:
            found.add(phase)
            reached += [phase_of(source, bodies) for source in taken(kernel.stages[phase.stage])]
    return frozenset(found)
