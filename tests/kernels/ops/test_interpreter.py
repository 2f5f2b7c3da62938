"""Tier 0 runs programs op by op: results, what is handed to the device, and what is held meanwhile."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire_kernels.ops import interpreter, reference
from fusewire_kernels.ops.conversions import scalar
from fusewire_kernels.ops.interpreter import OpCache, PreparedProgram, run_to_end
from fusewire_kernels.ops.reference import twin
from fusewire_protos.ops import catalogue, dtypes, signatures
from fusewire_protos.ops.catalogue import Attributes, Category, Op
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import Program, ProgramOp, build
from tests import strategies
from tests.kernels.op_by_op import RunInexact, run_op_by_op
from tests.roundings import allowance
from tests.tolerances import assert_close, assert_same_bytes

Array = npt.NDArray[Any]
VECTOR = Spec(dtypes.float32, (8,))


def _program(
    inputs: Sequence[Spec],
    ops: Sequence[tuple[str, tuple[int, ...], Attributes]],
    live: Sequence[int],
    scalars: Sequence[DType] = (),
) -> Program:
    listed = [ProgramOp(catalogue.BY_NAME[name], operands, attributes) for name, operands, attributes in ops]
    return build(inputs, scalars, listed, live)


def _run(work: strategies.Work, run_inexact: RunInexact | None = None) -> list[Array]:
    return run_op_by_op(work.program, np, work.inputs, work.scalars, work.starts, run_inexact)


def _by_twin(op: Op, specs: Sequence[Spec], attributes: Attributes, operands: Sequence[Array]) -> Array:
    result: Array = twin(op)(np, operands, attributes, ())
    return result


def _prepare(op_cache: OpCache, program: Program, kernel_of: interpreter.KernelOf | None) -> PreparedProgram:
    return run_to_end(op_cache.prepare(program, kernel_of))


def _execute(prepared: PreparedProgram, inputs: Sequence[Array], scalars: Sequence[int | float] = ()) -> list[Array]:
    with np.errstate(all="ignore"):
        return run_to_end(interpreter.execute(prepared, inputs, scalars, ()))


class _Kernels:
    """Gives the twin of an op as its kernel, and knows which ops it was asked for and which kernels are held."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self._given: list[weakref.ref[_TwinKernel]] = []

    def __call__(self, op: Op, specs: tuple[Spec, ...], attributes: Attributes) -> interpreter.Kernel:
        kernel = _TwinKernel(op, attributes)
        self.asked.append(op.name)
        self._given.append(weakref.ref(kernel))
        return kernel

    @property
    def held(self) -> list[str]:
        gc.collect()
        return [name for name, kernel in zip(self.asked, self._given, strict=True) if kernel() is not None]


class _TwinKernel:
    def __init__(self, op: Op, attributes: Attributes) -> None:
        self._op, self._attributes = op, attributes

    def __call__(self, *operands: Array) -> Array:
        return _by_twin(self._op, (), self._attributes, operands)


def _one_op_at_a_time(work: strategies.Work) -> list[Array]:
    """Every op as a program of its own, each over the results of those before."""
    program = work.program
    values = [*work.inputs]
    values += [scalar(np, value, dtype) for value, dtype in zip(work.scalars, program.scalars, strict=True)]
    starts = list(work.starts)
    for op in program.ops:
        count = op.op.starts(op.attributes)
        own_starts, starts = starts[:count], starts[count:]
        specs = [program.specs[operand] for operand in op.operands]
        single = build(specs, (), [ProgramOp(op.op, tuple(range(len(specs))), op.attributes)], [0])
        values += run_op_by_op(single, np, [values[operand] for operand in op.operands], (), own_starts, None)
    return [values[program.first_result + index] for index in program.live]


@given(strategies.programs())
def test_a_program_gives_the_bits_of_its_ops_run_one_by_one(work: strategies.Work) -> None:
    for actual, expected in zip(_run(work), _one_op_at_a_time(work), strict=True):
        assert_same_bytes(actual, expected)


@given(strategies.programs())
def test_results_have_the_programs_specs_in_c_order(work: strategies.Work) -> None:
    for index, result in zip(work.program.live, _run(work), strict=True):
        assert Spec(dtypes.from_numpy(result.dtype), result.shape) == work.program.result_spec(index)
        assert result.flags.c_contiguous


@given(strategies.programs())
def test_inputs_are_left_as_they_were(work: strategies.Work) -> None:
    before = [array.copy() for array in work.inputs]
    _run(work)
    for array, copy in zip(work.inputs, before, strict=True):
        assert_same_bytes(array, copy)


@pytest.mark.parametrize(
    "op", [op for op in catalogue.OPS if op.category is Category.COMPOSITE], ids=lambda op: op.name
)
@settings(max_examples=60)
@given(data=st.data())
def test_the_expansion_of_a_composite_op_is_close_to_its_twin(op: Op, data: st.DataObject) -> None:
    work = data.draw(strategies.programs_of(op))
    single = work.program.ops[0]
    values = [*work.inputs]
    values += [scalar(np, value, dtype) for value, dtype in zip(work.scalars, work.program.scalars, strict=True)]
    operands = [values[number] for number in single.operands]
    dtype = work.program.result_spec(0).dtype
    expected = twin(op)(np, operands, single.attributes, ())
    assert_close(_run(work)[0], expected, op, dtype, allowance(op, operands, single.attributes, dtype))


@given(strategies.programs())
def test_the_device_is_given_inexact_primitives_alone_and_operands_in_c_order(work: strategies.Work) -> None:
    def run_inexact(op: Op, specs: Sequence[Spec], attributes: Attributes, operands: Sequence[Array]) -> Array:
        assert not op.is_exact
        assert op.category is not Category.COMPOSITE
        for spec, operand in zip(specs, operands, strict=True):
            assert operand.flags.c_contiguous
            assert Spec(dtypes.from_numpy(operand.dtype), operand.shape) == spec
        return _by_twin(op, specs, attributes, operands)

    for actual, expected in zip(_run(work, run_inexact), _run(work), strict=True):
        assert_same_bytes(actual, expected)


def test_a_value_is_let_go_after_its_last_use() -> None:
    """exp → exp → … , each result used by the next op only; the first result is used again by the last op."""
    length = 6
    chain = [("exp", (number,), ()) for number in range(length)]
    program = _program([VECTOR], [*chain, ("add", (length, 1), ()), ("exp", (length + 1,), ())], [length + 1])
    results: list[weakref.ref[Array]] = []
    alive: list[int] = []

    def run_inexact(op: Op, specs: Sequence[Spec], attributes: Attributes, operands: Sequence[Array]) -> Array:
        alive.append(sum(result() is not None for result in results))
        result = _by_twin(op, specs, attributes, operands)
        results.append(weakref.ref(result))
        return result

    gc.disable()
    try:
        run_op_by_op(program, np, [np.zeros(8, np.float32)], (), (), run_inexact)
    finally:
        gc.enable()
    # While an op runs: its operand, and the first result, which is needed until the sum.
    assert alive == [0, 1, 2, 2, 2, 2, 0]


def test_a_result_that_nothing_uses_is_let_go_at_once() -> None:
    program = _program([VECTOR], [("exp", (0,), ()), ("exp", (0,), ()), ("log", (0,), ())], [2])
    results: list[weakref.ref[Array]] = []

    def run_inexact(op: Op, specs: Sequence[Spec], attributes: Attributes, operands: Sequence[Array]) -> Array:
        assert all(result() is None for result in results)
        result = _by_twin(op, specs, attributes, operands)
        results.append(weakref.ref(result))
        return result

    run_op_by_op(program, np, [np.ones(8, np.float32)], (), (), run_inexact)
    assert len(results) == 3


def test_a_live_result_may_be_used_by_later_ops() -> None:
    program = _program([VECTOR], [("negative", (0,), ()), ("negative", (1,), ())], [0, 1])
    array = np.arange(8, dtype=np.float32)
    first, second = run_op_by_op(program, np, [array], (), (), None)
    assert_same_bytes(first, -array)
    assert_same_bytes(second, array)


def test_views_of_whole_rows_are_not_copied() -> None:
    array = np.arange(64, dtype=np.float32)
    ops = [("reshape", (0,), ((8, 8),)), ("slice", (1,), ((0,), (2,), (1,), ()))]
    (result,) = run_op_by_op(_program([Spec(dtypes.float32, (64,))], ops, [1]), np, [array], (), (3,), None)
    assert np.shares_memory(result, array)
    assert result.tolist() == array.reshape(8, 8)[3:5].tolist()


def test_starts_are_taken_in_the_order_of_ops() -> None:
    ops = [("slice", (0,), ((0,), (2,), (1,), ())), ("assign_slice", (0, 1), ((0,), (2,), (1,), ()))]
    array = np.arange(8, dtype=np.float32)
    (result,) = run_op_by_op(_program([VECTOR], ops, [1]), np, [array], (), (5, 0), None)
    assert result.tolist() == [5, 6, 2, 3, 4, 5, 6, 7]


def test_a_library_that_is_not_exact_moves_floats_only_in_the_dtype_they_have() -> None:
    sources = [Spec(dtypes.float32, (2,)), Spec(dtypes.float64, (2,)), Spec(dtypes.int32, (2,))]
    program = _program(
        sources,
        [("concat", (0, 1, 2), (0,)), ("assign_slice", (0, 1), ((0,), (2,), (1,), ()))],
        [0, 1],
    )
    inputs = [np.array(values, dtypes.to_numpy(spec.dtype)) for values, spec in zip(_TINY, sources, strict=True)]
    given: list[tuple[str, DType]] = []

    def run_inexact(op: Op, specs: Sequence[Spec], attributes: Attributes, operands: Sequence[Array]) -> Array:
        given.append((op.name, specs[0].dtype))
        return _by_twin(op, specs, attributes, operands)

    joined, assigned = run_op_by_op(program, np, inputs, (), (0,), run_inexact, is_library_exact=False)
    assert given == [("astype", dtypes.float32), ("astype", dtypes.float64)]
    assert_same_bytes(joined, np.concatenate(inputs))
    assert_same_bytes(assigned, inputs[1].astype(np.float32))


_TINY = ([1e-40, -1e-45], [1e-40, 1.5], [3, -1])


def test_scalars_take_the_programs_dtype() -> None:
    program = _program([VECTOR], [("multiply", (0, 1), ())], [0], scalars=[dtypes.float32])
    (result,) = run_op_by_op(program, np, [np.ones(8, np.float32)], (0.1,), (), None)
    assert_same_bytes(result, np.full(8, 0.1, np.float32))


# ---- what programs share ----


def _of_vectors(*names: str) -> Program:
    """One vector in, one op after another, the last result out."""
    return _program([VECTOR], [(name, (index,), ()) for index, name in enumerate(names)], [len(names) - 1])


def _of_rows(name: str) -> Program:
    return _program([Spec(dtypes.float32, (2, 4))], [(name, (0,), ((1,),))], [0])


def test_an_op_on_operands_of_the_same_specs_is_made_ready_once_for_all_programs() -> None:
    op_cache, kernels = OpCache(np, is_library_exact=True), _Kernels()
    _prepare(op_cache, _of_vectors("exp", "log", "exp"), kernels)
    _prepare(op_cache, _of_vectors("log", "negative", "exp", "tanh"), kernels)
    assert kernels.asked == ["exp", "log", "tanh"]


def test_operands_of_other_specs_need_a_kernel_of_their_own() -> None:
    op_cache, kernels = OpCache(np, is_library_exact=True), _Kernels()
    for spec in (VECTOR, Spec(dtypes.float64, (8,)), Spec(dtypes.float32, (2, 4))):
        _prepare(op_cache, _program([spec], [("exp", (0,), ())], [0]), kernels)
    assert kernels.asked == ["exp"] * 3


def test_an_op_whose_signature_was_forgotten_is_not_made_ready_again() -> None:
    op_cache, kernels = OpCache(np, is_library_exact=True), _Kernels()
    before = _of_vectors("exp")
    _prepare(op_cache, before, kernels)
    signatures._forget()
    again = _of_vectors("log", "exp")
    assert again.signatures[1] is not before.signatures[0]
    _prepare(op_cache, again, kernels)
    assert kernels.asked == ["exp", "log"]


def test_composite_ops_share_what_their_expansions_have_in_common() -> None:
    op_cache, kernels = OpCache(np, is_library_exact=True), _Kernels()
    for name in ("softmax", "softmax", "log_softmax"):
        _prepare(op_cache, _of_rows(name), kernels)
    assert sorted(kernels.asked) == ["exp", "log", "max", "sum"]


def test_the_op_that_no_program_has_brought_for_longest_is_forgotten_with_its_kernel() -> None:
    op_cache, kernels = OpCache(np, is_library_exact=True, most_ops=2), _Kernels()
    for name in ("exp", "log", "exp", "tanh"):
        _prepare(op_cache, _of_vectors(name), kernels)
    assert kernels.held == ["exp", "tanh"]
    _prepare(op_cache, _of_vectors("log"), kernels)
    assert kernels.asked == ["exp", "log", "tanh", "log"]


def test_a_program_keeps_the_kernels_that_are_forgotten_meanwhile() -> None:
    op_cache, kernels = OpCache(np, is_library_exact=True, most_ops=1), _Kernels()
    prepared = _prepare(op_cache, _of_vectors("exp", "log"), kernels)
    _prepare(op_cache, _of_vectors("tanh"), kernels)
    assert kernels.held == ["exp", "log", "tanh"]
    array = np.linspace(-1, 1, 8, dtype=np.float32)
    (expected,) = run_op_by_op(prepared.program, np, [array], (), (), None)
    assert_same_bytes(_execute(prepared, [array])[0], expected)


@pytest.mark.parametrize(("name", "is_remembered"), [("add", True), ("concat", False)])
def test_only_ops_of_few_operands_are_remembered(
    name: str, is_remembered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[str] = []
    prepare = reference.prepare

    def counted(op: Op, *others: Any) -> reference.Prepared:
        made.append(op.name)
        return prepare(op, *others)

    monkeypatch.setattr(reference, "prepare", counted)
    op_cache = OpCache(np, is_library_exact=True)
    program = _program([VECTOR] * 2, [(name, (0, 1), (0,) * len(catalogue.BY_NAME[name].attributes))] * 2, [1])
    for _ in range(2):
        _prepare(op_cache, program, None)
    assert made == [name] * (1 if is_remembered else 2)


@given(st.lists(strategies.programs(), min_size=2, max_size=4))
def test_programs_that_share_a_repertoire_give_the_bits_they_give_alone(works: list[strategies.Work]) -> None:
    op_cache = OpCache(np, is_library_exact=True)
    for work in works * 2:
        prepared = _prepare(op_cache, work.program, None)
        with np.errstate(all="ignore"):
            results = run_to_end(interpreter.execute(prepared, work.inputs, work.scalars, work.starts))
        for actual, expected in zip(results, _run(work), strict=True):
            assert_same_bytes(actual, expected)


@given(st.lists(st.tuples(st.sampled_from((0, 1, True, 1.0, 0.0, -0.0, 2**63, 2.0**63)), st.sampled_from(dtypes.ALL))))
def test_scalars_that_are_equal_but_not_the_same_are_told_apart(given: list[tuple[int | float, DType]]) -> None:
    op_cache = OpCache(np, is_library_exact=True)
    for value, dtype in given * 2:
        assert_same_bytes(op_cache.scalar(value, dtype), scalar(np, value, dtype))


def test_a_scalar_that_comes_again_is_converted_once() -> None:
    op_cache = OpCache(np, is_library_exact=True)
    assert op_cache.scalar(0.1, dtypes.float32) is op_cache.scalar(0.1, dtypes.float32)


def test_each_op_that_differs_is_made_ready_in_a_turn_of_its_own() -> None:
    signatures._forget()  # or they might be forgotten in the middle of this program
    turns = OpCache(np, is_library_exact=True).prepare(
        _of_vectors("negative", "abs", "negative", "square", "abs"), None
    )
    assert sum(1 for _ in turns) == 3
