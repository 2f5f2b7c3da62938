"""The rules of plans catch plans that break them, after the pass that did."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fusewire_kernels import build
from fusewire_kernels.build import Design, design, plan_from
from fusewire_kernels.fusion.fusion import Fusion
from fusewire_kernels.fusion.horizontal import GroupedLaunch
from fusewire_kernels.graph.graph import Form, Graph, Operand
from fusewire_kernels.graph.views import Layout
from fusewire_kernels.memory.arena import Arena
from fusewire_kernels.plan.plan import ROWS_THAT_CHOOSE, Donation
from fusewire_kernels.verify import verify_donations
from fusewire_protos.errors import ServerFault
from fusewire_protos.ops import dtypes
from fusewire_protos.programs.program import Program
from tests.kernels.programs import Writer
from tests.kernels.verified import verify


def _sound() -> Design:
    writer = Writer()
    x, w = writer.input(8, 8), writer.input(8, 8)
    return design(writer.program(writer.matmul(writer.softmax(writer.matmul(x, w), axes=(1,)), w)), for_gpu=False)


def test_a_sound_plan_passes() -> None:
    verify(_sound())


def test_a_group_before_what_it_waits_for_is_found() -> None:
    plan = _sound()
    with pytest.raises(ServerFault, match="runs before group"):
        verify(plan._replace(launches=plan.launches[::-1]))


def test_a_group_that_does_not_run_is_found() -> None:
    plan = _sound()
    with pytest.raises(ServerFault, match="does not run exactly once"):
        verify(plan._replace(launches=plan.launches[:-1]))


def test_a_group_that_runs_twice_is_found() -> None:
    plan = _sound()
    twice = [*plan.launches, GroupedLaunch(plan.launches[0].lowered, plan.launches[0].groups)]
    with pytest.raises(ServerFault, match="does not run exactly once"):
        verify(plan._replace(launches=twice))


def test_a_group_that_writes_nothing_is_found() -> None:
    plan = _sound()
    first, *others = plan.instances
    with pytest.raises(ServerFault, match="group 0 writes nothing"):
        verify(plan._replace(instances=[first._replace(outputs=0), *others]))


def test_a_read_of_what_nothing_writes_is_found() -> None:
    plan = _sound()
    first, *others = plan.instances
    unwritten = first.operands[-1]
    elsewhere = unwritten._replace(value=others[-1].operands[-1].value)
    with pytest.raises(ServerFault, match=f"reads value {unwritten.value}, which nothing writes"):
        verify(plan._replace(instances=[first._replace(operands=(*first.operands[:-1], elsewhere)), *others]))


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
    instance = plan.instances[0]
    outside = Operand(instance.operands[0].value, Layout((8, 8), (8, 1), 1, ()))
    with pytest.raises(ServerFault, match="leaves the buffer"):
        verify(
            plan._replace(
                instances=[instance._replace(operands=(outside, *instance.operands[1:])), *plan.instances[1:]]
            )
        )


def _changed(plan: Design, number: int, **fields: Any) -> Design:
    """The plan with other fields of one value of its graph."""
    values = list(plan.graph.values)
    values[number] = values[number]._replace(**fields)
    graph = plan.graph._replace(values=tuple(values))
    return plan._replace(fusion=plan.fusion._replace(graph=graph))


def test_a_value_before_its_operand_is_found() -> None:
    plan = _sound()
    product = next(number for number, value in enumerate(plan.graph.values) if value.form is Form.PRODUCT)
    own = Operand(product, plan.graph.values[product].operands[0].layout)
    with pytest.raises(ServerFault, match="needs a value that comes later"):
        verify(_changed(plan, product, operands=(own, own)))


def test_an_operand_outside_of_its_value_is_found() -> None:
    plan = _sound()
    product = next(number for number, value in enumerate(plan.graph.values) if value.form is Form.PRODUCT)
    outside = Operand(0, Layout((8, 8), (8, 1), 1, ()))
    with pytest.raises(ServerFault, match="reads or writes outside"):
        verify(_changed(plan, product, operands=(outside, outside)))


def test_a_group_that_waits_for_a_later_one_is_found() -> None:
    plan = _sound()
    backwards = plan.fusion._replace(waits_for=((1,), *plan.fusion.waits_for[1:]))
    with pytest.raises(ServerFault, match="waits for a later one"):
        verify(plan._replace(fusion=backwards))


def test_a_group_that_does_not_wait_for_what_it_reads_is_found() -> None:
    plan = _sound()
    careless = plan.fusion._replace(waits_for=tuple(() for _ in plan.fusion.groups))
    with pytest.raises(ServerFault, match="does not wait for value"):
        verify(plan._replace(fusion=careless))


def test_a_member_before_its_operand_is_found() -> None:
    plan = _sound()
    max(plan.fusion.groups, key=lambda group: len(group.members)).members.reverse()
    with pytest.raises(ServerFault, match="comes before its operand"):
        verify(plan)


def test_a_member_may_come_before_an_operand_that_its_group_computes_again() -> None:
    writer = Writer()
    x = writer.scalar()
    part = writer.relu(x)
    twice = writer.add(part, part)
    product, view = writer.multiply(twice, part), writer.reshape(twice, shape=(1,))
    plan = design(writer.program(part, product, view), for_gpu=False)
    (group,) = plan.fusion.groups
    assert [plan.graph.values[number].body for number, _ in group.members] == ["relu", "multiply", "add"]
    verify(plan)


def test_a_value_that_is_computed_again_of_what_its_group_lacks_is_found() -> None:
    writer = Writer()
    x, start, step = writer.input(4), writer.scalar(), writer.scalar()
    ramp = writer.arange(start, step, length=4, dtype=dtypes.float32.code)
    plan = design(writer.program(writer.add(x, ramp)), for_gpu=False)
    verify(plan)
    (group,) = plan.fusion.groups
    group.inlined = frozenset(sorted(group.inlined)[1:])
    with pytest.raises(ServerFault, match="again, but not its operand"):
        verify(plan)


def test_a_value_that_is_computed_twice_is_found() -> None:
    plan = _sound()
    softmax = max(plan.fusion.groups, key=lambda group: len(group.members))
    softmax.members.append(softmax.members[-1])
    with pytest.raises(ServerFault, match="computed twice"):
        verify(plan)


@pytest.mark.parametrize("offset", [0, 2])
def test_an_element_that_is_not_written_exactly_once_is_found(offset: int) -> None:
    writer = Writer()
    x, y = writer.input(4), writer.input(4)
    plan = design(writer.program(writer.concat(x, y, axis=0)), for_gpu=False)
    verify(plan)
    (result,) = plan.graph.outputs
    last = max(number for number, value in enumerate(plan.graph.values) if value.target is not None)
    with pytest.raises(ServerFault, match="not written exactly once"):
        verify(_changed(plan, last, target=Operand(result, Layout((4,), (1,), offset, ()))))


def _with_late_reader() -> Design:
    """tanh(x) and tanh(x) @ x: x is read after the first result is there."""
    writer = Writer()
    x = writer.input(3, 3)
    y = writer.tanh(x)
    return design(writer.program(y, writer.matmul(y, x), writer.sum(x, axes=(0,), keepdims=False)), for_gpu=False)


@pytest.mark.parametrize(
    ("donated", "match"),
    [
        (Donation(0, 0), "reads input 0 after result 0"),
        (Donation(0, 1), "reads input 0 after result 1"),
        (Donation(0, 2), "another size"),
    ],
)
def test_a_result_that_is_written_over_an_input_still_to_be_read_is_found(donated: Donation, match: str) -> None:
    with pytest.raises(ServerFault, match=match):
        verify_donations(_with_late_reader(), [donated])


def test_a_result_that_is_written_over_an_input_at_other_points_is_found() -> None:
    writer = Writer()
    x, y = writer.input(3, 3), writer.input(3, 3)
    plan = design(writer.program(writer.add(x, writer.transpose(y, permutation=(1, 0)))), for_gpu=False)
    verify_donations(plan, [Donation(0, 0)])
    with pytest.raises(ServerFault, match="reads input 1 after result 0"):
        verify_donations(plan, [Donation(1, 0)])


def test_a_result_that_no_task_stores_is_found() -> None:
    plan = _sound()
    last = plan.instances[-1]
    elsewhere = (*last.operands[:-1], last.operands[0])
    with pytest.raises(ServerFault, match="stored by no instance"):
        verify(plan._replace(instances=[*plan.instances[:-1], last._replace(operands=elsewhere)]))


# ---- after each pass ----


def _outside(graph: Graph) -> Graph:
    *others, last = graph.values
    beyond = tuple(operand._replace(layout=Layout((99,), (1,), 0, ())) for operand in last.operands)
    return graph._replace(values=(*others, last._replace(operands=beyond)))


def _waiting_for_nothing(fusion: Fusion) -> Fusion:
    return fusion._replace(waits_for=tuple(() for _ in fusion.groups))


def _without_the_last(made: list[Any]) -> list[Any]:
    return made[:-1]


def _without_room(arena: Arena) -> Arena:
    return arena._replace(size_bytes=0)


def _of_other_sizes(_: tuple[Donation, ...]) -> tuple[Donation, ...]:
    return (Donation(0, 0),)


@pytest.mark.parametrize(
    ("function", "spoil", "name"),
    [
        ("build_graph", _outside, "graph"),
        ("fuse", _waiting_for_nothing, "fusion"),
        ("lower", _without_the_last, "instances"),
        ("schedule", _without_the_last, "launches"),
        ("arrange", _without_room, "arena"),
        ("donations", _of_other_sizes, "plan"),
    ],
)
def test_a_pass_that_breaks_a_rule_is_named_before_the_next_begins(
    function: str, spoil: Callable[[Any], Any], name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_by = getattr(build, function)
    monkeypatch.setattr(build, function, lambda *operands, **options: spoil(made_by(*operands, **options)))
    with pytest.raises(ServerFault, match=rf"\(pass: {name}\)"):
        plan_from("c", design(_of_products(), for_gpu=False), ROWS_THAT_CHOOSE)


def _of_products() -> Program:
    """Three launches, and an input of another size than the result."""
    writer = Writer()
    x, w = writer.input(5, 8), writer.input(8, 8)
    y = writer.matmul(writer.tanh(writer.matmul(x, w)), w)
    return writer.program(writer.sum(y, axes=(0, 1), keepdims=False))
