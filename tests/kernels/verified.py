"""Judges a whole design at once, by the rules of all passes."""

from __future__ import annotations

from fusewire_kernels.build import Design
from fusewire_kernels.memory.donation import donations
from fusewire_kernels.verify import (
    verify_arena,
    verify_donations,
    verify_fusion,
    verify_graph,
    verify_launches,
    verify_lowering,
)


def verify(plan: Design) -> None:
    """All rules of all passes. Raises ServerFault with the first that is broken."""
    verify_graph(plan.graph)
    verify_fusion(plan.fusion)
    verify_launches(plan.fusion, plan.launches)
    verify_lowering(plan.fusion, plan.instances)
    verify_arena(plan.graph, plan.instances, plan.lifetimes, plan.arena)
    verify_donations(plan, donations(plan.graph, plan.instances, plan.lifetimes))
