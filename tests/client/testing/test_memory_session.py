"""A user's own program and its tests, run without a server."""

from __future__ import annotations

import threading
from contextlib import AbstractContextManager
from queue import SimpleQueue
from typing import NoReturn

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing import MemoryServer, session_in_memory
from tests.patience import HANGS_S


def descend(x: fw.Array, y: fw.Array, steps: int) -> fw.Array:
    """A user's program: linear regression by gradient descent."""
    weights = fw.zeros((x.shape[1],))
    for _ in range(steps):
        weights = weights - 0.1 * (x.T @ (x @ weights - y)) / len(x)
    return weights


def test_a_users_program_computes_what_it_computes_on_a_server() -> None:
    random = np.random.default_rng(0)
    x, truth = random.normal(size=(64, 3)).astype(np.float32), np.array([1, -2, 3], np.float32)
    with session_in_memory() as session:
        found = descend(session.array(x), session.array(x @ truth), 300)
        np.testing.assert_allclose(found.numpy(), truth, atol=1e-3)


def test_what_a_user_does_wrong_is_refused_at_the_users_line() -> None:
    with session_in_memory() as session, pytest.raises(fw.ShapeError):
        descend(session.array(np.ones((4, 3))), session.array(np.ones(5)), 1)


def test_a_user_sees_which_programs_a_loop_became() -> None:
    server = MemoryServer()
    with session_in_memory(server) as session:
        descend(session.array(np.ones((4, 3), np.float32)), session.array(np.ones(4, np.float32)), 500).numpy()
    assert 0 < len(server.programs) < 20


def test_functions_without_an_array_use_the_session() -> None:
    with session_in_memory():
        assert (fw.ones((2,)) + 1).numpy().tolist() == [2, 2]


def test_the_example_of_the_docstring_is_true() -> None:
    with session_in_memory() as session:
        x = session.array([1.0, 3.0])
        for _ in range(10):
            x = x * 2
        assert x.numpy().tolist() == [1024, 3072]


def _session_whose_programs_raise(failure: Exception) -> AbstractContextManager[fw.Session]:
    def execute(*_: object) -> NoReturn:
        raise failure

    return session_in_memory(MemoryServer(execute=execute))


def test_a_program_that_is_refused_ends_the_session_with_the_reason() -> None:
    with _session_whose_programs_raise(fw.DtypeError("install a package")) as session:
        x = session.array([1.0]) + 1
        with pytest.raises(fw.DtypeError, match="install a package"):
            x.numpy(timeout=HANGS_S)


def test_a_defect_of_the_server_ends_the_session_and_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    shown: SimpleQueue[threading.ExceptHookArgs] = SimpleQueue()
    monkeypatch.setattr(threading, "excepthook", shown.put)
    defect = ZeroDivisionError("of ours")
    with _session_whose_programs_raise(defect) as session:
        x = session.array([1.0]) + 1
        with pytest.raises(fw.SessionLost, match="of ours"):
            x.numpy(timeout=HANGS_S)
    assert shown.get(timeout=HANGS_S).exc_value is defect


@pytest.mark.parametrize("name", ["mean", "var", "std", "layer_norm"])
def test_composite_functions_overflow_where_a_server_does(name: str) -> None:
    with session_in_memory() as session:
        x = session.array(np.array([3e38, 3e38, -3e38, 3e38], np.float32))
        assert not np.isfinite(getattr(fw, name)(x).numpy()).any()
