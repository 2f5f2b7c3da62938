"""What a plan records of its ops, of the pairs that it does not fuse, and of its launches."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from fusewire_kernels.build import Design, build_plan, design
from fusewire_kernels.codegen.line_map import line_map
from fusewire_kernels.fusion.reasons import Reason, sentences_of
from fusewire_kernels.graph.construction import needed_ops
from fusewire_protos.programs.program import Program
from fusewire_protos.programs.records import NO_OP, OpForm, OpRecord, Separate, Unfused, ops_of_groups
from tests.kernels.programs import Writer, random_program


def _designed(program: Program) -> Design:
    return design(program, for_gpu=False)


def _reads_of_memory(made: Design) -> set[tuple[int, int]]:
    """The pairs of ops of which a launch of one reads a buffer that a launch of the other has written."""
    values = made.graph.values
    writer = {operand.value: group for group, instance in enumerate(made.instances) for operand in instance.written()}
    assembled = {
        assembly: {made.fusion.group_of[store] for store in stores} for assembly, stores in made.fusion.writers.items()
    }
    pairs = set()
    for group, instance in enumerate(made.instances):
        read = {operand.value for operand in instance.read()} & {*writer, *assembled}
        for number, _ in made.fusion.groups[group].members:
            for base in {operand.value for operand in values[number].operands} & read:
                if group not in assembled.get(base, {writer.get(base)}):
                    producers = made.fusion.writers.get(base, (base,))
                    pairs |= {(values[number].origin, values[producer].origin) for producer in producers}
    return pairs


@settings(deadline=None, max_examples=150)
@given(st.integers(0, 2**32), st.booleans())
@example(seed=268435455, for_gpu=False)  # a group computes a value again, and reads a part of it too
def test_every_op_has_its_record_and_every_pair_that_is_not_fused_one_reason(seed: int, for_gpu: bool) -> None:
    program = random_program(seed, most_ops=60).program
    made = design(program, for_gpu=for_gpu)
    records = made.records
    assert len(records.ops) == program.op_count
    for needed, record in zip(needed_ops(program), records.ops, strict=True):
        assert (record.form is OpForm.KERNELS) == bool(record.groups)
        assert needed or record.form is OpForm.DEAD
    pairs = Counter((each.consumer, each.producer) for each in records.unfused)
    assert set(pairs.values()) <= {1}
    assert {*pairs} == _reads_of_memory(made)
    assert {*sentences_of(records)} == {each.reason for each in records.unfused} | {
        each.reason for each in records.separate
    }


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 2**32), st.booleans())
def test_the_groups_of_the_records_are_those_of_the_launches(seed: int, for_gpu: bool) -> None:
    made = design(random_program(seed, most_ops=60).program, for_gpu=for_gpu)
    values, in_order = made.graph.values, [group for launch in made.launches for group in launch.groups]
    members = [[*made.fusion.groups[group].members, *made.fusion.groups[group].inlined] for group in in_order]
    computed = [sorted({values[number].origin for number, _ in each}) for each in members]
    assert ops_of_groups(made.records.ops, len(in_order)) == computed


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32), st.sampled_from(["c", "cuda"]))
def test_lines_of_a_kernel_compute_the_ops_of_its_groups(seed: int, dialect: str) -> None:
    program = random_program(seed, most_ops=40).program
    plan = build_plan(program, dialect)
    computed, group = ops_of_groups(plan.records.ops, len(plan.records.values)), 0
    for launch in plan.launches:
        numbered = {value for _, value in line_map(plan.kernels[launch.kernel].text)}
        for _ in launch.instances:
            values = plan.records.values[group]
            ops = {op for op in values if op != NO_OP}
            assert ops <= {*computed[group]}
            if ops:
                assert {values[number] for number in numbered if number < len(values)} - {NO_OP} == ops
            group += 1
    assert group == len(plan.records.values)


def test_ops_of_one_kernel_and_of_another_have_a_reason_between_them() -> None:
    writer = Writer()
    x, w = writer.input(3, 3), writer.input(3, 3)
    negative = writer.negative(writer.matmul(x, w))
    records = _designed(writer.program(writer.sum(negative, axes=(1,), keepdims=False))).records
    assert [each.groups for each in records.ops] == [(0,), (0,), (1,)]
    assert records.unfused == (Unfused(2, 1, Reason.BESIDE_PRODUCT.code),)


def test_a_product_reads_its_operands_from_memory() -> None:
    writer = Writer()
    x = writer.input(3, 3)
    records = _designed(writer.program(writer.matmul(writer.matmul(x, x), x))).records
    assert records.unfused == (Unfused(1, 0, Reason.OF_PRODUCT.code),)
    assert records.separate == ()


def test_the_producer_is_the_operand_and_not_what_was_computed_beside_it() -> None:
    writer = Writer()
    a = writer.tanh(writer.input(3, 4))
    program = writer.program(writer.exp(a), writer.sqrt(writer.slice(a, (1,), (3,))))
    assert _designed(program).records.unfused == (Unfused(3, 0, Reason.READS_A_PART.code),)


def test_an_op_that_takes_several_steps_is_apart_from_itself() -> None:
    writer = Writer()
    program = writer.program(writer.sum(writer.input(100_000), axes=(0,), keepdims=False))
    records = _designed(program).records
    assert len(records.ops[0].groups) > 1
    assert [each[:2] for each in records.unfused] == [(0, 0)]


def test_ops_without_a_kernel_say_what_they_are() -> None:
    writer = Writer()
    x, nothing = writer.input(3, 4), writer.input(0, 4)
    writer.exp(x)
    view = writer.transpose(x, permutation=(1, 0))
    zeros = writer.sum(nothing, axes=(0,), keepdims=True)
    empty = writer.tanh(nothing)
    records = _designed(writer.program(writer.add(writer.transpose(view, permutation=(1, 0)), zeros), empty)).records
    of_kernel = OpForm.KERNELS
    expected = [OpForm.DEAD, OpForm.VIEW, OpForm.CONSTANT, OpForm.ASSEMBLY, OpForm.VIEW, of_kernel]
    assert [each.form for each in records.ops] == expected


def test_a_launch_is_apart_from_one_that_reads_its_input_too() -> None:
    writer = Writer()
    x = writer.input(3, 4)
    turned = writer.transpose(x, permutation=(1, 0))
    program = writer.program(writer.tanh(x), writer.exp(turned), writer.exp(writer.slice(x, (1,), (3,))))
    assert [each[:3] for each in _designed(program).records.separate] == [(1, 0, 0), (2, 0, 0)]


@pytest.mark.parametrize(("length", "reason"), [(3, Reason.OTHER_SIZES), (8, None)])
def test_launches_of_one_kernel_are_apart_by_their_sizes(length: int, reason: Reason | None) -> None:
    writer = Writer()
    x = writer.input(8)
    program = writer.program(writer.exp(x), writer.exp(writer.slice(x, (0,), (length,))))
    expected = () if reason is None else (Separate(1, 0, 0, reason.code),)
    assert _designed(program).records.separate == expected


def test_equal_groups_are_instances_of_one_launch() -> None:
    writer = Writer()
    x = writer.input(3, 3)
    weights = [writer.input(3, 3), writer.input(3, 3)]
    program = writer.program(*(writer.sum(writer.matmul(x, weight), axes=(1,), keepdims=False) for weight in weights))
    made = _designed(program)
    assert [len(launch.groups) for launch in made.launches] == [2, 2]
    assert made.records.ops == tuple(OpRecord(OpForm.KERNELS, (group,)) for group in (0, 2, 1, 3))
