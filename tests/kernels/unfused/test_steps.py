"""Each op becomes steps over dense values that give the op's bits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire_kernels.ops.reference import twin
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_kernels.unfused.steps import Constant, dying_results, steps_of
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.op import Attributes, Category, Op
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.ops.signatures import signature_of
from tests import strategies
from tests.kernels.op_by_op import Array, by_twin, in_steps, run_op_by_op
from tests.kernels.programs import Writer
from tests.roundings import allowance
from tests.tolerances import assert_close, assert_same_bytes

_VECTOR = Spec(dtypes.float32, (8,))


def _steps(name: str, *operands: Spec, attributes: Attributes = ()) -> list[tuple[str, tuple[int, ...]]]:
    found = steps_of(signature_of(BY_NAME[name], operands, attributes)).steps
    return [(step.call.op.name, step.operands) for step in found]


def _by_twin(call: OneOpCall, operands: Sequence[Array], starts: Sequence[int]) -> Array:
    assert call.op.category is not Category.COMPOSITE
    for spec, operand in zip(call.operands, operands, strict=True):
        assert operand.flags.c_contiguous
        assert Spec(dtypes.from_numpy(operand.dtype), operand.shape) == spec
    return by_twin(signature_of(*call), operands, starts)


@pytest.mark.parametrize("op", catalogue.OPS, ids=lambda op: op.name)
@settings(max_examples=30)
@given(data=st.data())
def test_the_steps_of_an_op_give_its_bits(op: Op, data: st.DataObject) -> None:
    work = data.draw(strategies.programs_of(op))
    given_in_steps = run_op_by_op(work.program, work.inputs, work.scalars, work.starts, in_steps(_by_twin))
    given_at_once = run_op_by_op(work.program, work.inputs, work.scalars, work.starts)
    for actual, expected in zip(given_in_steps, given_at_once, strict=True):
        assert_same_bytes(actual, expected)


@pytest.mark.parametrize(
    "op", [op for op in catalogue.OPS if op.category is Category.COMPOSITE], ids=lambda op: op.name
)
@settings(max_examples=60)
@given(data=st.data())
def test_the_steps_of_a_composite_op_are_close_to_its_twin(op: Op, data: st.DataObject) -> None:
    work = data.draw(strategies.programs_of(op))
    operands, attributes = work.operands(), work.program.ops[0].attributes
    dtype = work.program.result_spec(0).dtype
    expected = twin(op)(np, operands, attributes, ())
    (actual,) = run_op_by_op(work.program, work.inputs, work.scalars, work.starts, in_steps(_by_twin))
    assert_close(actual, expected, op, dtype, allowance(op, operands, attributes, dtype))


def test_an_op_on_operands_of_its_dtype_is_one_step() -> None:
    assert _steps("add", _VECTOR, Spec(dtypes.float32, ())) == [("add", (0, 1))]


def test_operands_of_another_dtype_are_cast_first() -> None:
    assert _steps("add", _VECTOR, Spec(dtypes.int64, (8,))) == [("astype", (0,)), ("astype", (1,)), ("add", (2, 3))]


def test_only_the_operands_that_differ_are_cast() -> None:
    assert _steps("add", _VECTOR, Spec(dtypes.bool_, (8,))) == [("astype", (1,)), ("add", (0, 2))]


def test_a_cast_is_a_step_of_its_own_dtype() -> None:
    assert _steps("astype", _VECTOR, attributes=(dtypes.float64.code,)) == [("astype", (0,))]


def test_an_expansion_reads_its_constants() -> None:
    constants, steps = steps_of(signature_of(BY_NAME["mean"], (_VECTOR,), ((0,), False)))
    assert constants == (Constant(0, dtypes.float32), Constant(8, dtypes.float32))
    assert [(step.call.op.name, step.operands) for step in steps] == [("sum", (0,)), ("divide", (3, 2))]


def test_a_result_inside_an_expansion_dies_at_its_last_use() -> None:
    steps = steps_of(signature_of(BY_NAME["softmax"], (Spec(dtypes.float32, (2, 8)),), ((1,),))).steps
    assert [step.call.op.name for step in steps] == ["max", "subtract", "exp", "sum", "divide"]
    first = steps[-1].operands[0] - 2  # the number of the first step's result
    assert [step.dying for step in steps] == [(), (first,), (first + 1,), (), (first + 2, first + 3)]


def test_a_result_of_a_program_dies_at_its_last_use() -> None:
    writer = Writer()
    first = writer.exp(writer.input(8))
    second = writer.exp(first)
    last = writer.add(second, first)
    assert [{*numbers} for numbers in dying_results(writer.program(last))] == [set(), set(), {first, second}]


def test_a_result_that_nothing_reads_dies_at_its_own_op() -> None:
    writer = Writer()
    x = writer.input(8)
    unread, last = writer.exp(x), writer.log(x)
    assert dying_results(writer.program(last)) == [(unread,), ()]


def test_inputs_and_live_results_do_not_die() -> None:
    writer = Writer()
    x = writer.input(8)
    first = writer.exp(x)
    assert dying_results(writer.program(first, writer.exp(first))) == [(), ()]
