"""Products over windows, which plans read where they lie and single ops copy: the same bits in every manner."""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusewire as fw
from fusewire._api.ops.strided import strides_of
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.shapes import Shape
from tests.client.api.functions.products.convolved import Parameters, conv
from tests.contract.harness import Runner, assert_one_meaning
from tests.contract.service import Service
from tests.effort import of_a_hundred
from tests.kernels.programs import Writer
from tests.patience import HANGS_S
from tests.strategies import Work

pytestmark = pytest.mark.timeout(600)  # while nothing is in the cache, all of it is compiled

_DTYPES = (dtypes.float32, dtypes.float64, dtypes.float16, dtypes.bfloat16, dtypes.int32)
_PLAIN = Parameters((1, 1), ((0, 0), (0, 0)), (1, 1))


@st.composite
def _layers(draw: st.DrawFn) -> Work:
    """Matrices by windows, or by these turned as for the gradient by the kernels, and perhaps an epilogue."""
    dtype: DType = draw(st.sampled_from(_DTYPES))
    few, rank = st.integers(1, 3), draw(st.integers(1, 3))
    batch, channels, stride, rows = draw(few), draw(few), draw(st.integers(1, 2)), draw(st.integers(1, 9))
    window, places = draw(st.tuples(*[few] * rank)), draw(st.tuples(*[st.integers(1, 5)] * rank))
    dims = [(count - 1) * stride + extent for count, extent in zip(places, window, strict=True)]
    summed, columns = channels * prod(window), prod(places)
    is_turned, has_more = draw(st.sampled_from([(True, False), (False, False), (False, True)]))
    writer = Writer()
    x = writer.input(batch, channels, *dims, dtype=dtype)
    w = writer.input(rows, columns if is_turned else summed, dtype=dtype)
    ends = draw(st.sampled_from([(1,) * rank, places, (*places[:-1], 1)]))
    others = [writer.input(rows, *ends, dtype=dtype)] if has_more else []
    shape = (batch, channels, *window, *places)
    seen = writer.strided(x, shape=shape, strides=_strides((batch, channels, *dims), shape, stride))
    right = writer.reshape(seen, shape=(batch, summed, columns))
    result = writer.matmul(w, writer.transpose(right, permutation=(0, 2, 1)) if is_turned else right)
    result = writer.reshape(result, shape=(batch, rows, *places)) if others else result
    for other in others:
        result = writer.negative(writer.add(result, other))
    program = writer.program(result)
    generator = np.random.default_rng(draw(st.integers(0, 99)))
    drawn = [4 * generator.standard_normal(spec.shape) for spec in program.inputs]
    return Work(program, tuple([each.astype(dtypes.to_numpy(dtype)) for each in drawn]), (), (0,))


def _strides(whole: Shape, shape: Shape, stride: int) -> Shape:
    """The strides of the windows of an array as the client tells them: axes of one element have the stride 0."""
    dense = strides_of(whole)
    strides = (*dense, *[stride * each for each in dense[2:]])
    return tuple([each if dim > 1 else 0 for dim, each in zip(shape, strides, strict=True)])


@of_a_hundred(4)
@given(works=st.lists(_layers(), min_size=4, max_size=4))
def test_products_over_windows_have_one_meaning(runner: Runner, works: list[Work]) -> None:
    assert_one_meaning(runner, works)


def test_a_network_of_convolutions_trains_as_in_numpy(service: Service) -> None:
    generator = np.random.default_rng(0)
    x, goal = generator.standard_normal((4, 2, 6, 6)), generator.standard_normal((4, 3, 4, 4))
    first = generator.standard_normal((3, 2, 3, 3)) / 4
    expected = first.copy()
    for _ in range(10):
        error = conv(x, expected, _PLAIN) - goal
        gradient = np.zeros_like(expected)
        for i in range(3):
            for j in range(3):
                gradient[:, :, i, j] = 2 * np.einsum("noij,ncij->oc", error, x[:, :, i : i + 4, j : j + 4])
        expected -= 1e-3 * gradient

    def step(w: Any, x: Any, goal: Any) -> Any:
        return w - 1e-3 * fw.grad(lambda w: ((fw.conv(x, w) - goal) ** 2).sum())(w)

    with service.connect() as session:
        images, goals, w = session.array(x), session.array(goal), session.array(first)
        looped = fw.fori_loop(10, lambda i, w: step(w, images, goals), w)
        stepped = w
        for _ in range(10):
            stepped = step(stepped, images, goals)
        for found in (looped, stepped):
            np.testing.assert_allclose(found.numpy(timeout=HANGS_S), expected, rtol=1e-9, atol=1e-12)
