"""Long reductions: which are done in two steps, over which elements, and that the bits are those of one step."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_kernels.graph import views
from fusewire_kernels.graph.long_reductions import LONG, chunks
from fusewire_kernels.ops.order import CHUNK
from fusewire_protos.ops import dtypes
from tests.kernels.codegen.order_of_summation import reduced
from tests.kernels.plan_runner import run_program
from tests.kernels.programs import Writer


def _elements(layout: views.Layout, memory: npt.NDArray[Any]) -> npt.NDArray[Any]:
    strides = tuple(stride * memory.itemsize for stride in layout.strides)
    return np.lib.stride_tricks.as_strided(memory[layout.offset :], layout.shape, strides)


@given(st.integers(1, 3), st.integers(1, 3), st.integers(LONG + 1, LONG + 3 * CHUNK))
def test_the_chunks_hold_all_elements_in_order(before: int, behind: int, extent: int) -> None:
    memory = np.arange(before * extent * behind)
    parts = chunks(views.dense((before, extent, behind)), (1,))
    assert parts is not None
    assert parts.axis == 1
    found = [_elements(part, memory) for part in (parts.whole, parts.rest) if part is not None]
    assert all(part.shape[2] == CHUNK for part in found[: extent // CHUNK > 0])
    in_order = np.concatenate([part.reshape(before, -1, behind) for part in found], axis=1)
    assert np.array_equal(in_order, memory.reshape(before, extent, behind))


def test_axes_that_are_one_dimension_count_as_one() -> None:
    parts = chunks(views.dense((1, 32, 1, 64, 64)), (0, 1, 2, 3, 4))
    assert parts is not None
    assert (parts.whole.shape, parts.rest) == ((1, 128, CHUNK), None)


@pytest.mark.parametrize("shape", [(LONG,), (LONG + 1, 16), (0,), ()])
def test_short_reductions_and_those_to_many_results_are_one_step(shape: tuple[int, ...]) -> None:
    assert chunks(views.dense(shape), (0,) if shape else ()) is None


@pytest.mark.parametrize("name", ["sum", "max", "argmin", "argmax"])
@pytest.mark.parametrize("extent", [LONG + 1, 70 * CHUNK, 70 * CHUNK + 5])
def test_two_steps_mean_what_one_means(name: str, extent: int) -> None:
    x = np.random.default_rng(0).integers(-9, 9, (3, extent)).astype(np.float32)
    assert np.array_equal(_reduce(name, x, 1), getattr(x, name)(axis=1))


@given(
    st.sampled_from(["argmin", "argmax"]),
    st.sampled_from([np.float32, np.float64, np.float16, np.int32, np.int64, np.uint8, np.bool_]),
    st.integers(LONG + 1, LONG + 3 * CHUNK),
    st.integers(0, 1),
    st.lists(st.tuples(st.integers(0, LONG), st.sampled_from([np.nan, np.inf, -np.inf, 0.0, -0.0])), max_size=4),
    st.integers(0, 2**32),
)
def test_a_position_is_that_of_the_first_of_the_best(
    name: str, dtype: Any, extent: int, axis: int, specials: list[tuple[int, float]], seed: int
) -> None:
    x = np.random.default_rng(seed).integers(0, 3, (extent, 2) if axis == 0 else (2, extent)).astype(dtype)
    if np.issubdtype(dtype, np.floating):
        for place, special in specials:
            x.swapaxes(0, axis)[place, place % 2] = special
    assert np.array_equal(_reduce(name, x, axis), getattr(x, name)(axis=axis))


def _reduce(name: str, x: npt.NDArray[Any], axis: int) -> npt.NDArray[Any]:
    writer = Writer()
    array = writer.input(*x.shape, dtype=dtypes.from_numpy(x.dtype))
    (result,) = run_program(writer.program(writer.op(name, array, attributes=((axis,), False))), [x])
    return result


def test_the_results_of_chunks_are_combined_as_in_one_step() -> None:
    x = np.random.default_rng(0).standard_normal(40 * CHUNK + 7).astype(np.float32)
    whole = reduced(x, np.add, 0)
    parts = [reduced(x[first : first + CHUNK], np.add, 0) for first in range(0, len(x), CHUNK)]
    assert reduced(np.array(parts), np.add, 0).tobytes() == whole.tobytes()
