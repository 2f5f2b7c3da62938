"""The first axis of a batch of one: where it is a loop, where it is not, and that what takes long runs in pieces."""

from __future__ import annotations

from fusewire_kernels import views
from fusewire_kernels.batch_of_one import (
    MOST_OPERATIONS,
    MOST_PRODUCT_OPERATIONS,
    BatchOfOne,
    batch_of_one,
    step_of,
)
from fusewire_kernels.build import design, written_in
from fusewire_kernels.graph import INPUT, POINTWISE, REDUCTION, Operand, Value
from fusewire_kernels.placement import Walk
from fusewire_kernels.plan import Launch
from fusewire_protos import dtypes
from fusewire_protos.program import Program
from fusewire_protos.shapes import Shape
from tests.kernels.programs import Writer


def _computed(*shape: int) -> Value:
    return Value(POINTWISE, dtypes.float32, shape, 0)


def _given(*shape: int, dtype: dtypes.DType = dtypes.float32) -> Value:
    return Value(INPUT, dtype, shape, 0)


def _reduced(shape: Shape, axes: Shape) -> Value:
    kept = tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))
    return Value(REDUCTION, dtypes.float32, kept, 0, (Operand(0, views.dense(shape)),), axes=axes)


def test_it_is_looped_where_everything_is_done_along_it() -> None:
    assert batch_of_one([_computed(1, 24), _computed(1, 24)], None, 24) is BatchOfOne.LOOPED
    assert batch_of_one([_computed(1, 24), _computed(24)], None, 24) is BatchOfOne.NONE
    assert batch_of_one([_computed(24, 1)], None, 24) is BatchOfOne.NONE


def test_rows_that_are_reduced_are_looped_over_and_a_reduced_batch_is_not() -> None:
    rows = [_computed(1, 24), _reduced((1, 24), (1,))]
    assert batch_of_one(rows, Walk(24, 1), 24) is BatchOfOne.LOOPED
    everything = [_computed(1, 24), _reduced((1, 24), (0, 1))]
    assert batch_of_one(everything, Walk(24, 1), 24) is BatchOfOne.NONE
    columns = [_computed(1, 24), _reduced((1, 24), (0,)), _computed(24)]
    assert batch_of_one(columns, Walk(1, 0), 24) is BatchOfOne.REDUCED


def test_what_takes_long_is_left_as_it_is() -> None:
    values = [_computed(1, 24), _computed(1, 24)]
    assert batch_of_one(values, None, MOST_OPERATIONS // 2) is BatchOfOne.LOOPED
    assert batch_of_one(values, None, MOST_OPERATIONS // 2 + 1) is BatchOfOne.NONE


def test_an_operand_moves_along_it_unless_the_axis_was_put_in_front() -> None:
    whole = views.dense((1, 24))
    assert step_of(_computed(1, 24), whole) == 24
    assert step_of(_given(24), views.broadcast_to(views.dense((24,)), (1, 24))) == 0
    assert step_of(_given(1, 4, 6), views.dense((1, 4, 6))) == 24
    assert step_of(_given(1, 24), views.dense((24,))) == 0, "there is no such axis"


def test_a_view_moves_as_what_it_views_does() -> None:
    part_of_a_row = views.Layout((1, 16), (0, 1), 0, ())
    assert step_of(_computed(1, 24), part_of_a_row) == 24
    step_of_many = views.Layout((1, 24), (0, 1), 48, ())
    assert step_of(_given(7, 1, 24), step_of_many) == 24
    one_a_row = views.broadcast_to(views.dense((1, 1)), (1, 24))
    assert step_of(_computed(1, 1), one_a_row) == 1
    split = views.reshape(views.dense((1, 24)), (1, 4, 6))
    assert split is not None
    assert step_of(_computed(1, 24), split) == 24


def test_what_the_batch_was_reduced_to_broadcasts_along_it() -> None:
    assert step_of(_reduced((1, 24), (0,)), views.dense((1, 24))) == 0
    assert step_of(_reduced((1, 24), (1,)), views.broadcast_to(views.dense((1, 1)), (1, 24))) == 1


def test_one_float_is_a_bias_and_one_integer_a_label() -> None:
    one_a_row = views.before_axes(views.dense((1,)), (1, 10), 1)
    assert step_of(_given(1), one_a_row) == 0
    assert step_of(_given(1, dtype=dtypes.int64), one_a_row) == 1


def test_a_table_does_not_move_with_the_indices_into_it() -> None:
    picked = views.Layout((1, 16), (0, 1), 0, ())
    assert step_of(_given(50, 16), picked, is_gathered=True) == 0
    assert step_of(_given(1, 16), picked, is_gathered=True) == 16


def _launch(program: Program) -> Launch:
    (launch,) = written_in("c", design(program)).launches
    return launch


def _biased(columns: int) -> Program:
    w = Writer()
    x, bias = w.input(1, columns), w.input(columns)
    return w.program(w.add(x, bias))


def test_a_long_row_runs_in_pieces_all_the_same() -> None:
    assert _launch(_biased(24)).sizes[:2] == (1, 24)
    assert _launch(_biased(4 * MOST_OPERATIONS)).division is not None


def _product(rows: int) -> Program:
    w = Writer()
    return w.program(w.matmul(w.input(1, rows, 64), w.input(1, 64, 64)))


def test_a_large_product_runs_in_pieces_all_the_same() -> None:
    assert _launch(_product(2)).sizes[0] == 1
    assert _launch(_product(8 * MOST_PRODUCT_OPERATIONS // (2 * 64 * 64))).division is not None
