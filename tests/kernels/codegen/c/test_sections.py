"""Sections of a long pointwise body: bounded, in order, and the same bits as the body in one loop."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_kernels.codegen.c.sections import Sections, sections_of
from fusewire_kernels.codegen.statements import analyse
from fusewire_kernels.compile.c_compiler import Toolchain
from fusewire_kernels.ir.kernel import LoopKernel, Node
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from tests.kernels.problems import Gathered, Problem, Scalar, loop_problem, node, run, toolchain_in
from tests.tolerances import assert_same_bytes

Array = npt.NDArray[Any]
f32, f16, i64, bool_ = dtypes.float32, dtypes.float16, dtypes.int64, dtypes.bool_
RANDOM = np.random.default_rng(3)
LENGTHS = (2, 7, 255, 256, 257, 1000)


@pytest.fixture(scope="module")
def toolchain(tmp_path_factory: pytest.TempPathFactory) -> Toolchain:
    return toolchain_in(tmp_path_factory.mktemp("cache"))


def _normal(*shape: int, dtype: DType = f32) -> Array:
    return RANDOM.normal(size=shape).astype(dtypes.to_numpy(dtype))


def _chain(length: int, first: int, dtype: DType = f32) -> list[Node]:
    """tanh(x) + x again and again, x being value 0 and the nodes beginning at `first`."""
    nodes: list[Node] = []
    value = 0
    for _ in range(length):
        made = first + len(nodes)
        nodes += [node("tanh", (value,), dtype), node("add", (made, value), dtype)]
        value = made + 1
    return nodes


def _kernel_of(problem: Problem) -> LoopKernel:
    assert isinstance(problem.kernel, LoopKernel)
    return problem.kernel


def _sections(problem: Problem) -> Sections:
    found = sections_of(analyse(_kernel_of(problem)))
    assert found is not None
    return found


# ---- where a body is cut ----


def _chain_problem(length: int, x: Array) -> Problem:
    return loop_problem(x.shape, [x], _chain(length, 1), [(2 * length, np.empty_like(x))])


def test_a_short_body_stays_whole() -> None:
    assert sections_of(analyse(_kernel_of(_chain_problem(2, _normal(5))))) is None


def test_a_body_without_a_loop_stays_whole() -> None:
    assert sections_of(analyse(_kernel_of(_chain_problem(20, _normal())))) is None


def test_a_chain_needs_one_array_for_each_value_that_crosses() -> None:
    found = _sections(_chain_problem(20, _normal(5)))
    assert len(found.sections) == 20
    assert found.arrays == ("float",)


def test_arrays_have_the_type_of_what_waits_in_them() -> None:
    x, is_positive = _normal(5), np.empty(5, np.bool_)
    nodes = [node("greater", (0, 0), bool_, operand_dtype=f32), *_chain(3, 2)]
    outputs = [(1, is_positive), (7, np.empty_like(x))]
    assert sorted(_sections(loop_problem(x.shape, [x], nodes, outputs)).arrays) == ["float", "uint8_t"]


def test_a_value_that_outer_loops_know_is_in_no_section() -> None:
    column, row = _normal(4, 1), _normal(300)
    nodes = [node("exp", (0,), f32), *(node("add", (2 + step, 1), f32) for step in range(60))]
    found = _sections(loop_problem((4, 300), [column, row], nodes, [(62, np.empty((4, 300), np.float32))]))
    assert all(2 not in section.made for section in found.sections)
    assert all(held.value != 2 for section in found.sections for held in section.taken)


@st.composite
def _kernels(draw: st.DrawFn) -> LoopKernel:
    """Any body over two arrays and a scalar, with some of its values stored."""
    inputs: list[Array | Scalar | Gathered] = [_normal(3), _normal(3), Scalar(0.5, f32)]
    nodes: list[Node] = []
    for _ in range(draw(st.integers(20, 60))):
        op, arity = draw(st.sampled_from((("tanh", 1), ("exp", 1), ("add", 2), ("multiply", 2), ("maximum", 2))))
        known = st.integers(0, len(inputs) + len(nodes) - 1)
        nodes.append(node(op, tuple(draw(known) for _ in range(arity)), f32))
    last = len(inputs) + len(nodes) - 1
    stored = {*draw(st.lists(st.integers(0, last), max_size=4)), last}
    return _kernel_of(loop_problem((3,), inputs, nodes, [(value, np.empty(3, np.float32)) for value in stored]))


@given(_kernels())
def test_sections_make_every_value_once_and_find_what_they_need(kernel: LoopKernel) -> None:
    body = analyse(kernel)
    found = sections_of(body)
    if found is None:
        return
    outer = {value for value, level in enumerate(body.levels) if level < body.dims}
    waiting: dict[int, int] = {}
    made_of_nodes: list[int] = []
    at_hand: set[int] = set()
    for section in found.sections:
        assert all(waiting[array] == value for value, array in section.taken)
        at_hand = outer | {value for value, _ in section.taken}
        for value in section.made:
            made = body.node(value)
            assert made is None or at_hand.issuperset(made.operands)
            at_hand.add(value)
            made_of_nodes += [value] if made else []
        waiting.update((array, value) for value, array in section.put)
    assert at_hand.issuperset(body.stored)
    needed = body.needed(body.stored)
    assert made_of_nodes == [value for value in needed if value not in outer and body.node(value)]


# ---- the same bits ----


class Case(NamedTuple):
    """A long body and which of its values are stored."""

    dims: tuple[int, ...]
    inputs: list[Array | Scalar | Gathered]
    nodes: list[Node]
    stored: tuple[int, ...]


def _of_every_kind() -> Case:
    """Three dimensions, strides, broadcasts, a gather, positions, casts to and from other dtypes, several results."""
    dims = (2, 3, 300)
    table = _normal(5, 300)
    inputs: list[Array | Scalar | Gathered] = [
        _normal(2, 3, 600)[:, :, ::2],
        _normal(3, 1),
        Scalar(0.75, f32),
        Gathered(table, 0, table[:1]),
        RANDOM.integers(0, 5, (2, 1, 1)),
    ]
    nodes = [
        node("tanh", (0,), f32),
        node("gather", (4,), f32, operand_dtype=i64, detail=3),
        node("exp", (1,), f32),
        node("greater", (5, 2), bool_, operand_dtype=f32),
        node("sigmoid", (6,), f32),
        node("cast", (9,), f16, operand_dtype=f32),
        node("exp", (10,), f16),
        node("index", (), i64, detail=2),
        node("cast", (12,), f32, operand_dtype=i64),
        node("where", (8, 13, 7), f32),
        node("cast", (11,), f32, operand_dtype=f16),
        node("add", (14, 15), f32),
        node("multiply", (16, 0), f32),
    ]
    return Case(dims, inputs, nodes, (17, 8, 11, 0, 12))


def _cases() -> list[Case]:
    chains = [Case((length,), [_normal(length)], _chain(6, 1), (12, 3)) for length in LENGTHS]
    of_halves = Case((3, 270), [_normal(270, dtype=f16)], _chain(4, 1, f16), (8,))
    return [*chains, of_halves, _of_every_kind()]


def _whole(case: Case) -> Problem:
    dtype_of = [_dtype(given) for given in case.inputs] + [each.dtype for each in case.nodes]
    outputs = [(value, np.empty(case.dims, dtypes.to_numpy(dtype_of[value]))) for value in case.stored]
    return loop_problem(case.dims, case.inputs, case.nodes, outputs)


def _dtype(given: Array | Scalar | Gathered) -> DType:
    if isinstance(given, Scalar):
        return given.dtype
    return dtypes.from_numpy((given.array if isinstance(given, Gathered) else given).dtype)


class Steps(NamedTuple):
    """A kernel for each node, and every value they read or write."""

    problems: list[Problem]
    values: list[Array | Scalar | Gathered]


def _one_by_one(case: Case) -> Steps:
    steps = Steps([], list(case.inputs))
    for each in case.nodes:
        sources = (each.detail, *each.operands) if each.op == "gather" else each.operands
        inputs = [steps.values[source] for source in sources if isinstance(source, int)]
        first = len(inputs) - len(each.operands)
        alone = each._replace(operands=tuple(range(first, len(inputs))), detail=0 if first else each.detail)
        result = np.empty(case.dims, dtypes.to_numpy(each.dtype))
        steps.problems.append(loop_problem(case.dims, inputs, [alone], [(len(inputs), result)]))
        steps.values.append(result)
    return steps


def test_sections_give_the_bits_of_every_op_by_itself(toolchain: Toolchain) -> None:
    cases = _cases()
    whole, separate = [_whole(case) for case in cases], [_one_by_one(case) for case in cases]
    assert all(sections_of(analyse(_kernel_of(problem))) for problem in whole)
    run([*whole, *(problem for steps in separate for problem in steps.problems)], toolchain)
    for case, problem, steps in zip(cases, whole, separate, strict=True):
        for value, output in zip(case.stored, problem.outputs, strict=True):
            expected = steps.values[value]
            assert isinstance(expected, np.ndarray)
            assert_same_bytes(output, np.ascontiguousarray(expected))


def test_a_result_may_overwrite_an_input_that_every_section_reads(toolchain: Toolchain) -> None:
    x = _normal(1000)
    nodes = [each for step in range(5) for each in _tanh_of_sum(step)]
    beside, in_place = np.empty_like(x), x.copy()
    run([loop_problem(x.shape, [x], nodes, [(10, beside)])], toolchain)
    run([loop_problem(x.shape, [in_place], nodes, [(2, np.empty_like(x)), (10, in_place)])], toolchain)
    assert_same_bytes(in_place, beside)


def _tanh_of_sum(step: int) -> list[Node]:
    """v = tanh(v + x), x being value 0."""
    value = 2 * step
    return [node("add", (value, 0), f32), node("tanh", (value + 1,), f32)]
