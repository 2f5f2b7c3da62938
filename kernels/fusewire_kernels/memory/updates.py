"""Finds the results that are an input of which some elements are changed, as after `y[i] = h`.

The first kernel that writes such a result copies the whole input. If the result has the memory of the input, this copy
does nothing. This is legal if nothing else reads the input once elements are changed.
"""

from __future__ import annotations

from fusewire_kernels.codegen.kernel import LoopKernel
from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.graph.graph import INPUT, Graph
from fusewire_kernels.memory.lifetimes import Lifetime, is_whole
from fusewire_kernels.plan.plan import Donation


def updates(graph: Graph, instances: list[Instance], lifetimes: dict[int, Lifetime]) -> tuple[Donation, ...]:
    """Returns the pairs of an input and the position of a live result that is an update of it."""
    found: list[Donation] = []
    for position, result in enumerate(graph.outputs):
        source = _copied(graph, instances, lifetimes, result)
        if source is not None and _is_legal(lifetimes[source], lifetimes[result]):
            found.append(Donation(graph.values[source].number, position))
    return tuple(found)


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
