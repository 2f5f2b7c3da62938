"""Plans of one value a launch: the same bits as fused plans, as slowly as can be."""

from __future__ import annotations

from fusewire_kernels.build import Design
from fusewire_kernels.fusion.fusion import Fusion
from fusewire_kernels.fusion.groups import Group
from fusewire_kernels.fusion.horizontal import GroupedLaunch
from fusewire_kernels.fusion.lowering import lower
from fusewire_kernels.fusion.reasons import Reason
from fusewire_kernels.fusion.vertical import _Fuser, _OperandGroups
from fusewire_kernels.graph.construction import build_graph
from fusewire_kernels.graph.graph import Graph, Value
from fusewire_kernels.memory.arena import arrange
from fusewire_kernels.memory.lifetimes import lifetimes
from fusewire_protos.programs.program import Program
from tests.kernels.verified import verify


def design_separately(program: Program, *, for_gpu: bool = False) -> Design:
    """What a plan computes and where, one value a launch. Raises ServerFault if a rule of plans is broken."""
    graph = build_graph(program, for_gpu=for_gpu)
    fusion = separate(graph)
    instances = lower(fusion)
    launches = [GroupedLaunch(instance.lowered, (group,)) for group, instance in enumerate(instances)]
    lives = lifetimes(graph, instances, launches)
    made = Design(program, fusion, instances, launches, lives, arrange(graph, instances, lives))
    verify(made)
    return made


def separate(graph: Graph) -> Fusion:
    """Each value in a group of its own."""
    return _Separator(graph).run()


class _Separator(_Fuser):
    """Fusion in which no value joins the group of another, and none is computed again."""

    def _join_one(self, number: int, value: Value, operand_groups: _OperandGroups) -> Group | None:
        for other in operand_groups.joinable:
            self._refuse(number, self._groups[other], Reason.OTHER_POINTS)
        return None

    def _can_inline(self, value: Value) -> bool:
        return False
