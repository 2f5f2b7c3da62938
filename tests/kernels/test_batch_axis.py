"""The first axis of a group: where it is a loop of its own, where it is not, and what moves along one of length 1."""

from __future__ import annotations

import pytest

from fusewire_kernels import views
from fusewire_kernels.batch_axis import BatchAxis, batch_axis, is_repeated, step_of
from fusewire_kernels.graph import INPUT, POINTWISE, REDUCTION, Operand, Value
from fusewire_kernels.placement import Placement, Walk
from fusewire_protos import dtypes
from fusewire_protos.shapes import Shape


def _computed(*shape: int) -> Value:
    return Value(POINTWISE, dtypes.float32, shape, 0)


def _given(*shape: int, dtype: dtypes.DType = dtypes.float32) -> Value:
    return Value(INPUT, dtype, shape, 0)


def _reduced(shape: Shape, axes: Shape) -> Value:
    kept = tuple(1 if axis in axes else dim for axis, dim in enumerate(shape))
    return Value(REDUCTION, dtypes.float32, kept, 0, (Operand(0, views.dense(shape)),), axes=axes)


def _in_order(*values: Value) -> list[tuple[Value, Placement]]:
    return [(value, views.dense_strides(value.domain)) for value in values]


@pytest.mark.parametrize("length", [1, 2, 64])
def test_it_is_looped_over_where_everything_is_done_along_it(length: int) -> None:
    looped = BatchAxis(length, is_reduced=False)
    both = _in_order(_computed(length, 24), _computed(length, 24))
    assert batch_axis(both, None, 24 * length) == looped
    assert batch_axis(_in_order(_computed(length)), None, length) == looped


def test_it_is_not_where_something_has_another_first_axis_or_none() -> None:
    assert batch_axis(_in_order(_computed(1, 24), _computed(24)), None, 24) is None
    assert batch_axis(_in_order(_computed(4, 6), _computed(24)), None, 24) is None
    assert batch_axis(_in_order(_computed()), None, 1) is None


def test_it_is_not_where_it_lies_inside_another_axis() -> None:
    turned = (_computed(24, 4), (1, 24))
    assert batch_axis([turned], None, 96) is None


def test_arrays_without_elements_have_none() -> None:
    assert batch_axis(_in_order(_computed(0, 24)), None, 0) is None
    assert batch_axis(_in_order(_computed(24, 0)), None, 0) is None


@pytest.mark.parametrize("length", [1, 2, 64])
def test_rows_that_are_reduced_are_looped_over_and_a_reduced_batch_is_not(length: int) -> None:
    rows = _in_order(_computed(length, 24), _reduced((length, 24), (1,)))
    assert batch_axis(rows, Walk(24, 1), 24 * length) == BatchAxis(length, is_reduced=False)
    columns = _in_order(_computed(length, 24), _reduced((length, 24), (0,)), _computed(24))
    walk = Walk(1, 0) if length == 1 else Walk(length, 24)
    assert batch_axis(columns, walk, 24 * length) == BatchAxis(length, is_reduced=True)


def test_everything_that_is_reduced_is_one_walk() -> None:
    everything = _in_order(_computed(4, 24), _reduced((4, 24), (0, 1)))
    assert batch_axis(everything, Walk(96, 1), 96) is None
    of_one = _in_order(_computed(1, 24), _reduced((1, 24), (0, 1)))
    assert batch_axis(of_one, Walk(24, 1, is_open=True), 24) is None


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


def test_what_would_move_with_a_batch_of_one_and_does_not_with_more_is_repeated() -> None:
    along_five = views.broadcast_to(views.dense((1, 24)), (5, 24))
    assert is_repeated(_given(1, 24), along_five)
    assert not is_repeated(_given(24), views.broadcast_to(views.dense((24,)), (5, 24))), "it would not move"
    assert not is_repeated(_given(5, 24), views.dense((5, 24))), "it moves"
    assert not is_repeated(_given(1, 24), views.dense((1, 24))), "nothing tells"
    assert not is_repeated(_reduced((1, 24), (0,)), along_five), "a batch of one would tell"
