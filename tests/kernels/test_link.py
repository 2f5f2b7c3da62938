"""Linked programs: where each launch finds its operands, and what is linked at all."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given

from fusewire_kernels import link as linking
from fusewire_kernels.build import build_plan
from fusewire_kernels.conversions import scalar
from fusewire_kernels.interpreter import run
from fusewire_kernels.link import MOST_BYTES, SCALAR_BYTES, Linked, is_one_launch, link, may_be_linked
from fusewire_kernels.reference import twin
from fusewire_protos import catalogue, dtypes
from fusewire_protos.catalogue import Attributes, Category, Op
from fusewire_protos.program import Program, ProgramOp, build
from fusewire_protos.shapes import Spec
from tests import strategies
from tests.kernels.programs import Writer
from tests.tolerances import assert_same_bytes

Array = npt.NDArray[Any]
VECTOR = Spec(dtypes.float32, (8,))


def _values(linked: Linked, work: strategies.Work, scratch: npt.NDArray[np.uint8]) -> list[Array]:
    """The arrays that the launches of a linked program would read and write, op after op, all their operands."""

    def at(column: int, first_byte: int, spec: Spec) -> Array:
        if column:
            return np.asarray(work.inputs[column - 1])
        return np.ndarray(spec.shape, dtypes.to_numpy(spec.dtype), scratch[first_byte:].data)

    specs = [spec for each in work.program.signatures for spec in (*each.operands, each.result)]
    places = linked.operands.tolist()
    return [at(column, first_byte, spec) for (column, first_byte), spec in zip(places, specs, strict=True)]


def _run(linked: Linked, work: strategies.Work) -> list[Array]:
    """The live results, each launch computed by the op's twin over what it would find."""
    program, starts = work.program, list(work.starts)
    scratch = np.full(linked.scratch_bytes, 0xA5, np.uint8)
    for number, (value, dtype) in enumerate(zip(work.scalars, program.scalars, strict=True)):
        raw = np.frombuffer(scalar(np, value, dtype).tobytes(), np.uint8)
        scratch[SCALAR_BYTES * number :][: len(raw)] = raw
    values, begin = _values(linked, work, scratch), 0
    for signature, end in zip(program.signatures, linked.ends.tolist(), strict=True):
        own_starts, starts = starts[: signature.starts], starts[signature.starts :]
        *operands, result = values[begin:end]
        with np.errstate(all="ignore"):
            result[...] = twin(signature.op)(np, operands, signature.attributes, own_starts)
        begin = end
    results = [program.result_spec(index) for index in program.live]
    return [
        np.frombuffer(scratch[first:end].tobytes(), dtypes.to_numpy(spec.dtype)).reshape(spec.shape)
        for (first, end), spec in zip(linked.live_bytes, results, strict=True)
    ]


@given(strategies.programs(of=[op for op in catalogue.OPS if op.category is not Category.COMPOSITE]))
def test_each_launch_finds_its_operands_and_harms_no_other_value(work: strategies.Work) -> None:
    for actual, expected in zip(_run(link(work.program), work), _by_twins(work), strict=True):
        assert_same_bytes(actual, expected)


def _by_twins(work: strategies.Work) -> list[Array]:
    def by_twin(op: Op, specs: Sequence[Spec], attributes: Attributes, operands: Sequence[Array]) -> Array:
        result: Array = twin(op)(np, operands, attributes, ())
        return result

    return run(work.program, np, work.inputs, work.scalars, work.starts, by_twin)


def _chain(spec: Spec, *names: str) -> Program:
    ops = [ProgramOp(catalogue.BY_NAME[name], (index,), ()) for index, name in enumerate(names)]
    return build([spec], (), ops, (len(ops) - 1,))


def test_pointwise_ops_products_reductions_and_fixed_views_are_linked() -> None:
    writer = Writer()
    x, w = writer.input(4, 8), writer.input(8, 8)
    h = writer.tanh(writer.matmul(x, w))
    assert may_be_linked(writer.program(writer.sum(writer.transpose(h, permutation=(1, 0)), axes=(0,), keepdims=False)))


def test_ops_that_other_ops_define_and_views_whose_place_is_a_binding_are_not() -> None:
    writer = Writer()
    x = writer.input(4, 8)
    assert not may_be_linked(writer.program(writer.softmax(x, axes=(1,))))
    writer = Writer()
    x = writer.input(4, 8)
    assert not may_be_linked(writer.program(writer.slice(x, axes=(0,), lengths=(2,), steps=(1,), dropped=())))


def test_large_values_are_not() -> None:
    fitting = MOST_BYTES // 4 // 2  # elements of an input and one result
    assert may_be_linked(_chain(Spec(dtypes.float32, (fitting,)), "exp"))
    assert not may_be_linked(_chain(Spec(dtypes.float32, (fitting + 1,)), "exp"))


def test_long_programs_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "MOST_OPS", 3)
    assert may_be_linked(_chain(VECTOR, *["exp"] * 3))
    assert not may_be_linked(_chain(VECTOR, *["exp"] * 4))


def test_many_ops_that_differ_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "MOST_DISTINCT", 2)
    assert may_be_linked(_chain(VECTOR, "exp", "log", "exp", "log"))
    assert not may_be_linked(_chain(VECTOR, "exp", "log", "tanh"))


@pytest.mark.parametrize("dialect", ["c", "cuda"])
def test_the_plan_of_one_op_is_mostly_one_launch(dialect: str) -> None:
    assert is_one_launch(build_plan(_chain(VECTOR, "exp"), dialect), 1)
    assert is_one_launch(build_plan(_of("add", VECTOR, VECTOR), dialect), 2)


@pytest.mark.parametrize(("lengths", "launches"), [((8, 8), 1), ((8, 1), 2)], ids=["two instances", "two launches"])
def test_a_plan_of_several_instances_or_launches_is_no_part(lengths: tuple[int, int], launches: int) -> None:
    parts = [Spec(dtypes.float32, (length,)) for length in lengths]
    plan = build_plan(_of("concat", *parts, attributes=(0,)), "c")
    assert len(plan.launches) == launches
    assert not is_one_launch(plan, 2)


def test_a_plan_that_does_not_read_all_operands_is_no_part() -> None:
    """A product over no elements is zero, whatever its operands."""
    plan = build_plan(_of("matmul", Spec(dtypes.float32, (2, 0)), Spec(dtypes.float32, (0, 3))), "c")
    assert len(plan.launches) == 1
    assert not is_one_launch(plan, 2)


def _of(name: str, *operands: Spec, attributes: Attributes = ()) -> Program:
    op = ProgramOp(catalogue.BY_NAME[name], tuple(range(len(operands))), attributes)
    return build(operands, (), [op], (0,))
