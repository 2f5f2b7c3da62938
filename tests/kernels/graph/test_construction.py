"""What ops become as primitive values."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_kernels.graph import views
from fusewire_kernels.graph.construction import build_graph, needed_ops
from fusewire_kernels.graph.graph import SLOTS, Form, Graph, Value
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Shape
from fusewire_protos.programs.program import Program
from tests.kernels.plan_runner import run_program
from tests.kernels.programs import Writer, random_program


def _computed(program: Program) -> list[Value]:
    graph = build_graph(program, for_gpu=False)
    leaves = (Form.INPUT, Form.SCALAR, Form.CONSTANT)
    return [
        value
        for value, is_needed in zip(graph.values, graph.is_needed, strict=True)
        if is_needed and value.form not in leaves
    ]


def _bodies(program: Program) -> list[str]:
    return [value.body or value.form.value for value in _computed(program)]


def _products(program: Program) -> list[Value]:
    return [value for value in build_graph(program, for_gpu=True).values if value.form is Form.PRODUCT]


def _output(graph: Graph) -> Value:
    return graph.values[graph.outputs[0]]


def test_operands_are_cast_as_the_catalogue_says() -> None:
    writer = Writer()
    x, y = writer.input(3), writer.input(3, dtype=dtypes.int32)
    cast, add = _computed(writer.program(writer.add(x, y)))[-2:]
    assert cast.dtype is add.dtype is dtypes.float64


def test_an_operand_used_twice_is_cast_once() -> None:
    writer = Writer()
    x, y = writer.input(3, dtype=dtypes.float16), writer.input(3)
    total = writer.add(writer.add(x, y), x)
    assert _bodies(writer.program(total)).count("cast") == 1


def test_an_operand_is_cast_once_by_ops_that_are_alike() -> None:
    writer = Writer()
    x = writer.input(3)
    halves = [writer.op("astype", x, attributes=(dtypes.float16.code,)) for _ in range(2)]
    assert _bodies(writer.program(writer.add(*halves))).count("cast") == 1


def test_ops_over_operands_that_look_alike_become_values_of_one_kind() -> None:
    writer = Writer()
    x, y, bias = writer.input(4, 3), writer.input(4, 3), writer.input(3)
    first, second, other = _computed(
        writer.program(writer.add(x, bias), writer.add(y, bias), writer.add(x, y)),
    )
    assert first.kind is not None
    assert first.kind == second.kind != other.kind


@pytest.mark.parametrize("seed", range(30))
def test_values_of_one_kind_differ_in_origin_and_in_what_they_view_alone(seed: int) -> None:
    graph = build_graph(random_program(seed, most_ops=100).program, for_gpu=False)
    of_kind: dict[int, set[object]] = {}
    for value in graph.values:
        if value.kind is not None:
            bases = [graph.values[operand.value] for operand in value.operands]
            views_of = [
                (view.layout, base.dtype, base.form in SLOTS) for view, base in zip(value.operands, bases, strict=True)
            ]
            of_kind.setdefault(value.kind, set()).add((value._replace(origin=0, operands=()), tuple(views_of)))
    assert all(len(alike) == 1 for alike in of_kind.values())


def test_an_array_is_cast_at_the_points_that_need_it() -> None:
    writer = Writer()
    x, bias = writer.input(4, 3), writer.input(3, dtype=dtypes.float16)
    cast, _ = _computed(writer.program(writer.add(x, bias)))
    assert cast.shape == (4, 3)


def test_astype_to_the_same_dtype_of_an_input_copies_it() -> None:
    writer = Writer()
    program = writer.program(writer.astype(writer.input(3), dtype=dtypes.float32.code))
    assert _bodies(program) == ["assembly", "store"]


def test_views_become_addressing() -> None:
    writer = Writer()
    x = writer.input(2, 3)
    view = writer.reshape(writer.transpose(x, permutation=(1, 0)), shape=(3, 1, 2))
    (value,) = _computed(writer.program(writer.tanh(view)))
    assert value.operands[0].layout == views.Layout((3, 1, 2), (1, 0, 3), 0, ())


def test_a_reshape_that_strides_cannot_express_copies() -> None:
    writer = Writer()
    flat = writer.reshape(writer.transpose(writer.input(2, 3), permutation=(1, 0)), shape=(6,))
    assert _bodies(writer.program(writer.tanh(flat))) == ["assembly", "store", "tanh"]


def test_a_live_reshape_of_a_computed_value_is_its_buffer() -> None:
    writer = Writer()
    graph = build_graph(writer.program(writer.reshape(writer.tanh(writer.input(2, 3)), shape=(6,))), for_gpu=False)
    assert _output(graph).body == "tanh"


def test_two_live_results_of_one_value_have_two_buffers() -> None:
    writer = Writer()
    y = writer.tanh(writer.input(2, 3))
    graph = build_graph(writer.program(y, writer.reshape(y, shape=(6,))), for_gpu=False)
    assert len(set(graph.outputs)) == 2


def test_composites_equal_the_same_ops_written_by_hand() -> None:
    composite, written = Writer(), Writer()
    for writer in (composite, written):
        writer.input(4, 8)
    count = written.scalar()
    by_hand = written.program(written.divide(written.sum(0, axes=(1,), keepdims=False), count))
    assert _bodies(composite.program(composite.mean(0, axes=(1,), keepdims=False))) == _bodies(by_hand)


def test_reduced_axes_that_lie_apart_are_copied_into_row_major_order() -> None:
    writer = Writer()
    total = writer.sum(writer.input(2, 3, 4), axes=(0, 2), keepdims=False)
    values = _computed(writer.program(total))
    assert [value.body or value.form.value for value in values] == ["assembly", "store", "sum"]
    assert values[0].shape == (3, 2, 4)


def test_neighbouring_reduced_axes_are_one_walk() -> None:
    writer = Writer()
    assert _bodies(writer.program(writer.sum(writer.input(2, 3, 4), axes=(0, 1), keepdims=False))) == ["sum"]


def test_slice_starts_are_numbered_over_all_ops_also_the_dead() -> None:
    writer = Writer()
    x = writer.input(6, 6)
    writer.slice(x, (0, 1), (2, 2))
    kept = writer.tanh(writer.slice(x, (0,), (2,)))
    (value,) = _computed(writer.program(kept))
    assert [move.start for move in value.operands[0].layout.moves] == [2]


def test_an_assignment_stores_after_the_copy_of_its_target() -> None:
    writer = Writer()
    x, value = writer.input(6), writer.input(2)
    result = writer.assign_slice(x, value, axes=(0,), lengths=(2,), steps=(1,), dropped=())
    graph = build_graph(writer.program(result), for_gpu=False)
    copy, part = (number for number, value in enumerate(graph.values) if value.form is Form.STORE)
    assert graph.values[part].after == (copy,)


@pytest.mark.parametrize(
    ("axes", "lengths", "steps", "dropped"),
    [((), (), (), ()), ((0, 1, 2), (1, 3, 4), (1, 1, 1), ()), ((0,), (1,), (1,), (0,)), ((0, 2), (1, 4), (-1, 1), ())],
)
def test_an_assignment_to_all_elements_is_a_view_of_what_is_assigned(
    axes: Shape, lengths: Shape, steps: Shape, dropped: Shape
) -> None:
    writer = Writer()
    x, value = writer.input(1, 3, 4), writer.input(3, 1)
    pushed = writer.tanh(value)
    assigned = writer.assign_slice(x, pushed, axes=axes, lengths=lengths, steps=steps, dropped=dropped)
    *_, result = _computed(writer.program(writer.exp(assigned)))
    assert result.operands[0] == (2, views.broadcast_to(views.dense((3, 1)), (1, 3, 4)))


def test_an_assignment_to_all_elements_from_the_back_is_stored() -> None:
    writer = Writer()
    x, value = writer.input(3), writer.input(3)
    assigned = writer.assign_slice(x, value, axes=(0,), lengths=(3,), steps=(-1,), dropped=())
    graph = build_graph(writer.program(assigned), for_gpu=False)
    assert [value.form for value in graph.values if value.after] == [Form.STORE]


def test_ops_are_needed_if_something_live_depends_on_them() -> None:
    writer = Writer()
    x = writer.input(3)
    a = writer.tanh(x)
    writer.exp(a)
    b = writer.exp(a)
    assert needed_ops(writer.program(b)) == [True, False, True]


@given(
    st.tuples(st.integers(2, 70), st.integers(1, 70)),
    st.sampled_from([dtypes.float32, dtypes.float64, dtypes.float16, dtypes.int32]),
    st.booleans(),
    st.booleans(),
    st.integers(0, 2**32),
)
def test_a_matrix_by_a_vector_has_the_same_bits_on_a_gpu(
    shape: tuple[int, int], dtype: DType, is_column: bool, is_transposed: bool, seed: int
) -> None:
    rows, inner = shape
    writer = Writer()
    matrix = writer.input(*(shape[::-1] if is_transposed else shape), dtype=dtype)
    vector = writer.input(*((inner, 1) if is_column else (inner,)), dtype=dtype)
    bias = writer.input(rows, 1, dtype=dtype)
    read = writer.op("transpose", matrix, attributes=((1, 0),)) if is_transposed else matrix
    program = writer.program(writer.add(writer.matmul(read, vector), bias))
    draw = np.random.default_rng(seed)
    inputs = [(draw.integers(-9, 9, spec.shape) / 2).astype(dtypes.to_numpy(dtype)) for spec in program.inputs]
    (product,) = _products(program)
    assert [operand.layout.shape for operand in product.operands] == [(1, inner), (inner, rows)]
    (here,), (there,) = run_program(program, inputs), run_program(program, inputs, for_gpu=True)
    assert here.tobytes() == there.tobytes()


def test_a_product_of_two_views_of_one_array_is_no_template_for_others() -> None:
    writer = Writer()
    x, y, z = writer.input(4, 1), writer.input(4, 1), writer.input(4, 1)
    products = [writer.matmul(writer.op("broadcast_to", a, attributes=((4, 4),)), b) for a, b in ((x, x), (y, z))]
    program = writer.program(*products)
    inputs = [np.random.default_rng(number).standard_normal((4, 1)).astype(np.float32) for number in range(3)]
    here, there = run_program(program, inputs), run_program(program, inputs, for_gpu=True)
    assert [result.tobytes() for result in here] == [result.tobytes() for result in there]


@pytest.mark.parametrize(
    ("rows", "columns"), [((3, 5, 4), (4,)), ((1, 4), (4,)), ((20_000, 4), (4,)), ((5, 4), (4, 2))]
)
def test_other_products_are_as_they_are_written(rows: Shape, columns: Shape) -> None:
    writer = Writer()
    program = writer.program(writer.matmul(writer.input(*rows), writer.input(*columns)))
    (product,) = _products(program)
    assert product.operands[0].value == 0


def _windows(writer: Writer, x: int, shape: Shape, window: Shape, stride: int = 1) -> int:
    """The view [batch, channels, *window, *places] of [batch, channels, rows, columns]."""
    dense = views.dense(shape).strides
    places = [(dim - extent) // stride + 1 for dim, extent in zip(shape[2:], window, strict=True)]
    strides = (*dense, *[each * stride for each in dense[2:]])
    number: int = writer.strided(x, shape=(*shape[:2], *window, *places), strides=strides)
    return number


@pytest.mark.parametrize("is_turned", [False, True])
def test_a_product_reads_windows_where_they_lie(is_turned: bool) -> None:
    writer = Writer()
    x, w = writer.input(2, 3, 6, 7), writer.input(4, 20 if is_turned else 27)
    rows = writer.reshape(_windows(writer, x, (2, 3, 6, 7), (3, 3)), shape=(2, 27, 20))
    right = writer.transpose(rows, permutation=(0, 2, 1)) if is_turned else rows
    (product,) = _computed(writer.program(writer.matmul(w, right)))
    along = ((3, 3, 3), (42, 7, 1)), ((4, 5), (7, 1))
    inner, columns = reversed(along) if is_turned else along
    assert product.operands[1].value == x
    assert product.operands[1].layout == views.Layout((2, *inner[0], *columns[0]), (126, *inner[1], *columns[1]), 0, ())
    assert product.inner_axes == len(inner[0])


def test_a_product_sees_through_a_copy_of_a_copy() -> None:
    """As for the gradient by kernels that all of a batch share: k is the batch and the places."""
    writer = Writer()
    x, w = writer.input(2, 3, 6, 7), writer.input(4, 40)
    rows = writer.reshape(_windows(writer, x, (2, 3, 6, 7), (3, 3)), shape=(2, 27, 20))
    right = writer.reshape(writer.transpose(rows, permutation=(0, 2, 1)), shape=(40, 27))
    (product,) = _computed(writer.program(writer.matmul(w, right)))
    assert product.operands[1].layout == views.Layout((2, 4, 5, 3, 3, 3), (126, 7, 1, 42, 7, 1), 0, ())
    assert product.inner_axes == 3


def test_a_product_copies_a_view_that_is_not_larger_than_what_it_shows() -> None:
    writer = Writer()
    x, w = writer.input(2, 3, 4), writer.input(5, 8)
    turned = writer.reshape(writer.transpose(x, permutation=(1, 0, 2)), shape=(3, 8))
    product = _products(writer.program(writer.matmul(w, writer.transpose(turned, permutation=(1, 0)))))[0]
    assert product.inner_axes == 0


def test_a_product_copies_windows_whose_rows_are_parts_of_axes() -> None:
    writer = Writer()
    x, whole, split = writer.input(1, 3, 6, 7), writer.input(4, 9), writer.input(4, 6)
    rows = writer.reshape(_windows(writer, x, (1, 3, 6, 7), (3, 3)), shape=(1, 9, 60))  # of 3 · 3 and 3 · 4 · 5
    products = [writer.matmul(whole, rows), writer.matmul(split, writer.reshape(rows, shape=(1, 6, 90)))]
    assert [product.inner_axes for product in _products(writer.program(*products))] == [2, 0]


@pytest.mark.parametrize("for_gpu", [False, True])
@pytest.mark.parametrize("stride", [1, 2])
def test_windows_read_in_place_give_what_their_copy_gives(stride: int, for_gpu: bool) -> None:
    shape = (2, 3, 6, 7)
    writer = Writer()
    x, w, bias = writer.input(*shape), writer.input(4, 18), writer.input(4, 1)
    columns = ((6 - 3) // stride + 1) * ((7 - 2) // stride + 1)
    rows = writer.reshape(_windows(writer, x, shape, (3, 2), stride), shape=(2, 18, columns))
    program = writer.program(writer.tanh(writer.add(writer.matmul(w, rows), bias)))
    generator = np.random.default_rng(0)
    inputs = [generator.standard_normal(spec.shape).astype(np.float32) for spec in program.inputs]
    ours, copied = (run_program(program, inputs, starts=[0], fuse=fuse, for_gpu=for_gpu)[0] for fuse in (True, False))
    np.testing.assert_array_equal(ours, copied)
