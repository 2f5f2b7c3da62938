"""Arrays of more axes than most programs have: their ops are NumPy's, in every manner of running them."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import MAX_RANK, Shape
from tests.contract.harness import Runner, assert_one_meaning
from tests.effort import of_a_hundred
from tests.kernels.programs import Writer
from tests.strategies import Work

pytestmark = pytest.mark.timeout(600)  # while nothing is in the cache, all of it is compiled

_LEAST_RANK = 9
_MOST_ELEMENTS = 1 << 12

Array = npt.NDArray[Any]


@st.composite
def _shapes(draw: st.DrawFn) -> Shape:
    """Mostly axes of one and two elements, of which no two neighbours merge once some repeat."""
    shape = draw(st.lists(st.sampled_from((1, 2, 2, 3)), min_size=_LEAST_RANK, max_size=MAX_RANK))
    while np.prod(shape) > _MOST_ELEMENTS:
        shape[shape.index(max(shape))] = 1
    return tuple(shape)


@st.composite
def _cases(draw: st.DrawFn) -> tuple[Work, list[Array]]:
    """A program of integers over two arrays that broadcast, and its results by NumPy."""
    shape = draw(_shapes())
    rank, random = len(shape), np.random.default_rng(draw(st.integers(0, 99)))
    thin = tuple(draw(st.sampled_from((1, dim))) for dim in shape)
    order = tuple(draw(st.permutations(range(rank))))
    axes = tuple(sorted(draw(st.sets(st.integers(0, rank - 1), max_size=rank))))
    along = draw(st.integers(0, rank - 1))
    a, b = [random.integers(-9, 9, each) for each in (shape, thin)]
    w = Writer()
    x, y = w.input(*shape, dtype=dtypes.int64), w.input(*thin, dtype=dtypes.int64)
    summed = w.add(x, y)
    turned = w.transpose(summed, permutation=order)
    joined = w.concat(turned, turned, axis=along)
    long = 2 * _turned(shape, order)[along]
    flat = w.reshape(joined, shape=(2 * int(np.prod(shape)),))
    reduced = w.sum(turned, axes=axes, keepdims=False)
    part = w.slice(joined, (along,), (long - 1,), (1,))
    written = w.assign_slice(joined, w.negative(part), axes=(along,), lengths=(long - 1,), steps=(1,), dropped=())
    program = w.program(summed, turned, flat, reduced, part, written)
    index = (slice(None),) * along
    host = (a + b).transpose(order)
    both = np.concatenate([host, host], along)
    changed = both.copy()
    changed[(*index, slice(0, long - 1))] = -both[(*index, slice(1, None))]
    expected = [a + b, host, both.reshape(-1), host.sum(axes), both[(*index, slice(1, None))], changed]
    return Work(program, (a, b), (), (1, 0)), expected


def _turned(shape: Shape, order: Shape) -> Shape:
    return tuple(shape[axis] for axis in order)


@of_a_hundred(3)
@given(case=_cases())
def test_arrays_of_many_axes_are_numpys_in_every_manner(runner: Runner, case: tuple[Work, list[Array]]) -> None:
    work, expected = case
    assert_one_meaning(runner, [work])
    for ours, numpys in zip(runner.run(work), expected, strict=True):
        np.testing.assert_array_equal(ours, numpys, strict=True)
