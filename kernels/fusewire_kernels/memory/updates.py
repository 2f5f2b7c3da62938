"""Finds the carried results of a loop that are what was carried, of which some elements are changed: `y[i] = h`.

The first kernel that writes such a result copies the whole input. If the result has the memory of the input, this copy
does nothing. This is legal if nothing else takes the input once elements are changed, nor another input the result.
"""

from __future__ import annotations

from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.graph.graph import INPUT, Graph
from fusewire_kernels.ir.kernel import LoopKernel
from fusewire_kernels.memory.lifetimes import Lifetime, is_whole
from fusewire_kernels.plan.plan import Donation
from fusewire_protos.programs.program import Program


def updates(
    program: Program, graph: Graph, instances: list[Instance], lifetimes: dict[int, Lifetime]
) -> tuple[Donation, ...]:
    """Returns the pairs of a carried input and the position of the live result that is an update of it."""
    found: list[Donation] = []
    for position, result in enumerate(graph.outputs):
        source = _copied(graph, instances, lifetimes, result)
        if source is not None and _is_legal(lifetimes[source], lifetimes[result]):
            number = graph.values[source].number
            if _takers(program, position) == {number: 1}:
                found.append(Donation(number, position))
    return tuple(found)


def _takers(program: Program, position: int) -> dict[int, int]:
    """Returns the inputs that take a live result, and after how many iterations."""
    operand = program.first_result + program.live[position]
    return {number: len(initial) for number, (initial, source) in program.origins.items() if source == operand}


def _copied(graph: Graph, instances: list[Instance], lifetimes: dict[int, Lifetime], result: int) -> int | None:
    """Returns the input that the first write of a result copies as a whole, if it does so."""
    if result not in lifetimes:
        return None
    instance = instances[lifetimes[result].writes[0].group]
    kernel = instance.lowered.kernel
    if not isinstance(kernel, LoopKernel) or not kernel.is_copy:
        return None
    is_input = graph.values[instance.operands[0].value].form is INPUT
    is_of_wholes = all(is_whole(graph, instance, position) for position in (0, 1))
    is_in_order = instance.lowered.strides[0] == instance.lowered.strides[1]
    return instance.operands[0].value if is_input and is_of_wholes and is_in_order else None


def _is_legal(source: Lifetime, result: Lifetime) -> bool:
    copy, *changes = result.writes
    return not changes or all(use == copy or use.launch < changes[0].launch for use in source.reads)
