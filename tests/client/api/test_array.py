"""Arrays as users meet them, on a server in memory."""

from __future__ import annotations

import asyncio
import copy
import math
import operator
import pickle
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusewire as fw
from fusewire._api import array as array_module
from fusewire.testing import session_in_memory
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
        lambda a, b: divmod(a, b)[0] + divmod(2, b)[1],
    ],
)
def test_operators_mean_what_they_mean_in_numpy(session: fw.Session, function: Callable[[Any, Any], Any]) -> None:
    actual = function(session.array(A), session.array(B))
    expected = function(A, B)
    assert actual.shape == expected.shape
    assert actual.dtype.name == expected.dtype.name
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5)


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
@pytest.mark.parametrize(
    "function",
    [
        lambda i: (i << 1) | (i >> 1) ^ (1 << i) & (64 >> i),
        lambda i: (i << i) + (i >> 100) + (i << True),
        lambda i: i << np.int64(3),
        lambda i: [1, 2, 3] >> i,
        lambda i: np.left_shift(i, 2) - np.right_shift(100, i),
    ],
)
def test_shifts_mean_what_they_mean_in_numpy(session: fw.Session, function: Callable[[Any], Any], dtype: str) -> None:
    integers = np.array([0, 3, 200], dtype)
    np.testing.assert_array_equal(function(session.array(integers)).numpy(), function(integers), strict=True)


def test_a_shift_may_be_assigned(session: fw.Session) -> None:
    x = old = session.array([1, 2])
    x <<= 3
    x >>= 1
    assert (x.tolist(), old.tolist()) == ([4, 8], [4, 8])


def test_a_negative_count_shifts_all_bits_out_as_in_numpy(session: fw.Session) -> None:
    x = session.array(np.array([5, -5]))
    assert [(x << -1).tolist(), (x >> -1).tolist()] == [[0, 0], [0, -1]]


@pytest.mark.parametrize("base", [[2, 3], [True, False], 2], ids=str)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x**-1,
        lambda x: x ** np.int64(-2),
        lambda x: fw.power(x, -1),
        lambda x: fw.pow(x.numpy(), -1) if x.ndim else fw.power(2, -1),
        lambda x: np.power(x, -1),
    ],
)
def test_integers_to_a_negative_power_are_refused_as_in_numpy(
    session: fw.Session, function: Callable[[Any], Any], base: Any
) -> None:
    with pytest.raises(fw.ArgumentError, match=r"to the power of -\d is no integer"):
        function(session.array(base))


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_powers_that_numpy_computes_in_another_way_are_its_own_to_the_bit(session: fw.Session, dtype: str) -> None:
    host = np.array([-0.0, 0.0, 0.1, 2.3, 200.0, np.inf], dtype)
    x = session.array(host)
    with np.errstate(all="ignore"):
        for exponent in (2, 2.0, 0.5, -1, -1.0):
            assert (x**exponent).numpy().tobytes() == (host**exponent).tobytes()


def test_integers_are_squared_as_integers(session: fw.Session) -> None:
    x = session.array(np.array([3, 100], np.uint8))
    assert (x**2).dtype is fw.uint8
    assert (x**2).tolist() == [9, 16]
    assert (x**2.0).dtype is fw.float64


def test_floats_have_negative_powers(session: fw.Session) -> None:
    x = session.array(A + 1)
    for actual in (x**-1, x ** np.int32(-1), fw.power(x, -1)):
        np.testing.assert_allclose(actual.numpy(), 1 / (A + 1), rtol=1e-6)


@pytest.mark.parametrize("dtype", ["int32", "int64"])
def test_integers_to_the_negative_powers_in_an_array_have_a_defined_value(session: fw.Session, dtype: str) -> None:
    base = session.array(np.array([-2, -1, -1, 0, 1, 2], dtype))
    exponent = session.array(np.array([-1, -1, -2, -1, -3, -1], dtype))
    assert (base**exponent).tolist() == [0, -1, 1, 0, 1, 0]
    assert (2**exponent).tolist() == [0] * 6


@pytest.mark.parametrize("name", ["lshift", "rshift"])
def test_booleans_shift_as_the_smallest_integers(session: fw.Session, name: str) -> None:
    shifted = getattr(operator, name)(session.array([True, False]), session.array([True, True]))
    assert shifted.dtype is fw.int8
    assert shifted.tolist() == getattr(operator, name)(np.array([True, False]), True).tolist()


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x << 1,
        lambda x: 1.5 >> x,
        lambda x: ~x,
        lambda x: x & 1,
        lambda x: x < 1j,
        lambda x: x < np.complex64(1),
        lambda x: x == np.timedelta64(1),
    ],
)
def test_an_operator_without_a_meaning_for_a_dtype_says_so(session: fw.Session, function: Callable[[Any], Any]) -> None:
    with pytest.raises(fw.DtypeError):
        function(session.array(A))


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


@settings(max_examples=25)
@given(st.sampled_from(["uint8", "int32", "int64", "float16", "float32", "float64", "bool"]), st.sampled_from([2, 2.5]))
def test_python_scalars_are_weak(dtype: str, scalar: float) -> None:
    array = _shared().array(np.ones(3, dtype))
    assert (array * scalar).dtype.name == (np.ones(3, dtype) * scalar).dtype.name


def test_an_integer_that_the_dtype_cannot_hold_overflows(session: fw.Session) -> None:
    with pytest.raises(OverflowError, match="300 is out of range for uint8"):
        session.array(np.ones(3, np.uint8)) + 300


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
@pytest.mark.parametrize("other", [300, -1, 2**40, -(2**40), 2**70, -(2**70)])
@pytest.mark.parametrize("compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne])
def test_integers_compare_with_any_python_integer_as_in_numpy(
    session: fw.Session, compare: Callable[[Any, Any], Any], other: int, dtype: str
) -> None:
    host = np.array([[0, 1, 255]], dtype)
    x = session.array(host)
    for actual, expected in ((compare(x, other), compare(host, other)), (compare(other, x), compare(other, host))):
        assert actual.dtype == np.bool_
        np.testing.assert_array_equal(actual.numpy(), expected)


def test_functions_compare_with_any_python_integer_too(session: fw.Session) -> None:
    x = session.array(np.array([0, 255], np.uint8))
    assert fw.less(x, 300).tolist() == fw.less(-1, x).tolist() == [True, True]
    assert fw.greater(x, 300).tolist() == [False, False]


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64"])
@pytest.mark.parametrize("other", [256, -1, 2**31, -(2**40), 2**63, -(2**70)])
def test_any_python_integer_divides_and_is_divided_as_in_numpy(session: fw.Session, other: int, dtype: str) -> None:
    host = np.array([[1, 2, 255]]).astype(dtype)
    x = session.array(host)
    for actual, expected in ((x / other, host / other), (other / x, other / host)):
        assert actual.dtype == np.float64
        np.testing.assert_array_equal(actual.numpy(), expected)


@pytest.mark.parametrize(
    "function",
    [
        lambda xp, x: xp.divide(x, 300),
        lambda xp, x: xp.arctan2(x, 300) if xp is np else xp.atan2(x, 300),
        lambda xp, x: xp.logical_and(x, 300),
        lambda xp, x: xp.logical_xor(-1, x),
        lambda xp, x: xp.clip(x, -1, 300),
        lambda xp, x: xp.clip(x, None, 300),
        lambda xp, x: xp.clip(x, 3, 300),
        lambda xp, x: xp.clip(x, 0.5, 300),
        lambda xp, x: xp.clip(x, np.int32(-3), 300),
        lambda xp, x: x.clip(-1, 4),
    ],
)
def test_functions_take_an_integer_beyond_the_dtype_where_numpy_does(
    session: fw.Session, function: Callable[[Any, Any], Any]
) -> None:
    host = np.array([0, 5, 255], np.uint8)
    actual, expected = function(fw, session.array(host)), function(np, host)
    assert actual.dtype.name == expected.dtype.name
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-3)


def test_a_half_is_infinite_for_an_integer_beyond_it(session: fw.Session) -> None:
    assert fw.atan2(session.array(np.array([1], np.uint8)), 70_000).tolist() == [0]


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 300,
        lambda x: x // 300,
        lambda x: fw.maximum(x, 300),
        lambda x: fw.where(x > 0, x, 300),
        lambda x: x.clip(300, 400),
        lambda x: x / 10**400,
    ],
)
def test_an_integer_beyond_the_dtype_overflows_where_numpy_computes_in_it(
    session: fw.Session, function: Callable[[fw.Array], object]
) -> None:
    with pytest.raises(OverflowError):
        function(session.array(np.ones(3, np.uint8)))


def test_a_list_with_an_integer_beyond_int64_has_no_comparison(session: fw.Session) -> None:
    with pytest.raises(OverflowError, match=f"{2**70} is out of range for int64"):
        session.array([5, 1]) == [2**70, 1]  # noqa: B015  # raises


def test_a_float_array_does_not_compare_with_an_integer_beyond_it(session: fw.Session) -> None:
    with pytest.raises(OverflowError):
        operator.lt(session.array(A), 10**400)


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


_SHARED: list[Peer] = []


def _shared() -> fw.Session:
    """One session for properties, which cannot take fixtures."""
    if not _SHARED:
        _SHARED.append(connect())
    return _SHARED[0].session


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
