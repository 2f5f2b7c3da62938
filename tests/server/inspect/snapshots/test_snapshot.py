"""The snapshot: shown ids, plans for people, and that all of it is JSON."""

import dataclasses
import json

import pytest

from fusewire_kernels.plan.plan import Cost, KernelSource, Launch, OperandRef, Plan
from fusewire_server.inspect.snapshots.snapshot import (
    GroupView,
    SourceView,
    compiled_view,
    shown_id,
)
from tests.server.inspect.examples import SNAPSHOT


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
        explanation=("why",),
    )
    view = compiled_view(plan)
    assert view.groups == (GroupView("k_sum", (8, 4), 2), GroupView("k_add", (8,), 1))
    assert view.sources == (SourceView("k_add", "add"), SourceView("k_sum", "sum"))
    assert (view.explanation, view.arena_bytes) == (("why",), 512)


def test_a_snapshot_is_json() -> None:
    assert json.loads(json.dumps(dataclasses.asdict(SNAPSHOT)))["stats"]["totals"]["ops"] == 600


def test_a_snapshot_cannot_be_changed() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        SNAPSHOT.stats.is_ready = False  # type: ignore[misc]
