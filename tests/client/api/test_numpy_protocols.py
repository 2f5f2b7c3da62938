"""Calls of NumPy's functions, with NumPy's names for what they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

A = np.linspace(0.1, 2, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.mean(a=x, axis=0),
        lambda x: np.sum(x, axis=0, out=None, keepdims=True),
        lambda x: np.var(x, axis=0, correction=1),
        lambda x: np.clip(x, a_min=0.5, a_max=1),
        lambda x: np.clip(a=x, a_min=None, a_max=1),
        lambda x: np.split(ary=x, indices_or_sections=2, axis=1)[1],
        lambda x: np.take(a=x, indices=[0, 2], axis=1),
        lambda x: np.swapaxes(x, axis1=0, axis2=1),
        lambda x: np.outer(a=x[0], b=x[1]),
        lambda x: np.outer(x[0], b=x[1]),
        lambda x: np.flip(m=x, axis=0),
        lambda x: np.roll(a=x, shift=1, axis=0),
        lambda x: np.broadcast_to(array=x[0], shape=(2, 4)),
        lambda x: np.stack(arrays=[x, x], axis=1),
        lambda x: np.full_like(a=x, fill_value=2),
    ],
)
def test_numpys_names_are_understood(session: fw.Session, function: Callable[[Any], Any]) -> None:
    actual, expected = function(session.array(A)), function(A)
    assert isinstance(actual, fw.Array)
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5, strict=True)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: np.concatenate([x, x], dtype="f4"), "np.concatenate .* takes no dtype, but axis"),
        (lambda x: np.take(x, [5], mode="clip"), "np.take .* takes no mode, but axis, indices"),
        (lambda x: np.mean(x, where=x.numpy() > 1), "np.mean .* takes no where, but axis, dtype, keepdims"),
        (lambda x: np.sum(x, out=np.zeros(())), "np.sum .* takes no out"),
        (lambda x: np.ravel(x, order="F"), "np.ravel .* takes no order$"),
    ],
)
def test_an_option_of_numpys_that_there_is_not_here_is_named(
    session: fw.Session, function: Callable[[Any], Any], text: str
) -> None:
    with pytest.raises(TypeError, match=text):
        function(session.array(A))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (np.cumsum, "cumsum"),
        (np.linalg.norm, "norm"),
        (lambda x: np.hypot(A, x), "hypot"),
        (np.add.reduce, "add.reduce"),
    ],
)
def test_a_function_that_there_is_not_here_says_what_to_do(
    session: fw.Session, function: Callable[[Any], Any], name: str
) -> None:
    with pytest.raises(TypeError, match=rf"^{name} does not take .*: {name}\(x\.numpy\(\)\)$"):
        function(session.array(A))


def test_what_numpy_compares_may_be_named(session: fw.Session) -> None:
    x = session.array(A)
    assert np.allclose(a=x, b=A)
    assert np.array_equal(a1=A, a2=x)
    assert (np.shape(a=x), np.size(a=x, axis=1)) == (A.shape, 4)


def test_what_numpy_asks_about_shared_memory_is_answered(session: fw.Session) -> None:
    x = session.array(A)
    for asks in (np.may_share_memory, np.shares_memory):
        assert asks(x, x)
        assert not asks(x, x[:])
        assert not asks(A, x)


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (lambda x: np.add.at(x, [0, 0], 1), "add.at"),
        (lambda x: np.put(x, [0, 1], 5), "put"),
        (lambda x: np.copyto(x, 7), "copyto"),
        (lambda x: np.putmask(x, [True, False, True], 7), "putmask"),
        (lambda x: np.put(v=5, ind=[0, 1], a=x), "put"),
        (lambda x: np.nan_to_num(x, copy=False), "nan_to_num"),
        (lambda x: np.cumsum(np.arange(3.0), out=x), "cumsum"),
    ],
)
def test_a_function_that_writes_is_refused_with_code_that_writes(
    session: fw.Session, write: Callable[[Any], None], name: str
) -> None:
    host = np.zeros(3)
    x = session.array(host)
    with pytest.raises(TypeError, match=rf"^{name} .*: v = np\.array\(x\); {name}\(v, …\); x\[\.\.\.\] = v$"):
        write(x)
    v = np.array(x)
    write(v)
    x[...] = v
    write(host)
    assert x.tolist() == host.tolist()


def test_a_ufunc_that_is_to_write_to_an_array_is_refused_with_code_that_writes(session: fw.Session) -> None:
    x: Any = session.array([1.0, 2.0])
    with pytest.raises(TypeError, match=r"out=, an array on a server; write out\[\.\.\.\] = np\.multiply\(…\)$"):
        np.multiply(x, 3, out=x)
    x[...] = np.multiply(x, 3)
    host = np.zeros(2)
    with pytest.raises(TypeError, match=r"otherwise out\[\.\.\.\] = np\.multiply\(…\)\.numpy\(\)$"):
        np.multiply(x, 2, out=host)
    doubled: Any = np.multiply(x, 2)
    host[...] = doubled.numpy()
    assert (x.tolist(), host.tolist()) == ([3, 6], [6, 12])


def test_a_function_that_writes_elsewhere_needs_the_values(session: fw.Session) -> None:
    with pytest.raises(TypeError, match=r"copyto\(x\.numpy\(\)\)$"):
        np.copyto(np.zeros(A.shape), session.array(A))
