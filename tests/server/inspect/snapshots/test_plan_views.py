"""Plans as people see them."""

from __future__ import annotations

import pytest

from fusewire_kernels.fusion.reasons import Reason
from fusewire_kernels.plan.plan import Cost, KernelSource, Launch, OperandRef, Plan
from fusewire_protos.programs.program import build
from fusewire_protos.programs.records import OpForm, OpRecord, Records, Unfused
from fusewire_server.inspect.snapshots import plan_views
from fusewire_server.inspect.snapshots.plan_views import GroupView, OpView, SourceView, UnfusedView, compiled_view
from tests.server.parts import VECTOR, op

RECORDS = Records(
    ops=(OpRecord(OpForm.KERNELS, (2,)), OpRecord(OpForm.KERNELS, (0, 1))),
    unfused=(Unfused(1, 0, "other_points"),),
    updated=(3,),
    values=((-1, 1), (-1, 1), (-1, 0)),
    persistent=(OpRecord(OpForm.KERNELS, (0,)), OpRecord(OpForm.DEAD)),
)
OPERAND = OperandRef(column=1, byte_offset=0)
PLAN = Plan(
    kernels=(KernelSource("k_add", "add"), KernelSource("k_sum", "sum")),
    launches=(Launch(1, (8, 4), ((OPERAND,), (OPERAND,))), Launch(0, (8,), ((OPERAND,),))),
    columns=(),
    arena_bytes=512,
    donations=(),
    cost=Cost(0, 0),
    records=RECORDS,
)


def test_a_plan_is_shown_by_its_launches_and_sources() -> None:
    view = compiled_view(PLAN, build([VECTOR, VECTOR], [], [op("add", 0, 1), op("negative", 2)], (1,)))
    assert view.groups == (
        GroupView("k_sum", (8, 4), 2, ((-1, 1), (-1, 1))),
        GroupView("k_add", (8,), 1, ((-1, 0),)),
    )
    assert view.sources == (SourceView("k_add", "add"), SourceView("k_sum", "sum"))
    assert view.ops == (OpView("add", "kernels", (2,)), OpView("negative", "kernels", (0, 1)))
    assert view.unfused == (UnfusedView(1, 0, "other_points"),)
    assert view.reasons == {"other_points": Reason.OTHER_POINTS.value}
    assert (view.updated, view.persistent, view.why_launched) == ((3,), ("kernels", "dead"), "")
    assert view.arena_bytes == 512
    assert view.reads == ((), (0,))


def test_what_ops_read_is_told_of_programs_that_can_be_drawn_only(monkeypatch: pytest.MonkeyPatch) -> None:
    program = build([VECTOR], [], [op("multiply", 0, 0), op("multiply", 1, 1)], (1,))
    assert compiled_view(PLAN, program).reads == ((), (0,))
    monkeypatch.setattr(plan_views, "MOST_DRAWN", 1)
    assert compiled_view(PLAN, program).reads == ()
