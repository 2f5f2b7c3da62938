"""Arrays of more axes than most programs have, by the client's functions: held to NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import fusewire as fw
from fusewire_protos.ops.shapes import MAX_RANK, Shape
from tests.client.peer import connect

_shapes = st.lists(st.sampled_from((1, 1, 2)), min_size=9, max_size=MAX_RANK).map(tuple)


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def _same(session: fw.Session, shape: Shape, function: Callable[[Any, Any], Any]) -> None:
    host = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    expected = np.asarray(function(np, host))
    np.testing.assert_array_equal(function(fw, session.array(host)).numpy(), expected, strict=True)


@given(_shapes, st.data())
def test_basic_indices_are_numpys(session: fw.Session, shape: Shape, data: st.DataObject) -> None:
    key = data.draw(npst.basic_indices(shape, allow_newaxis=True, max_dims=MAX_RANK))
    _same(session, shape, lambda xp, x: x[key])


@given(_shapes, st.data())
def test_gathers_reductions_and_moves_are_numpys(session: fw.Session, shape: Shape, data: st.DataObject) -> None:
    rank = len(shape)
    axis, order = data.draw(st.integers(-rank, rank - 1)), data.draw(st.permutations(range(rank)))
    axes = tuple(data.draw(st.sets(st.integers(0, rank - 1))))
    _same(session, shape, lambda xp, x: xp.take(x, np.zeros(1, int), axis=axis))
    _same(session, shape, lambda xp, x: xp.sum(x.transpose(order), axis=axes, keepdims=True) + x.transpose(order))
    _same(session, shape, lambda xp, x: xp.concatenate([x, x], axis=axis))
    _same(session, shape, lambda xp, x: xp.diagonal(x, 0, axis, (axis + 1) % rank))


def test_one_axis_more_is_refused_at_its_line(session: fw.Session) -> None:
    widest = fw.zeros((1,) * MAX_RANK)
    for function in (lambda x: x[None], lambda x: fw.expand_dims(x, axis=0), lambda x: x.reshape((1,) * 17)):
        with pytest.raises(fw.ShapeError, match="rank 17 exceeds the limit of 16"):
            function(widest)
