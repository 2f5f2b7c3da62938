"""The snapshot: shown ids, plans for people, and that all of it is JSON."""

import dataclasses
import json

import pytest

from fusewire_kernels.fusion.reasons import Reason
from fusewire_kernels.plan.plan import Cost, KernelSource, Launch, OperandRef, Plan
from fusewire_protos.programs.records import OpForm, OpRecord, Records, Unfused
from fusewire_server.inspect.snapshots.snapshot import (
    GroupView,
    OpView,
    SourceView,
    UnfusedView,
    compiled_view,
    shown_id,
)
from tests.server.inspect.examples import SNAPSHOT

RECORDS = Records(
    ops=(OpRecord(OpForm.KERNELS, (2,)), OpRecord(OpForm.KERNELS, (0, 1))),
    unfused=(Unfused(1, 0, "other_points"),),
    updated=(3,),
    values=((-1, 1), (-1, 1), (-1, 0)),
    persistent=(OpRecord(OpForm.KERNELS, (0,)), OpRecord(OpForm.DEAD)),
)


def test_a_shown_id_is_too_short_to_resume_a_session() -> None:
    session_id = bytes(range(16))
    assert session_id.hex().startswith(shown_id(session_id))
    assert len(shown_id(session_id)) < len(session_id.hex()) // 2


def test_a_plan_is_shown_by_its_launches_and_sources() -> None:
    operand = OperandRef(column=1, byte_offset=0)
    plan = Plan(
        kernels=(KernelSource("k_add", "add"), KernelSource("k_sum", "sum")),
        launches=(Launch(1, (8, 4), ((operand,), (operand,))), Launch(0, (8,), ((operand,),))),
        columns=(),
        arena_bytes=512,
        donations=(),
        cost=Cost(0, 0),
        records=RECORDS,
    )
    view = compiled_view(plan, ["add", "sum"])
    assert view.groups == (
        GroupView("k_sum", (8, 4), 2, ((-1, 1), (-1, 1))),
        GroupView("k_add", (8,), 1, ((-1, 0),)),
    )
    assert view.sources == (SourceView("k_add", "add"), SourceView("k_sum", "sum"))
    assert view.ops == (OpView("add", "kernels", (2,)), OpView("sum", "kernels", (0, 1)))
    assert view.unfused == (UnfusedView(1, 0, "other_points"),)
    assert view.reasons == {"other_points": Reason.OTHER_POINTS.value}
    assert (view.updated, view.persistent, view.why_launched) == ((3,), ("kernels", "dead"), "")
    assert view.arena_bytes == 512


def test_a_snapshot_is_json() -> None:
    assert json.loads(json.dumps(dataclasses.asdict(SNAPSHOT)))["stats"]["totals"]["ops"] == 600


def test_a_snapshot_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        SNAPSHOT.stats.is_ready = False  # type: ignore[misc]
