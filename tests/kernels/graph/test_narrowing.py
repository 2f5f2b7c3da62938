"""Narrowing: which values are computed in slices only, and that they keep their numbers."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from fusewire_kernels.build import design_of
from fusewire_kernels.graph.construction import build_graph
from fusewire_kernels.graph.graph import LEAVES, Form, Graph
from fusewire_kernels.graph.narrowing import narrowed
from fusewire_protos.ops.shapes import Shape
from fusewire_protos.programs.program import Program
from tests.kernels.plan_runner import plan_without_text, run_plan
from tests.kernels.programs import Writer, meaning, random_inputs, random_program
from tests.kernels.verified import verify
from tests.tolerances import assert_same_numbers


def computed(graph: Graph) -> list[tuple[str, Shape]]:
    """The body and shape of what a graph computes."""
    return [(value.body, value.shape) for value in graph.values if value.form not in (*LEAVES, Form.STORE)]


def check(program: Program, starts: tuple[int, ...], scalars: tuple[float, ...] = (), *, for_gpu: bool = True) -> Graph:
    """Returns the narrowed graph of a program. Fails unless it gives the program's numbers."""
    graph = narrowed(build_graph(program, for_gpu=for_gpu))
    assert graph is not None
    made = design_of(program, graph)
    verify(made)
    inputs = random_inputs(program)
    results = run_plan(made, plan_without_text(made), inputs, scalars, starts)
    for result, expected in zip(results, meaning(program, inputs, scalars, starts), strict=True):
        assert_same_numbers(result, expected)
    return graph


def test_a_product_and_what_is_added_to_it_are_computed_a_slice_at_a_time() -> None:
    writer = Writer()
    h, w, b = writer.input(3, 5), writer.input(5, 8), writer.input(8)
    gates = writer.add(writer.matmul(h, w), b)
    first, second = writer.slice(gates, (1,), (6,)), writer.slice(gates, (1,), (2,))
    program = writer.program(writer.tanh(first), writer.exp(second))
    found = [
        ("matmul", (3, 2)),
        ("matmul", (3, 6)),
        ("add", (3, 2)),
        ("add", (3, 6)),
        ("tanh", (3, 6)),
        ("exp", (3, 2)),
    ]
    assert computed(check(program, (0, 6))) == found


def test_a_sort_behind_narrowed_values_keeps_what_it_works_in() -> None:
    writer = Writer()
    total = writer.add(writer.input(3, 8), writer.input(8))
    first, second = writer.slice(total, (1,), (6,)), writer.slice(total, (1,), (2,))
    order = writer.op("argsort", first, attributes=(1, False))
    graph = check(writer.program(order, writer.exp(second)), (0, 6), for_gpu=False)
    (sort,) = [value for value in graph.values if value.body == "argsort"]
    assert sort.scratch is not None
    assert graph.values[sort.scratch].shape == (2 * 6,)


@pytest.mark.parametrize("shape", [(8,), (8, 1)])
def test_elements_of_a_matrix_by_a_vector_are_products_of_rows_of_the_matrix(shape: Shape) -> None:
    writer = Writer()
    w, h = writer.input(6, 8), writer.input(*shape)
    product = writer.matmul(w, h)
    first, second = writer.slice(product, (0,), (2,)), writer.slice(product, (0,), (3,))
    program = writer.program(writer.tanh(first), writer.exp(second))
    graph = check(program, (0, 3))
    products = [value.operands for value in graph.values if value.form is Form.PRODUCT]
    assert [right.layout.shape for _, right in products] == [(8, 3), (8, 2)]


def test_rows_of_a_product_are_products_of_rows() -> None:
    writer = Writer()
    w, h = writer.input(6, 5), writer.input(5, 4)
    program = writer.program(writer.tanh(writer.slice(writer.matmul(w, h), (0,), (3,), (2,))))
    assert computed(check(program, (1,))) == [("matmul", (3, 4)), ("tanh", (3, 4))]


@pytest.mark.parametrize("is_left", [False, True])
def test_a_part_of_a_product_with_a_vector_is_a_product_with_the_vector(*, is_left: bool) -> None:
    writer = Writer()
    w, h = (writer.input(5, 6), writer.input(5)) if is_left else (writer.input(6, 5), writer.input(5))
    multiplied = writer.matmul(h, w) if is_left else writer.matmul(w, h)
    program = writer.program(writer.tanh(writer.slice(multiplied, (0,), (2,), (-3,))))
    assert computed(check(program, (4,))) == [("matmul", (2,)), ("tanh", (2,))]


def test_gates_that_a_reshape_tells_apart_are_slices_too() -> None:
    writer = Writer()
    gates = writer.matmul(writer.input(1, 5), writer.input(5, 8))
    parts = [writer.slice(writer.reshape(gates, shape=(2, 4)), (0,), (1,)) for _ in range(2)]
    assert computed(check(writer.program(*map(writer.tanh, parts)), (0, 1)))[:2] == [("matmul", (1, 4))] * 2


def whole_too(writer: Writer, value: int) -> Program:
    return writer.program(writer.tanh(writer.slice(value, (1,), (2,))), writer.exp(value))


def as_a_result(writer: Writer, value: int) -> Program:
    return writer.program(writer.tanh(writer.slice(value, (1,), (2,))), value)


def more_than_there_is(writer: Writer, value: int) -> Program:
    parts = [writer.slice(value, (1,), (5,)) for _ in range(2)]
    return writer.program(writer.add(*parts))


def along_two_axes(writer: Writer, value: int) -> Program:
    return writer.program(writer.tanh(writer.slice(value, (0, 1), (2, 2))))


def along_either_axis(writer: Writer, value: int) -> Program:
    parts = writer.slice(value, (0,), (2,)), writer.slice(value, (1,), (2,))
    return writer.program(*map(writer.tanh, parts))


def nothing_cut(writer: Writer, value: int) -> Program:
    return writer.program(writer.tanh(writer.transpose(value, permutation=(1, 0))))


@pytest.mark.parametrize(
    "read", [whole_too, as_a_result, more_than_there_is, along_two_axes, along_either_axis, nothing_cut]
)
def test_a_value_that_is_read_in_another_way_stays_whole(read: Callable[[Writer, int], Program]) -> None:
    writer = Writer()
    value = writer.multiply(*[writer.input(4, 8) for _ in range(2)])
    assert narrowed(build_graph(read(writer, value), for_gpu=True)) is None


@pytest.mark.parametrize(("ops", "slices"), [(4, 64), (64, 16), (1500, 2)])
def test_a_graph_that_would_become_much_larger_stays_as_it_is(ops: int, slices: int) -> None:
    writer = Writer()
    value = writer.matmul(writer.input(1, 5), writer.input(5, slices))
    for _ in range(ops):
        value = writer.tanh(value)
    parts = [writer.slice(value, (1,), (1,)) for _ in range(slices)]
    assert narrowed(build_graph(writer.program(*map(writer.exp, parts)), for_gpu=True)) is None


# One drawn program in fifteen has something to narrow.
@settings(deadline=None, max_examples=40, suppress_health_check=[HealthCheck.filter_too_much])
@given(seed=st.integers(0, 1 << 32), most_ops=st.integers(10, 30))
def test_a_narrowed_program_gives_the_numbers_of_the_twins(seed: int, most_ops: int) -> None:
    program, scalars, starts = random_program(seed, most_ops)
    assume(narrowed(build_graph(program, for_gpu=True)) is not None)
    check(program, starts, scalars)
