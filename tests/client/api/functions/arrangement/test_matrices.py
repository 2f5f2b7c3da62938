"""Diagonals against NumPy's: read, made of vectors, and summed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import fusewire as fw
from tests.client.peer import connect


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def _counted(shape: tuple[int, ...]) -> Any:
    return np.arange(np.prod(shape, dtype=int), dtype=np.int64).reshape(shape)


@given(
    npst.array_shapes(min_dims=2, max_dims=4, min_side=0, max_side=5),
    st.integers(-6, 6),
    st.randoms(use_true_random=False),
)
def test_diagonals_and_traces_are_numpys(session: fw.Session, shape: tuple[int, ...], offset: int, chance: Any) -> None:
    host, axes = _counted(shape), chance.sample(range(-len(shape), 0), 2)
    ours = session.array(host)
    np.testing.assert_array_equal(ours.diagonal(offset, *axes).numpy(), host.diagonal(offset, *axes), strict=True)
    expected = np.asarray(np.trace(host, offset, *axes))
    np.testing.assert_array_equal(fw.trace(ours, offset, *axes).numpy(), expected, strict=True)


@given(st.integers(0, 5), st.integers(-3, 3), st.sampled_from(("float16", "bool", "uint64")))
def test_a_vector_on_a_diagonal_is_numpys(session: fw.Session, length: int, k: int, dtype: str) -> None:
    host = np.arange(length).astype(dtype)
    np.testing.assert_array_equal(fw.diag(session.array(host), k).numpy(), np.diag(host, k), strict=True)
