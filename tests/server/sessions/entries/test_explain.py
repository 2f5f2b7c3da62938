"""A session is told how its own programs run, within a bound, and nothing of others."""

from __future__ import annotations

import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.devices.null import NullPlan
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_protos.errors import CaseError
from fusewire_protos.frames import Explain, Fetch, Forget
from fusewire_protos.programs.explained import ExplainedProgram, decode_explained
from fusewire_protos.programs.records import OpForm
from fusewire_server.config.config import Limits
from fusewire_server.programs.program_table import PlanState
from fusewire_server.sessions.entries.explain import MOST_UNTAKEN, explained
from fusewire_server.sessions.session import Session
from tests.server.parts import new
from tests.server.tables import ADD, NEGATE, PAIR, PROGRAMS, World, answers


def _explained(one: Session) -> dict[int, ExplainedProgram]:
    assert all(answer.data is not None for answer in one.answers.unsent)
    return {answer.fetch: decode_explained(bytes(answer.data or b"")) for answer in one.answers.unsent}


def test_a_program_without_a_plan_runs_op_by_op() -> None:
    world = World()
    one = world.session()
    world.take(one, Explain(1, PAIR))
    explanation = _explained(one)[1]
    assert (explanation.op_count, explanation.state, explanation.form) == (PROGRAMS[PAIR].op_count, "unplanned", "ops")
    assert explanation.names == tuple(PROGRAMS[PAIR].op_names)
    assert {record.form for record in explanation.records.ops} == {OpForm.OP_BY_OP}


def test_a_program_with_a_plan_is_told_by_its_records() -> None:
    world = World()
    one = world.session()
    plan = build_plan(PROGRAMS[PAIR], "c")
    entry = one.programs[PAIR]
    entry.loaded = NullPlan(plan, SlotLayout(plan))
    entry.enter(PlanState.LOADED)
    world.take(one, Explain(1, PAIR))
    explanation = _explained(one)[1]
    assert (explanation.state, explanation.form, explanation.records) == (
        "loaded",
        "launches",
        plan.records._replace(values=()),
    )
    assert [each.instances for each in explanation.launches] == [len(each.instances) for each in plan.launches]


def test_each_question_is_answered_once() -> None:
    world = World()
    one = world.session()
    world.take(one, Explain(1, ADD), Explain(1, ADD), Explain(2, NEGATE))
    assert [answer.fetch for answer in one.answers.unsent] == [1, 2]


def test_an_answer_counts_as_unread_until_it_is_acknowledged() -> None:
    world = World()
    one = world.session()
    world.take(one, Explain(1, ADD))
    (answer,) = one.answers.unsent
    assert one.answers.unread_bytes == len(answer.data or b"") > 0
    number, _ = one.answers.take(1 << 20)
    one.answers.acknowledge(number)
    assert one.answers.unread_bytes == 0


def test_a_session_names_only_programs_that_it_has_sent_and_not_forgotten() -> None:
    world = World()
    one, other = world.session(), world.session("b")
    world.take(other, new(77, PROGRAMS[ADD]))
    for number in (77, 78):
        with pytest.raises(CaseError, match="was never sent") as caught:
            world.take(one, Explain(1, number))
        assert caught.value.case.name == "unknown_program"
    world.take(one, Forget(ADD))
    with pytest.raises(CaseError, match="was never sent"):
        world.take(one, Explain(2, ADD))


def test_what_others_do_with_the_program_is_not_told() -> None:
    world = World()
    one = world.session()
    entry = one.programs[ADD]
    before = explained(entry)
    entry.uses, entry.holders = 1000, 50
    entry.ran(64)
    assert explained(entry) == before


def test_a_rejected_program_is_answered_with_the_reason() -> None:
    world = World(Limits(program_ops=1))
    one = world.session()
    world.take(one, Explain(1, PAIR))
    ((case, text),) = answers(one).values()
    assert case == "quota_program"
    assert "limits.program_ops = 1" in text


def test_an_answer_beyond_the_unread_bytes_is_a_failure() -> None:
    world = World()
    one = world.session()
    one.answers.most_unread_bytes = 1
    world.take(one, Explain(1, ADD), Explain(2, ADD))
    first, second = one.answers.unsent
    assert first.data is not None
    assert second.failure is not None
    assert second.failure.case.name == "quota_host_bytes"


def test_beside_many_answers_that_wait_there_is_no_explanation() -> None:
    world = World()
    one = world.session()
    world.take(one, *[Explain(number, ADD) for number in range(1, MOST_UNTAKEN + 2)])
    *explained, last = one.answers.unsent
    assert all(answer.data is not None for answer in explained)
    assert last.failure is not None
    assert f"{MOST_UNTAKEN} answers wait to be taken" in last.failure.text


def test_too_many_unread_answers_end_the_session() -> None:
    world = World(Limits(handles=8))
    one = world.session()
    world.take(one, *[Explain(number, ADD) for number in range(1, 8)], Fetch(8, 10))
    with pytest.raises(CaseError) as caught:
        world.take(one, Explain(9, ADD))
    assert caught.value.case.name == "slow_reader"
