"""The whole product in a page: a server process, a client, array code, and NumPy's results. Runs first."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing import serve_subprocess

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(50, 8)).astype(np.float32)
W = RANDOM.normal(size=(8, 8)).astype(np.float32)


@pytest.fixture(scope="module")
def session() -> Iterator[fw.Session]:
    with serve_subprocess("cpu") as server, fw.connect(server.grpc) as session:
        yield session


def test_array_code_gives_what_numpy_gives(session: fw.Session) -> None:
    x, w = session.array(X), session.array(W)
    y = fw.tanh(x @ w + 1).sum(axis=0)
    np.testing.assert_allclose(y.numpy(), np.tanh(X @ W + 1).sum(axis=0), rtol=1e-4)


def test_a_loop_is_ordinary_python(session: fw.Session) -> None:
    h, w = session.array(X), session.array(W)
    expected = X
    for step in range(200):
        h = fw.tanh(h @ w * 0.2) + step % 3
        expected = np.tanh(expected @ W * np.float32(0.2)) + step % 3
    np.testing.assert_allclose(h.numpy(), expected, rtol=1e-3)
    assert session.stats.ops_recorded > 800


def test_slices_are_values_and_assignment_changes_one_object(session: fw.Session) -> None:
    x = session.array(X)
    y = x[10:20:3]
    y += 1
    x[0] = 7
    assert np.array_equal(y.numpy(), X[10:20:3] + 1)
    assert np.array_equal(x[:2].numpy(), np.stack([np.full(8, 7, np.float32), X[1]]))


def test_an_error_of_shape_is_raised_at_its_line(session: fw.Session) -> None:
    with pytest.raises(fw.ShapeError, match="matmul"):
        session.array(X) @ session.array(X)
