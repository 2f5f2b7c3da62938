"""The arithmetic of points: views of values in a space, and what a space must keep to."""

from __future__ import annotations

from fusewire_kernels.fusion import placement as places
from fusewire_kernels.fusion.placement import Walk
from fusewire_kernels.graph import views
from fusewire_kernels.graph.views import Layout


def _turned(*shape: int) -> Layout:
    return views.transpose(views.dense(shape), tuple(reversed(range(len(shape)))))


def test_a_transpose_of_a_dense_value_has_its_strides_as_places() -> None:
    assert places.placement_of_view(_turned(2, 3), (2, 3), (3, 1)) == (1, 3)


def test_a_transpose_of_a_transpose_is_back_in_order() -> None:
    assert places.placement_of_view(_turned(3, 2), (3, 2), (1, 3)) == (3, 1)


def test_a_reshape_splits_and_joins_places() -> None:
    assert places.placement_of_view(views.dense((2, 2, 3)), (4, 3), (3, 1)) == (6, 3, 1)
    assert places.placement_of_view(views.dense((12,)), (4, 3), (3, 1)) == (1,)


def test_a_reshape_across_axes_that_lie_apart_has_no_places() -> None:
    assert places.placement_of_view(views.dense((6,)), (2, 3), (1, 2)) is None


def test_axes_that_repeat_are_not_known() -> None:
    assert places.placement_of_view(views.broadcast_to(views.dense((3, 1)), (3, 5)), (3, 1), (5, 0)) == (5, None)


def test_a_part_of_a_value_cannot_be_met_at_the_same_point() -> None:
    part = Layout((2,), (1,), 0, ())
    assert places.placement_of_view(part, (3,), (1,)) is None
    assert places.placement_of_source(part, (3,), (1,)) is None


def test_a_view_that_shows_as_many_elements_but_some_twice_has_no_places() -> None:
    windows = Layout((2, 2), (1, 1), 0, ())
    assert places.placement_of_view(windows, (4,), (1,)) is None
    assert places.placement_of_source(windows, (4,), (2, 1)) is None


def test_behind_a_view_lies_what_gives_it() -> None:
    layout = views.broadcast_to(views.transpose(views.dense((2, 3)), (1, 0)), (4, 3, 2))
    assert places.placement_of_source(layout, (2, 3), (6, 2, 1)) == (1, 2)


def test_behind_a_view_that_joins_axes_they_lie_apart_again() -> None:
    assert places.placement_of_source(views.dense((6,)), (2, 3), (5,)) == (15, 5)


def test_behind_a_view_that_splits_an_axis_there_is_none() -> None:
    assert places.placement_of_source(views.dense((2, 3)), (6,), (3, 1)) is None


def test_partial_places_agree_if_nothing_contradicts() -> None:
    assert places.agree((5, None), (None, 1)) == (5, 1)
    assert places.agree((5, None), (4, 1)) is None


def test_unknown_axes_lie_along_the_walk() -> None:
    walk = Walk(6, 1)
    assert places.complete((4, 2, 3), (6, None, None), 24, walk) == (6, 3, 1)
    assert places.complete((4, 5), (6, None), 24, walk) is None
    assert places.complete((4, 6), (6, None), 24, None) is None


def test_a_result_of_a_reduction_leaves_out_the_walk() -> None:
    assert places.complete((4,), (6,), 24, Walk(6, 1)) == (6,)
    assert places.complete((4,), (6,), 24, None) is None


def test_a_shape_that_meets_points_twice_has_no_place() -> None:
    assert places.complete((4, 4), (4, 4), 16, None) is None


def test_breaks_that_do_not_divide_each_other_allow_no_loops() -> None:
    together = places.breaks_of((2, 3), (3, 1)) | places.breaks_of((3, 2), (2, 1))
    assert not places.is_chain(together)
    assert places.is_chain(places.breaks_of((2, 3), (3, 1)) | places.breaks_of((6,), (1,)))


def test_an_axis_is_uncut_if_no_break_lies_inside() -> None:
    assert places.is_uncut(Walk(6, 2), frozenset({1, 2, 12, 24}))
    assert not places.is_uncut(Walk(6, 2), frozenset({1, 2, 4, 12}))


def test_an_array_that_repeats_over_a_part_of_the_walk_is_not_even() -> None:
    shape, placement, walk = (4, 2, 3), (6, 3, 1), Walk(6, 1)
    assert places.walks_evenly(shape, placement, (6, 3, 1), walk)
    assert places.walks_evenly(shape, placement, (1, 0, 0), walk)
    assert not places.walks_evenly(shape, placement, (6, 0, 1), walk)
    assert places.walks_evenly((24,), (1,), (1,), walk)


def test_reduced_axes_are_a_walk_in_their_own_order() -> None:
    assert places.walk_of_axes((4, 2, 3), (6, 3, 1), (1, 2)) == Walk(6, 1)
    assert places.walk_of_axes((4, 2, 3), (6, 3, 1), (0,)) == Walk(4, 6)
    assert places.walk_of_axes((4, 2, 3), (6, 3, 1), (0, 2)) is None
    assert places.walk_of_axes((2, 3), (1, 2), (0, 1)) is None
    assert places.walk_of_axes((2, 1), (1, 0), (1,)) == Walk(1, 0)
