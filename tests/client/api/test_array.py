"""Arrays as users meet them, on a server in memory."""

from __future__ import annotations

import asyncio
import copy
import math
import pickle
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._api import array as array_module
from fusewire.testing import session_in_memory
from tests.client.peer import connect

A = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
B = np.linspace(0.5, 3, 4, dtype=np.float32)


@pytest.fixture(scope="module")
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize("function", [lambda x: x + "1", lambda x: pow(x, 2, 3), lambda x: x // None])
def test_what_no_array_can_do_is_a_type_error(session: fw.Session, function: Callable[[Any], Any]) -> None:
    with pytest.raises(TypeError):
        function(session.array(A))


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
        lambda a: a.round(1),
        lambda a: (a * 100).round(-1),
        lambda a: (a * 100).astype(np.int32).round(-1),
        lambda a: a.astype(np.int32).round(2),
        lambda a: a.dot(a.T),
        lambda a: a.sum(0, "float64"),
        lambda a: a.sum(0, "int32") + a.astype(np.int64).prod(0, np.int32) + a.mean(0, np.int64),
        lambda a: a.prod(0, "float64"),
        lambda a: a.mean(0, "float64"),
        lambda a: a.sum(axis=np.int64(0)),
        lambda a: a.reshape(np.array([4, 3])),
        lambda a: a.transpose(np.int64(1), np.int64(0)),
        lambda a: a.take([1], axis=np.int64(1)),
        lambda a: a.reshape(1, 3, 4)[0, :, [1, 0]],
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


def test_a_python_integer_is_uploaded_only_as_a_dtype_that_holds_it(session: fw.Session) -> None:
    with pytest.raises(OverflowError):
        session.array(300, dtype="uint8")
    assert session.array(b"abc").tolist() == [97, 98, 99]


def test_numpy_is_told_shapes_and_whether_values_are_equal(session: fw.Session) -> None:
    x = session.array(A)
    assert (np.shape(x), np.ndim(x), np.size(x), np.size(x, 1)) == ((3, 4), 2, 12, 4)
    assert np.allclose(x, A)
    assert not np.array_equal(A + 1, x)


def test_a_dtype_is_compared_with_numpys_and_taken_by_numpy(session: fw.Session) -> None:
    x = session.array(A)
    assert x.dtype == np.float32
    assert x.dtype == "float32"
    assert x.dtype == A.dtype
    assert x.dtype != np.float64
    assert np.zeros(2, x.dtype).dtype == np.float32


def test_numpys_functions_stay_on_the_server(session: fw.Session) -> None:
    a = session.array(A)
    for actual in (np.exp(a), np.add(A, a), np.sum(a, axis=0), np.concatenate([a, a]), np.where(a > 0, a, 0)):
        assert isinstance(actual, fw.Array)
    np.testing.assert_allclose(np.asarray(np.maximum(a, B)), np.maximum(A, B))


@pytest.mark.parametrize(
    "function",
    [
        np.emath.sqrt,
        np.emath.log,
        np.emath.log2,
        np.emath.log10,
        lambda x: np.emath.power(x, 2),
    ],
)
def test_a_function_of_numpy_that_only_shares_its_name_with_ours_is_not_taken_for_it(
    session: fw.Session, function: Callable[[fw.Array], object]
) -> None:
    with pytest.raises(TypeError):
        function(session.array(A))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "float32", "float64"])
def test_rint_gives_floats_as_in_numpy(session: fw.Session, dtype: str) -> None:
    host = np.array([0, 1.5, 2.5]).astype(dtype)
    actual, expected = np.rint(session.array(host)), np.rint(host)
    assert actual.dtype.name == expected.dtype.name
    np.testing.assert_array_equal(actual, expected)


@pytest.mark.parametrize("other", [np.float64(2), np.float32(2), np.arange(1, 5, dtype=np.float32)])
def test_numpys_scalars_and_arrays_have_a_divmod_with_arrays(session: fw.Session, other: Any) -> None:
    for actual, expected in zip(divmod(other, session.array(B)), divmod(other, B), strict=True):
        assert actual.dtype.name == expected.dtype.name
        np.testing.assert_allclose(actual, expected, rtol=1e-5)


def test_what_we_do_not_offer_numpy_says_so(session: fw.Session) -> None:
    with pytest.raises(TypeError):
        np.i0(session.array(A))


@pytest.mark.parametrize("key", [[], [[]], (slice(1, None), []), ([], 2), (..., [[], []])], ids=str)
def test_an_empty_list_picks_nothing_as_in_numpy(session: fw.Session, key: Any) -> None:
    np.testing.assert_array_equal(session.array(A)[key].numpy(), A[key], strict=True)


def test_an_empty_array_of_floats_is_no_index(session: fw.Session) -> None:
    with pytest.raises(IndexError, match="this one is float64"):
        session.array(A)[np.zeros(0)]


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


def test_assigning_and_adding_change_the_object_under_all_its_names(session: fw.Session) -> None:
    x = session.array(A)
    same = x
    x[0] = 7
    assert same[0].tolist() == [7, 7, 7, 7]
    x += 1
    assert same[0].tolist() == [8, 8, 8, 8]


@pytest.mark.parametrize(
    "lost", ["x[1][0] = 9", "x[1][0] += 9", "x.T[0] = 9", "x[1:][x[1:] > 0] = 9", "x.ravel()[::5] = 9"]
)
def test_an_assignment_to_an_array_without_a_name_is_lost_with_a_warning(session: fw.Session, lost: str) -> None:
    x = session.array(A)
    with pytest.warns(UserWarning, match=r"the assignment is lost.* for x\[i\]\[j\] = v write x\[i, j\] = v") as caught:
        exec(compile(lost, "program.py", "exec"), {"x": x})  # noqa: S102
    assert [each.filename for each in caught] == ["program.py"]
    np.testing.assert_array_equal(x.numpy(), A)


def test_an_assignment_to_an_array_that_only_a_container_holds_is_not_lost(session: fw.Session) -> None:
    held = {"rows": [session.array(A)]}
    held["rows"][0][1, 0] = 9
    held["rows"][0][1] += 1
    held["rows"][0].flat[0] = 5
    assert held["rows"][0][:2, 0].tolist() == [5, 10]


@pytest.mark.parametrize("value", [2.5, np.float64(2.5), np.array(2.5), 7, True, np.int32(7)])
def test_assigning_under_a_mask_leaves_the_others_as_they_are(session: fw.Session, value: Any) -> None:
    x, expected = session.array([2**60 + 1, 5, -3]), np.array([2**60 + 1, 5, -3])
    x[x < 0] = value
    expected[expected < 0] = value
    assert x.dtype == np.int64
    assert x.tolist() == expected.tolist()


def test_what_is_assigned_under_a_mask_does_not_change_the_shape(session: fw.Session) -> None:
    x = session.array(A)
    with pytest.raises(fw.ShapeError):
        x[x < 0] = np.zeros((2, 3, 4))
    assert x.numpy().shape == x.shape == A.shape


def test_adding_in_place_to_a_part_changes_that_part(session: fw.Session) -> None:
    x = session.array(A)
    x[:, 0] += 1
    expected = A.copy()
    expected[:, 0] += 1
    np.testing.assert_array_equal(x.numpy(), expected)


def test_numpy_reads_floats_as_integers_by_the_rule_of_astype(session: fw.Session) -> None:
    x = session.array([3e9, np.nan, -np.inf, 300.7])
    assert np.asarray(x, dtype="int32").tolist() == [2**31 - 1, 0, -(2**31), 300]
    np.testing.assert_array_equal(np.asarray(x, dtype="int32"), x.astype("int32").numpy(), strict=True)


def test_what_numpys_functions_cannot_do_here_is_refused_with_what_does_it(session: fw.Session) -> None:
    x = session.array([1.0, 2.0])
    with pytest.raises(TypeError, match="takes a mask beside an out= only"):
        np.add(x, 1, where=np.array([True, False]))
    with pytest.raises(TypeError, match="takes no dtype"):
        np.add(x, 1, dtype="float32")


def test_a_scalar_comes_out_as_pythons_own(session: fw.Session) -> None:
    x = session.array(A)
    assert float(x.sum()) == pytest.approx(float(A.sum()), abs=1e-5)
    assert int(x.argmax()) == int(A.argmax())
    assert bool((x > -3).all())
    assert list(range(5))[x.argmin()] == 0
    with pytest.raises(TypeError, match="shape"):
        float(x)


def test_a_scalar_is_formatted_as_pythons_own(session: fw.Session) -> None:
    x = session.array(A)
    assert f"{x.max():.3f}" == "2.000"
    assert f"{x.argmax():>4}" == "  11"
    assert f"{x}" == str(x)
    with pytest.raises(TypeError, match="rank 2"):
        f"{x:.3f}"


def test_the_truth_of_several_elements_is_asked_for_by_any_or_all(session: fw.Session) -> None:
    with pytest.raises(ValueError, match=r"x.any\(\) or x.all\(\)"):
        bool(session.array(A) > 0)


def test_a_value_is_looked_for_among_all_elements(session: fw.Session) -> None:
    x = session.array(np.arange(6, dtype=np.uint8).reshape(2, 3))
    assert 3 in x
    assert 300 not in x
    assert 3.5 not in x
    assert "3" not in x


def test_an_array_tells_what_computes_it(session: fw.Session) -> None:
    assert session.array(A).device == session.backend


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


def test_a_pickled_array_is_its_value_which_the_default_session_uploads(
    session: fw.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    pickled = pickle.dumps({"x": session.array(A) + 1.0})
    with session_in_memory() as other:
        monkeypatch.setattr(array_module, "default_session", lambda: other)
        x = pickle.loads(pickled)["x"]  # noqa: S301  # our own bytes
        assert x.session is other
        np.testing.assert_array_equal(x.numpy(), A + 1.0)


def test_a_copy_is_a_name_of_its_own(session: fw.Session) -> None:
    x = session.array(A)
    for other in (x.copy(), copy.copy(x), copy.deepcopy(x)):
        other[0] = 0
    np.testing.assert_array_equal(x.numpy(), A)


def test_an_array_of_rank_0_is_a_key_by_its_value(session: fw.Session) -> None:
    labels: Any = session.array([2, 0, 2])
    assert {*labels} == {0, 2}
    assert {0: "none", 2: "both"}[labels[0]] == "both"
    assert Counter(labels) == {2: 2, 0: 1}
    assert {0: "none", 2: "both"}[labels.max()] == "both"


def test_an_array_of_elements_is_no_key_as_in_numpy(session: fw.Session) -> None:
    with pytest.raises(TypeError, match=r"unhashable array of shape \(3, 4\): use x.tobytes\(\)"):
        hash(session.array(A))


def test_shapes_that_do_not_fit_raise_at_the_users_own_line(session: fw.Session) -> None:
    x = session.array(A)
    with pytest.raises(fw.ShapeError, match=r"add\(float32\[3, 4\], float32\[3\]\)") as caught:
        x + session.array(A[:, 0])
    assert str(caught.traceback[0].path) == __file__


def test_dtypes_that_do_not_fit_raise_at_once(session: fw.Session) -> None:
    with pytest.raises(fw.DtypeError, match="only for bool and integers"):
        session.array(A) & 1
    with pytest.raises(fw.DtypeError, match=r"dtype \w+ is not supported"):
        session.array(np.clongdouble(1j))
    for others in (["cat", "dog"], [1, None]):
        with pytest.raises(fw.DtypeError, match="text and objects stay in arrays of NumPy's"):
            session.array(others)
    with pytest.raises(TypeError):
        session.array(A) + "1"


def test_arrays_of_two_sessions_do_not_meet(session: fw.Session) -> None:
    with connect().session as other, pytest.raises(fw.ArgumentError, match="different sessions"):
        session.array(A) + other.array(A)


@pytest.mark.parametrize("data", [(), ([1],), ([1], "float32")], ids=str)
def test_arrays_are_made_by_sessions_only(data: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError, match="made by a session"):
        fw.Array(*data)


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


def test_a_shape_and_a_dtype_are_not_assigned(session: fw.Session) -> None:
    x: Any = session.array([1, 2])
    with pytest.raises(AttributeError, match=r"write x = x.reshape\(\(2, 1\)\)"):
        x.shape = (2, 1)
    with pytest.raises(AttributeError, match=r"write x = x.astype\(dtype\)"):
        x.dtype = fw.float32
    assert (x.shape, x.dtype) == ((2,), fw.int64)


def test_a_number_is_truncated_to_an_integer_of_python(session: fw.Session) -> None:
    assert math.trunc(session.array(-2.7)) == -2
    with pytest.raises(TypeError, match="only an array of one element"):
        math.trunc(session.array([1.0, 2.0]))
