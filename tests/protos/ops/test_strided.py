"""Strided views against the places that they show, one by one."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from fusewire_protos.errors import ArgumentError, ShapeError
from fusewire_protos.ops import strided
from fusewire_protos.ops.shapes import Shape
from fusewire_protos.ops.strided import Strided

_shapes = st.lists(st.integers(0, 4), max_size=3).map(tuple)


@st.composite
def _parts(draw: st.DrawFn) -> Strided:
    shape = draw(_shapes)
    return Strided(shape, tuple(draw(st.integers(-5, 5)) for _ in shape))


def _places(part: Strided) -> list[int]:
    """The distance of each element of a view from its start."""
    return [
        sum(position * stride for position, stride in zip(index, part.strides, strict=True))
        for index in product(*map(range, part.shape))
    ]


@given(st.integers(0, 12), _parts(), st.integers(-3, 14))
def test_a_view_is_accepted_exactly_if_every_element_exists(size: int, part: Strided, start: int) -> None:
    fits = all(0 <= start + place < size for place in _places(part))
    try:
        strided.check((size,), part)
        strided.check_start((size,), part, start)
    except (ShapeError, ArgumentError):
        assert not fits
    else:
        assert fits


@given(st.integers(0, 12), _parts())
def test_a_structure_is_accepted_exactly_if_some_start_fits(size: int, part: Strided) -> None:
    fits = any(all(0 <= start + place < size for place in _places(part)) for start in range(max(size, 1)))
    try:
        strided.check((size,), part)
    except ShapeError:
        assert not fits
    else:
        assert fits


@given(st.integers(1, 12), _parts())
def test_the_only_start_is_the_one_that_fits(size: int, part: Strided) -> None:
    fitting = [start for start in range(size) if all(0 <= start + place < size for place in _places(part))]
    if 0 not in part.shape:
        assert strided.only_start((size,), part) == (fitting[0] if len(fitting) == 1 else None)


@given(_parts())
@example(Strided((4,), (0,)))
@example(Strided((2, 2), (1, 1)))
def test_a_view_that_shows_an_element_twice_is_never_distinct(part: Strided) -> None:
    places = _places(part)
    if len(set(places)) < len(places):
        with pytest.raises(ShapeError, match="twice"):
            strided.check_distinct(part)


@pytest.mark.parametrize(
    ("shape", "strides"),
    [
        ((), ()),
        ((4,), (-3,)),
        ((0, 4), (0, 0)),
        ((1, 4), (0, 1)),
        ((3, 4), (4, 1)),
        ((4, 3), (1, 4)),
        ((2, 3, 2), (-1, 5, 2)),
    ],
)
def test_views_whose_strides_step_over_each_other_are_distinct(shape: Shape, strides: Shape) -> None:
    strided.check_distinct(Strided(shape, strides))


def test_a_view_whose_axes_interleave_is_refused_though_it_shows_no_element_twice() -> None:
    with pytest.raises(ShapeError, match="may show"):
        strided.check_distinct(Strided((2, 3), (3, 2)))


@pytest.mark.parametrize(
    "part",
    [
        Strided((2,), (1, 1)),
        Strided((2, 2), (1,)),
        Strided((21,), (1,)),
        Strided((2,), (20,)),
        Strided((2, 2), (-10, 10)),
        Strided((2**31 - 1,) * 8, (2**40,) * 8),
    ],
)
def test_a_malformed_view_is_refused(part: Strided) -> None:
    with pytest.raises(ShapeError):
        strided.check((4, 5), part)
