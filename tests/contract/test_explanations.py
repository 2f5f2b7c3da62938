"""What a client is told of its programs is what the server's plans are."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

import fusewire as fw
from fusewire._api.explanation import program_explanation
from fusewire_kernels.build import design
from fusewire_kernels.devices.null import NullPlan
from fusewire_kernels.plan.slots import SlotLayout
from fusewire_protos.programs.explained import decode_explained, encode_explained
from fusewire_protos.programs.program import Program
from fusewire_server.sessions.entries.explain import explained
from tests.contract.loops import LINE_OF_RECUR, layer, recur
from tests.contract.service import Service
from tests.kernels.plan_runner import plan_without_text
from tests.kernels.programs import random_program
from tests.server.parts import entry_of

_STEPS = 300


def _explained(program: Program) -> fw.ProgramExplanation:
    """What a client makes of a server's answer."""
    entry = entry_of(program)
    plan = plan_without_text(design(program, for_gpu=False))
    entry.loaded = NullPlan(plan, SlotLayout(plan))
    decoded = decode_explained(encode_explained(explained(entry)))
    return program_explanation(decoded, [""] * program.op_count, None)


@settings(deadline=None, max_examples=100)
@given(st.integers(0, 2**32))
def test_the_groups_and_launches_are_those_of_the_plan(seed: int) -> None:
    program = random_program(seed, most_ops=60).program
    made, explanation = design(program, for_gpu=False), _explained(program)
    values = made.graph.values
    for launch, groups in zip(made.launches, explanation.launches, strict=True):
        for group, number in zip(launch.groups, groups, strict=True):
            members = [*made.fusion.groups[group].members, *made.fusion.groups[group].inlined]
            assert {*explanation.groups[number]} == {values[each].origin for each, _ in members}
    for index, op in enumerate(explanation.ops):
        assert op.name == program.ops[index].op.name
        assert op.groups == tuple([number for number, ops in enumerate(explanation.groups) if index in ops])
        launches = [number for number, groups in enumerate(explanation.launches) if {*groups} & {*op.groups}]
        assert op.launches == tuple(launches)
    assert len({(each.consumer, each.producer) for each in explanation.unfused}) == len(explanation.unfused)


def test_a_server_tells_a_client_what_inspection_tells_of_its_plan(service: Service) -> None:
    with service.connect() as session:
        h, w, b = layer(session)
        h = recur(h, w, b, _STEPS)
        h.numpy()
        service.wait_until_planned()
        h = recur(h, w, b, _STEPS)
        h.numpy()
        recorded = session.stats.ops_recorded
        (program,) = fw.explain(h).programs
        assert session.stats.ops_recorded == recorded
        compiled = service.program(program.digest)["compiled"]
    assert program.state == "loaded"
    assert [[op.name, op.form, [*op.groups]] for op in program.ops] == [
        [op["name"], op["form"], op["groups"]] for op in compiled["ops"]
    ]
    assert [*program.kernels] == [group["kernel"] for group in compiled["groups"]]
    assert [len(groups) for groups in program.launches] == [group["instances"] for group in compiled["groups"]]
    assert {(each.consumer, each.producer, each.reason) for each in program.unfused} == {
        (each["consumer"], each["producer"], compiled["reasons"][each["reason"]]) for each in compiled["unfused"]
    }
    assert {op.line for op in program.ops} == {LINE_OF_RECUR}


def test_sessions_explain_their_own_programs_only(service: Service) -> None:
    with service.connect() as one, service.connect() as other:
        fw.tanh(one.array([1.0])).numpy()
        fw.exp(other.array([1.0])).numpy()
        assert [[op.name for op in program.ops] for program in one.explain().programs] == [["tanh"]]
        assert [[op.name for op in program.ops] for program in other.explain().programs] == [["exp"]]
