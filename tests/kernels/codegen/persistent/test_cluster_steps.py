"""Steps of an iteration in a cluster: what waits for what, and what is sent first."""

from __future__ import annotations

from fusewire_kernels.build import design
from fusewire_kernels.codegen.persistent.cluster_steps import Phase, Step, steps_of
from fusewire_kernels.codegen.statements import analyse
from fusewire_kernels.fusion.persistent.choice import persistent_of
from fusewire_kernels.fusion.persistent.loop_body import Persistent
from fusewire_kernels.ir.persistent import PersistentCluster
from fusewire_protos.programs.program import Program
from tests.kernels.loops_of_note import driven, gated, leaky, recurrent, stacked, with_memory, with_sums


def steps_in(program: Program) -> list[Step]:
    made = design(program, for_gpu=False)
    found = persistent_of(made.program, made.graph, made.instances, made.launches, made.updates)
    assert isinstance(found, Persistent)
    assert isinstance(found.kernel, PersistentCluster)
    return steps_of(found.kernel, [analyse(stage.body) for stage in found.kernel.stages])


def test_a_product_with_its_epilogue_is_one_step() -> None:
    assert steps_in(recurrent(1, 64)) == [Step((0,), (Phase(0, 0),), ())]


def test_products_of_what_the_iteration_before_has_sent_are_computed_together() -> None:
    assert [step.products for step in steps_in(with_memory(1, 64))] == [(0, 1, 2, 3)]


def test_a_product_of_an_input_does_not_wait() -> None:
    assert [sorted(step.products) for step in steps_in(driven(1, 64))] == [[0, 1]]


def test_a_product_of_what_is_computed_first_waits_for_it() -> None:
    first, second = steps_in(leaky(1, 64))
    assert (first.products, len(first.first)) == ((), 1)
    assert len(second.products) == 1


def test_what_is_sent_comes_before_what_is_not() -> None:
    first, _ = steps_in(gated(1, 64))
    assert len(first.products) == 2
    assert (len(first.first), len(first.others)) == (1, 1)  # the reset gate is sent, and the update gate waits here


def test_a_product_is_computed_before_the_epilogue_that_waits_for_another_product() -> None:
    first, second = steps_in(stacked(1, 64))
    assert (len(first.products), len(second.products)) == (2, 1)  # of both states, then of the new lower one
    assert len(first.first) + len(second.first) == 3


def test_a_reduction_is_there_in_the_step_behind_the_one_that_sends_what_it_reduces() -> None:
    steps = steps_in(with_sums(1, 64))
    phases = [phase for step in steps for phase in (*step.first, *step.others)]
    assert len(steps) == 3
    at = {phase: index for index, step in enumerate(steps) for phase in (*step.first, *step.others)}
    behind = [phase for phase in phases if phase.number]
    assert behind
    assert all(at[phase] == at[Phase(phase.stage, phase.number - 1)] + 1 for phase in behind)
