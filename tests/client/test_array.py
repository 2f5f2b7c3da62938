"""Arrays as users meet them, on a server in memory."""

from __future__ import annotations

import asyncio
import copy
import pickle
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusewire as fw
from tests.client.peer import Peer, connect

A = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
B = np.linspace(0.5, 3, 4, dtype=np.float32)


@pytest.fixture(scope="module")
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a + b,
        lambda a, b: 2 - a * b,
        lambda a, b: 1.5 / b + a // b - a % b,
        lambda a, b: b**2 - 2**b,
        lambda a, b: a @ a.T,
        lambda a, b: a @ b,
        lambda a, b: -a + abs(a) + (+a),
        lambda a, b: (a > b) | (a <= 0) & (a != b),
        lambda a, b: ~(a == b) ^ (a >= 1),
        lambda a, b: np.float32(3) * a + a * np.float64(2),
        lambda a, b: B + a - B,
        lambda a, b: a * True,
    ],
)
def test_operators_mean_what_they_mean_in_numpy(session: fw.Session, function: Callable[[Any, Any], Any]) -> None:
    actual = function(session.array(A), session.array(B))
    expected = function(A, B)
    assert actual.shape == expected.shape
    assert actual.dtype.name == expected.dtype.name
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize(
    "function",
    [
        lambda a: a.sum(),
        lambda a: a.sum(axis=0, keepdims=True),
        lambda a: a.mean(axis=-1),
        lambda a: a.var(axis=0, ddof=1),
        lambda a: a.std(),
        lambda a: a.prod(axis=(0, 1)),
        lambda a: a.min(axis=1) + a.max(axis=1),
        lambda a: a.argmax(axis=1) - a.argmin(axis=1),
        lambda a: a.argmax(),
        lambda a: (a > 0).any(axis=0) ^ (a > 0).all(axis=0),
        lambda a: a.reshape(4, 3).T.reshape(-1),
        lambda a: a.reshape((2, -1)).transpose(1, 0),
        lambda a: a[:, None, 1:3].squeeze(1),
        lambda a: a.astype(np.int32),
        lambda a: a.astype("float64").sum(dtype="float32"),
        lambda a: a.clip(-1, 1).round(),
        lambda a: a.flatten()[::-2],
        lambda a: a.take([0, -1, 1], axis=1),
        lambda a: a[[2, 0]],
        lambda a: a[-1, 1:],
    ],
)
def test_methods_mean_what_they_mean_in_numpy(session: fw.Session, function: Callable[[Any], Any]) -> None:
    actual, expected = function(session.array(A)), function(A)
    assert actual.shape == expected.shape
    assert actual.dtype.name == expected.dtype.name
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5)


@settings(max_examples=25)
@given(st.sampled_from(["uint8", "int32", "int64", "float16", "float32", "float64", "bool"]), st.sampled_from([2, 2.5]))
def test_python_scalars_are_weak(dtype: str, scalar: float) -> None:
    array = _shared().array(np.ones(3, dtype))
    assert (array * scalar).dtype.name == (np.ones(3, dtype) * scalar).dtype.name


def test_an_integer_that_the_dtype_cannot_hold_overflows(session: fw.Session) -> None:
    with pytest.raises(OverflowError, match="300 is out of range for uint8"):
        session.array(np.ones(3, np.uint8)) + 300


def test_numpys_functions_stay_on_the_server(session: fw.Session) -> None:
    a = session.array(A)
    for actual in (np.exp(a), np.add(A, a), np.sum(a, axis=0), np.concatenate([a, a]), np.where(a > 0, a, 0)):
        assert isinstance(actual, fw.Array)
    np.testing.assert_allclose(np.asarray(np.maximum(a, B)), np.maximum(A, B))


def test_what_we_do_not_offer_numpy_says_so(session: fw.Session) -> None:
    with pytest.raises(TypeError):
        np.linalg.svd(session.array(A))


def test_a_slice_is_a_value_and_not_a_view(session: fw.Session) -> None:
    x = session.array(A)
    y = x[1:]
    y += 1
    np.testing.assert_array_equal(x.numpy(), A)
    np.testing.assert_allclose(y.numpy(), A[1:] + 1)


def test_assigning_gives_this_name_a_new_value_and_no_other(session: fw.Session) -> None:
    x = session.array(A)
    same, other = x, x + 0
    x[0, 1:3] = 7
    x[2] = B
    x[x < -1] = 0
    expected = A.copy()
    expected[0, 1:3] = 7
    expected[2] = B
    expected[expected < -1] = 0
    np.testing.assert_array_equal(x.numpy(), expected)
    assert same is x
    np.testing.assert_array_equal(other.numpy(), A)


def test_adding_in_place_to_a_part_changes_that_part(session: fw.Session) -> None:
    x = session.array(A)
    x[:, 0] += 1
    expected = A.copy()
    expected[:, 0] += 1
    np.testing.assert_array_equal(x.numpy(), expected)


def test_a_scalar_comes_out_as_pythons_own(session: fw.Session) -> None:
    x = session.array(A)
    assert float(x.sum()) == pytest.approx(float(A.sum()), abs=1e-5)
    assert int(x.argmax()) == int(A.argmax())
    assert bool((x > -3).all())
    assert list(range(5))[x.argmin()] == 0
    with pytest.raises(ValueError, match="shape"):
        float(x)


def test_rows_are_iterated_and_counted(session: fw.Session) -> None:
    x = session.array(A)
    assert len(x) == 3
    np.testing.assert_array_equal(np.stack([row.numpy() for row in x]), A)
    with pytest.raises(TypeError, match="rank 0"):
        len(x.sum())


def test_asking_numpy_for_an_array_reads_the_value(session: fw.Session) -> None:
    x = session.array(A)
    np.testing.assert_array_equal(np.asarray(x, dtype=np.float64), A.astype(np.float64))
    with pytest.raises(ValueError, match="copy"):
        np.asarray(x, copy=False)


def test_awaiting_reads_the_value(session: fw.Session) -> None:
    x = session.array(A)

    async def read() -> Any:
        await session.ready()
        return await (x + 1), await asyncio.gather(_value(x), _value(x * 2))

    async def _value(array: fw.Array) -> Any:
        return await array

    first, (second, third) = asyncio.run(read())
    np.testing.assert_array_equal(first, A + 1)
    np.testing.assert_array_equal(second * 2, third)


def test_showing_an_array_asks_the_server_nothing() -> None:
    peer = connect(is_manual=True)
    x = peer.session.array(A) + 1
    assert repr(x) == "<fusewire.Array float32[3, 4]>"
    assert (x.shape, x.ndim, x.size, x.nbytes) == ((3, 4), 2, 12, 48)
    assert peer.server.entries == []


def test_an_array_is_not_pickled(session: fw.Session) -> None:
    with pytest.raises(TypeError, match="lives on its server"):
        pickle.dumps(session.array(A))


def test_a_copy_is_a_name_of_its_own(session: fw.Session) -> None:
    x = session.array(A)
    for other in (x.copy(), copy.copy(x), copy.deepcopy(x)):
        other[0] = 0
    np.testing.assert_array_equal(x.numpy(), A)


def test_an_array_is_hashed_by_identity(session: fw.Session) -> None:
    x = session.array(A)
    assert {x: 1}[x] == 1
    assert hash(x) != hash(x + 0)


def test_shapes_that_do_not_fit_raise_at_the_users_own_line(session: fw.Session) -> None:
    x = session.array(A)
    with pytest.raises(fw.ShapeError, match=r"add\(float32\[3, 4\], float32\[3\]\)") as caught:
        x + session.array(A[:, 0])
    assert str(caught.traceback[0].path) == __file__


def test_dtypes_that_do_not_fit_raise_at_once(session: fw.Session) -> None:
    with pytest.raises(fw.DtypeError, match="only for bool and integers"):
        session.array(A) & 1
    with pytest.raises(fw.DtypeError, match="complex128 is not supported"):
        session.array([1j])
    with pytest.raises(TypeError):
        session.array(A) + "1"


def test_arrays_of_two_sessions_do_not_meet(session: fw.Session) -> None:
    with connect().session as other, pytest.raises(fw.ArgumentError, match="different sessions"):
        session.array(A) + other.array(A)


def test_arrays_are_made_by_sessions_only() -> None:
    with pytest.raises(TypeError, match="made by a session"):
        fw.Array()


def test_what_one_thread_makes_another_uses(session: fw.Session) -> None:
    x = session.array(A)
    y = x * 2
    results: list[Any] = []

    def use() -> None:
        z = y + x
        results.append((z, (z + 1).numpy()))

    thread = threading.Thread(target=use)
    thread.start()
    thread.join()
    np.testing.assert_allclose(results[0][1], A * 3 + 1)
    np.testing.assert_allclose((results[0][0] - x).numpy(), A * 2, rtol=1e-5)


_SHARED: list[Peer] = []


def _shared() -> fw.Session:
    """One session for properties, which cannot take fixtures."""
    if not _SHARED:
        _SHARED.append(connect())
    return _SHARED[0].session
