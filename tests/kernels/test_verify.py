"""The rules of plans catch plans that break them."""

from __future__ import annotations

import pytest

from fusewire_kernels.build import Design, design
from fusewire_kernels.graph import Operand
from fusewire_kernels.schedule import Batch
from fusewire_kernels.verify import verify
from fusewire_kernels.views import Layout
from fusewire_protos.errors import ServerFault
from tests.kernels.programs import Writer


def _sound() -> Design:
    writer = Writer()
    x, w = writer.input(8, 8), writer.input(8, 8)
    return design(writer.program(writer.matmul(writer.softmax(writer.matmul(x, w), axes=(1,)), w)))


def test_a_sound_plan_passes() -> None:
    verify(_sound())


def test_a_group_before_what_it_waits_for_is_found() -> None:
    plan = _sound()
    with pytest.raises(ServerFault, match="runs before group"):
        verify(plan._replace(batches=plan.batches[::-1]))


def test_a_group_that_does_not_run_is_found() -> None:
    plan = _sound()
    with pytest.raises(ServerFault, match="does not run exactly once"):
        verify(plan._replace(batches=plan.batches[:-1]))


def test_a_group_that_runs_twice_is_found() -> None:
    plan = _sound()
    twice = [*plan.batches, Batch(plan.batches[0].lowered, plan.batches[0].groups)]
    with pytest.raises(ServerFault, match="does not run exactly once"):
        verify(plan._replace(batches=twice))


def test_buffers_that_overlap_while_both_are_needed_are_found() -> None:
    plan = _sound()
    overlapping = plan.arena._replace(offset_of=dict.fromkeys(plan.arena.offset_of, 0))
    with pytest.raises(ServerFault, match="share memory"):
        verify(plan._replace(arena=overlapping))


def test_a_buffer_outside_the_arena_is_found() -> None:
    plan = _sound()
    with pytest.raises(ServerFault, match="outside the arena"):
        verify(plan._replace(arena=plan.arena._replace(size_bytes=0)))


def test_a_view_that_leaves_its_buffer_is_found() -> None:
    plan = _sound()
    task = plan.tasks[0]
    outside = Operand(task.operands[0].value, Layout((8, 8), (8, 1), 1, ()))
    with pytest.raises(ServerFault, match="leaves the buffer"):
        verify(plan._replace(tasks=[task._replace(operands=(outside, *task.operands[1:])), *plan.tasks[1:]]))


def test_a_result_that_no_task_stores_is_found() -> None:
    plan = _sound()
    last = plan.tasks[-1]
    elsewhere = (*last.operands[:-1], last.operands[0])
    with pytest.raises(ServerFault, match="stored by no task"):
        verify(plan._replace(tasks=[*plan.tasks[:-1], last._replace(operands=elsewhere)]))
