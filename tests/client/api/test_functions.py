"""The functions of the namespace, held to NumPy."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

ONE_ARRAY = """
    abs sign square round floor ceil trunc sqrt exp expm1 log log1p exp2 log2 log10 sin cos tan tanh negative
    isnan isinf isfinite logical_not
"""
TWO_ARRAYS = """
    add subtract multiply divide floor_divide remainder power minimum maximum
    equal not_equal less less_equal greater greater_equal logical_and logical_or logical_xor
"""
A = np.linspace(0.1, 2, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def same(actual: Any, expected: Any) -> None:
    """Equal in shape, dtype and value."""
    assert isinstance(actual, fw.Array)
    assert actual.shape == expected.shape
    assert actual.dtype.name == expected.dtype.name
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize(
    "function",
    [
        lambda xp, a, zero: xp.minimum(a, zero),
        lambda xp, a, zero: xp.minimum(zero, a),
        lambda xp, a, zero: xp.maximum(a, a[::-1]),
        lambda xp, a, zero: xp.maximum(zero, a),
        lambda xp, a, zero: xp.clip(a, zero, 1.0),
        lambda xp, a, zero: xp.clip(a, -1.0, zero),
        lambda xp, a, zero: xp.clip(a, zero, -zero),
        lambda xp, a, zero: xp.clip(a, zero, None),
        lambda xp, a, zero: xp.clip(a[0], zero, 1.0),
        lambda xp, a, zero: a.clip(None, zero),
        lambda xp, a, zero: np.clip(a, zero, zero),
    ],
)
def test_a_zero_has_numpys_sign(session: fw.Session, function: Any, zero: float, dtype: str) -> None:
    a = np.array([0.0, -0.0, 1.0, -1.0, -0.0, 0.0, np.nan] * 7, dtype)  # more than a vector instruction takes
    assert function(fw, session.array(a), zero).numpy().tobytes() == function(np, a, zero).tobytes()


@pytest.mark.parametrize("name", ONE_ARRAY.split())
def test_functions_of_one_array(session: fw.Session, name: str) -> None:
    same(getattr(fw, name)(session.array(A)), getattr(np, name)(A))


@pytest.mark.parametrize("name", TWO_ARRAYS.split())
def test_functions_of_two_arrays(session: fw.Session, name: str) -> None:
    same(getattr(fw, name)(session.array(A), A[0]), getattr(np, name)(A, A[0]))


@pytest.mark.parametrize(
    "function",
    [
        lambda xp, a: xp.where(a > 1, a, 0.5),
        lambda xp, a: xp.clip(a, 0.5, 1.5),
        lambda xp, a: xp.clip(a, None, 1.5),
        lambda xp, a: xp.sum(a, axis=0, keepdims=True),
        lambda xp, a: xp.mean(a, axis=(0, 1)),
        lambda xp, a: xp.var(a, axis=1, ddof=1),
        lambda xp, a: xp.argmax(a, axis=-1),
        lambda xp, a: xp.max(a) - xp.min(a, axis=1),
        lambda xp, a: xp.any(a > 1, axis=0),
        lambda xp, a: xp.matmul(a, xp.transpose(a)),
        lambda xp, a: xp.dot(a, a[0]),
        lambda xp, a: xp.outer(a[0], a[1]),
        lambda xp, a: xp.concatenate([a, a], axis=1),
        lambda xp, a: xp.concatenate([a, a], axis=None),
        lambda xp, a: xp.stack([a, a + 1], axis=1),
        lambda xp, a: xp.split(a, 2, axis=1)[1],
        lambda xp, a: xp.split(a, [1])[1],
        lambda xp, a: xp.reshape(a, (2, -1)),
        lambda xp, a: xp.squeeze(xp.expand_dims(a, (0, 3)), axis=0),
        lambda xp, a: xp.broadcast_to(a[0], (5, 4)),
        lambda xp, a: xp.swapaxes(a, 0, 1),
        lambda xp, a: xp.swapaxes(a, np.int64(0), np.int64(1)),
        lambda xp, a: xp.split(a, np.int64(2), axis=np.int64(1))[1],
        lambda xp, a: xp.expand_dims(a, np.int64(1)),
        lambda xp, a: xp.concatenate([a, a], axis=np.int64(1)),
        lambda xp, a: xp.stack([a, a], axis=np.int64(1)),
        lambda xp, a: xp.arange(np.int64(3)),
        lambda xp, a: xp.arange(np.int32(1), np.int64(7), 2),
        lambda xp, a: xp.round(a, 1),
        lambda xp, a: xp.sum(a, 0, "float64"),
        lambda xp, a: xp.prod(a, 0, "float64"),
        lambda xp, a: xp.mean(a, 0, "float64"),
        lambda xp, a: xp.flip(a, axis=1),
        lambda xp, a: xp.roll(a, 1),
        lambda xp, a: xp.roll(a, -5, axis=1),
        lambda xp, a: xp.roll(a, np.int64(4), axis=-1),
        lambda xp, a: xp.roll(a, (1, -1), axis=(0, 1)),
        lambda xp, a: xp.roll(a, 1, axis=(0, 1)),
        lambda xp, a: xp.roll(a, (2, 3), axis=1),
        lambda xp, a: xp.roll(a[:0], 2, axis=0),
        lambda xp, a: xp.take(a, np.array([0, 2]), axis=0),
        lambda xp, a: xp.zeros_like(a) + xp.ones_like(a) * xp.full_like(a, 3),
        lambda xp, a: xp.zeros((2, 3)) + xp.ones(3),
        lambda xp, a: xp.zeros((), dtype=xp.float32),
        lambda xp, a: xp.full((2,), 7),
        lambda xp, a: xp.arange(7),
        lambda xp, a: xp.arange(1, 2, 0.25),
        lambda xp, a: xp.arange(10, 0, -3),
        lambda xp, a: xp.linspace(0, 1, 5),
        lambda xp, a: xp.linspace(0, 1, 5, retstep=True)[0] + xp.linspace(0, 1, 5, retstep=True)[1],
        lambda xp, a: xp.linspace(0, 1, 4, endpoint=False, dtype=np.float32),
        lambda xp, a: xp.eye(3, k=1),
        lambda xp, a: xp.eye(3, 4, k=-2),
        lambda xp, a: xp.eye(3, k=10**12),
        lambda xp, a: xp.eye(3, k=-(10**12)),
        lambda xp, a: xp.asarray([[1, 2], [3, 4]]),
        lambda xp, a: xp.array(a) * xp.pi,
        lambda xp, a: a[xp.newaxis, :, 0],
    ],
)
def test_one_source_for_numpy_and_fusewire(session: fw.Session, function: Callable[[Any, Any], Any]) -> None:
    same(function(fw, session.array(A)), function(np, A))


def test_softmax_sums_to_one_along_its_axis(session: fw.Session) -> None:
    exponentials = np.exp(A - A.max(axis=0))
    same(fw.softmax(session.array(A), axis=0), exponentials / exponentials.sum(axis=0))


def test_log_softmax_and_logsumexp_agree(session: fw.Session) -> None:
    x = session.array(A)
    expected = A - np.log(np.exp(A).sum(axis=1, keepdims=True))
    same(x - fw.logsumexp(x, axis=1, keepdims=True), expected)
    same(fw.log_softmax(x), expected)


def test_layer_norm_scales_and_shifts(session: fw.Session) -> None:
    x, weight, bias = session.array(A), A[0], A[1]
    normal = (A - A.mean(axis=1, keepdims=True)) / np.sqrt(A.var(axis=1, keepdims=True) + np.float32(1e-5))
    same(fw.layer_norm(x, weight, bias), normal * weight + bias)


def test_what_is_no_array_is_uploaded_to_the_session_of_the_arrays(
    session: fw.Session, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fusewire._connect._connected_last", [])
    with connect().session as other:  # the default session from here on
        assert fw.zeros(1).session is other
        same(fw.take(A[0], session.array(np.array([2, 0]))), A[0, [2, 0]])
        assert fw.layer_norm(A, session.array(A[0])).session is session
        assert fw.layer_norm(A, None, session.array(A[0])).session is session


def test_one_hot_marks_the_class(session: fw.Session) -> None:
    same(fw.one_hot(session.array(np.array([2, 0])), 3), np.eye(3, dtype=np.float32)[[2, 0]])


def test_activations_have_their_usual_values(session: fw.Session) -> None:
    x = session.array(A - 1)
    same(fw.relu(x), np.maximum(A - 1, 0))
    same(fw.sigmoid(x), 1 / (1 + np.exp(1 - A)))
    same(fw.silu(x), (A - 1) / (1 + np.exp(1 - A)))
    same(fw.softplus(x), np.log1p(np.exp(A - 1)))
    same(fw.rsqrt(session.array(A)), 1 / np.sqrt(A))


def test_fetching_again_the_array_given_copies_nothing(session: fw.Session) -> None:
    x = session.array(A)
    assert fw.asarray(x) is x
    assert fw.array(x) is not x


@pytest.mark.parametrize("ndmin", [0, 1, 2, 3])
def test_an_array_has_as_many_axes_as_are_asked_for(ndmin: int) -> None:
    for data in (1.5, [1, 2], [[1.0], [2.0]]):
        same(fw.array(data, ndmin=ndmin), np.array(data, ndmin=ndmin))


@pytest.mark.parametrize("dtype", ["bool", "uint8", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize(("start", "stop"), [(0, 1), (0.1, 0.7), (1.5, 0.25), (3, 3), (0, 255)])
@pytest.mark.parametrize("num", [0, 1, 2, 9, np.int64(50)])
def test_linspace_is_numpys_to_the_last_bit(
    session: fw.Session, start: float, stop: float, num: int, endpoint: bool, dtype: str
) -> None:
    actual = fw.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)
    expected = np.linspace(start, stop, num, endpoint=endpoint, dtype=dtype)
    assert actual.dtype.name == expected.dtype.name
    np.testing.assert_array_equal(actual.numpy(), expected, strict=True)


def test_points_below_zero_become_integers_by_rounding_down(session: fw.Session) -> None:
    assert fw.linspace(-1.5, 1.5, 9, dtype="int32").tolist() == np.linspace(-1.5, 1.5, 9, dtype="int32").tolist()


def test_an_axis_of_length_0_splits_into_any_number_of_empty_parts(session: fw.Session) -> None:
    parts = fw.split(session.array(A[:, :0]), 3, axis=1)
    assert [part.shape for part in parts] == [part.shape for part in np.split(A[:, :0], 3, axis=1)]


@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64", "float16", "float32", "float64"])
@pytest.mark.parametrize(
    "given",
    [
        (0.5, 5.5, 1.5),
        (0, 2, 0.5),
        (1.9,),
        (10, 0, -3),
        (7.5, 1, -1.5),
        (0, 5, 300),
        (255, -1, -5),
        (5, 5),
        (0, 256),
        (-3, -7),
    ],
)
def test_arange_is_numpys_in_every_dtype(session: fw.Session, given: tuple[float, ...], dtype: str) -> None:
    actual = fw.arange(*given, dtype=dtype)  # type: ignore[misc]  # three numbers at most are given
    np.testing.assert_array_equal(actual.numpy(), np.arange(*given, dtype=dtype), strict=True)


def test_arange_of_integers_that_are_arrays_counts_in_integers(session: fw.Session) -> None:
    for three in (session.array(3), np.array(3, np.uint8)):
        same(fw.arange(three), np.arange(3))


def test_arange_beyond_its_dtype_overflows(session: fw.Session) -> None:
    with pytest.raises(OverflowError):
        fw.arange(300, 302, dtype="uint8")


@pytest.mark.parametrize("fill", [math.nan, math.inf, -math.inf, 3e9, -1.9, 300.5, np.float32(-1e20)])
@pytest.mark.parametrize("dtype", ["uint8", "int32", "int64"])
def test_a_float_fills_an_integer_dtype_as_astype_casts_it(session: fw.Session, fill: float, dtype: str) -> None:
    expected = session.array(float(fill)).astype(dtype).item()
    assert fw.full(2, fill, dtype).tolist() == [expected] * 2
    assert fw.full_like(np.zeros(2, dtype), fill).tolist() == [expected] * 2
    assert session.array(fill, dtype).item() == expected


def test_an_integer_that_the_dtype_does_not_hold_fills_nothing(session: fw.Session) -> None:
    for fill, dtype in ((3_000_000_000, "int32"), (-1, "uint8")):
        with pytest.raises(OverflowError):
            fw.full(2, fill, dtype)


@pytest.mark.parametrize("name", ["argmin", "argmax"])
@pytest.mark.parametrize("axis", [(0, 2), (1,), (), [0]], ids=str)
def test_the_place_of_an_extreme_is_looked_for_along_one_axis(session: fw.Session, name: str, axis: Any) -> None:
    for host in (np.ones((2, 3, 4)), np.array(1.0)):
        x = session.array(host)
        for function in (getattr(fw, name), getattr(fw.Array, name), getattr(np, name)):
            with pytest.raises(TypeError, match="one axis or None"):
                function(x, axis=axis)


@pytest.mark.parametrize("keepdims", [False, True])
@pytest.mark.parametrize("axis", [0, -1, np.int64(0)])
@pytest.mark.parametrize("name", ["sum", "prod", "min", "max", "any", "all", "argmin", "argmax"])
def test_one_number_is_reduced_along_a_first_axis_as_in_numpy(
    session: fw.Session, name: str, axis: int, keepdims: bool
) -> None:
    host = np.array(3.0)
    expected = np.asarray(getattr(np, name)(host, axis=axis, keepdims=keepdims))
    same(getattr(fw, name)(session.array(host), axis=axis, keepdims=keepdims), expected)
    same(getattr(session.array(host), name)(axis, keepdims=keepdims), expected)


@pytest.mark.parametrize(("name", "axis"), [("sum", 1), ("argmax", -2), ("max", (0,)), ("mean", 0), ("std", -1)])
def test_one_number_has_no_other_axis(session: fw.Session, name: str, axis: Any) -> None:
    with pytest.raises(fw.ShapeError, match="out of bounds for array of dimension 0"):
        getattr(fw, name)(session.array(3.0), axis=axis)


def test_var_and_std_take_a_correction_by_either_name(session: fw.Session) -> None:
    x = session.array(A)
    for actual in (x.var(correction=1), x.var(ddof=1), fw.var(x, correction=1)):
        same(actual, A.var(ddof=1))
    same(x.std(axis=1, correction=1), A.std(axis=1, ddof=1))
    with pytest.raises(fw.ArgumentError, match="two names of one number"):
        fw.std(x, correction=1, ddof=1)


@pytest.mark.parametrize(
    "function",
    [
        lambda xp, a: xp.arange(start=0, stop=5),
        lambda xp, a: xp.arange(stop=5, step=2),
        lambda xp, a: xp.arange(start=6, stop=1, step=-2, dtype="int32"),
        lambda xp, a: xp.linspace(start=0, stop=1, num=3),
        lambda xp, a: xp.split(a, indices_or_sections=2, axis=1)[0],
        lambda xp, a: xp.swapaxes(a, axis1=0, axis2=1),
        lambda xp, a: xp.take(a, indices=[0, 2], axis=1),
    ],
)
def test_parameters_have_numpys_names(session: fw.Session, function: Callable[[Any, Any], Any]) -> None:
    same(function(fw, session.array(A)), function(np, A))


@pytest.mark.parametrize("given", [(0, 1, math.inf), (0, -1, math.inf), (0, 1, -math.inf), (5, 5, math.inf)])
def test_arange_by_an_infinite_step_is_numpys(session: fw.Session, given: tuple[float, ...]) -> None:
    assert fw.arange(*given).tolist() == np.arange(*given).tolist()


@pytest.mark.parametrize(
    "given", [(0, math.inf), (math.nan,), (0, 1, math.nan), (-math.inf, 0), (0, math.inf, math.inf)]
)
def test_arange_to_an_infinite_end_has_no_length(session: fw.Session, given: tuple[float, ...]) -> None:
    with pytest.raises(fw.ArgumentError, match="has no length"):
        fw.arange(*given)


@pytest.mark.parametrize("given", [(0, math.inf, 3), (0, math.inf, 1), (math.nan, 1, 3), (-math.inf, math.inf, 4)])
def test_linspace_between_infinite_ends_is_numpys(session: fw.Session, given: tuple[float, float, int]) -> None:
    with np.errstate(invalid="ignore"):
        np.testing.assert_array_equal(fw.linspace(*given).numpy(), np.linspace(*given))


def test_pythons_round_rounds_an_array(session: fw.Session) -> None:
    assert round(session.array([1.256, 2.0]).mean(), 2).item() == 1.63


def test_a_function_without_an_array_uses_no_session_before_the_last(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fusewire._connect._connected_last", [])
    with connect().session:
        with connect().session:
            pass
        with pytest.raises(fw.SessionClosed, match="connected last, and the last one has ended: the session is closed"):
            fw.zeros(3)


def test_arange_needs_an_end(session: fw.Session) -> None:
    with pytest.raises(TypeError, match="where to stop"):
        fw.arange()


@pytest.mark.parametrize("decimals", [308, 400, -400])
def test_rounding_to_more_decimals_than_a_float_has_is_numpys(session: fw.Session, decimals: int) -> None:
    host = np.array([1.5, 0.0, -2.5])
    with np.errstate(all="ignore"):
        expected = np.round(host, decimals)
    same(fw.round(session.array(host), decimals), expected)


@pytest.mark.parametrize("dtype", ["float16", "float32", "int32"])
@pytest.mark.parametrize(("shape", "axis"), [((0,), None), ((3, 0), 1), ((0, 3), 1), ((2, 0), (0, 1))])
@pytest.mark.parametrize("keepdims", [False, True])
def test_the_logarithm_of_a_sum_of_nothing_is_minus_infinity(
    session: fw.Session, shape: tuple[int, ...], axis: Any, keepdims: bool, dtype: str
) -> None:
    host = np.zeros(shape, dtype)
    with np.errstate(divide="ignore"):
        expected = np.log(np.exp(host).sum(axis=axis, keepdims=keepdims))
    actual = fw.logsumexp(session.array(host), axis, keepdims=keepdims)
    np.testing.assert_array_equal(actual.numpy(), expected, strict=True)


@pytest.mark.parametrize("fill", [[1, 2], "1", None, 1j, np.ones(2)])
@pytest.mark.parametrize("dtype", [bool, int, float])
def test_what_is_no_number_fills_nothing(session: fw.Session, fill: Any, dtype: type) -> None:
    with pytest.raises((TypeError, ValueError)):
        fw.full(3, fill, dtype=dtype)


@pytest.mark.parametrize("fill", [np.array(2, np.int32), np.array([2], np.int32), np.int32(2)])
def test_a_fill_value_may_be_an_array_of_one(session: fw.Session, fill: Any) -> None:
    same(fw.full(3, fill), np.full(3, fill))
    same(fw.full(3, session.array(fill), dtype=bool), np.full(3, fill, dtype=bool))


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "empty_like"])
@pytest.mark.parametrize("like", [A, A.tolist(), np.float32(1)], ids=["array", "list", "scalar"])
def test_an_array_is_made_like_any_other(session: fw.Session, name: str, like: Any) -> None:
    actual = getattr(fw, name)(like)
    assert (actual.shape, actual.dtype.name) == (np.shape(like), np.asarray(like).dtype.name)
    same(fw.full_like(like, 3), np.full_like(like, 3))


def test_astype_uploads_what_is_no_array_yet(session: fw.Session) -> None:
    same(fw.astype(A, "int32"), A.astype("int32"))
    same(fw.astype([1, 2], "float32"), np.array([1, 2], "float32"))


@pytest.mark.parametrize("k", [np.int64(2), np.int32(-1), True])
def test_a_diagonal_is_named_by_any_integer(session: fw.Session, k: int) -> None:
    same(fw.eye(5, k=k), np.eye(5, k=int(k)))


def test_a_diagonal_that_is_no_integer_is_refused_at_once(session: fw.Session) -> None:
    with pytest.raises(TypeError):
        fw.eye(3, k=1.5)  # type: ignore[arg-type]


def test_dtypes_are_named_in_many_ways(session: fw.Session) -> None:
    for name in (fw.float16, "float16", np.float16, np.dtype("float16")):
        assert fw.zeros(2, dtype=name).dtype is fw.float16
    assert fw.zeros(2, dtype=int).dtype is fw.int64
    with pytest.raises(fw.DtypeError, match="'nonsense' is no dtype"):
        fw.zeros(2, dtype="nonsense")


def test_a_dtype_that_cannot_travel_is_told_from_one_that_is_none(session: fw.Session) -> None:
    with pytest.raises(fw.DtypeError, match=r"datetime64\[s\] is not supported"):
        fw.zeros(2, "datetime64[s]")


def test_stacking_nothing_speaks_of_stack(session: fw.Session) -> None:
    with pytest.raises(fw.ArgumentError, match="stack takes at least one array"):
        fw.stack([])


def test_the_dtype_of_several_is_told_beforehand(session: fw.Session) -> None:
    x = session.array(A)
    assert fw.result_type(x, fw.int32) is fw.float64
    assert fw.result_type(x, 2.0) is fw.float32
    assert fw.result_type(A, np.float64(1), "int32", np.int64) is fw.float64


@pytest.mark.parametrize(
    "wrong",
    [
        lambda x: fw.reshape(x, (5, 5)),
        lambda x: fw.reshape(x, (-1, -1)),
        lambda x: fw.squeeze(x, axis=0),
        lambda x: fw.split(x, 5),
        lambda x: fw.stack([x, x[0]]),
        lambda x: fw.sum(x, axis=2),
        lambda x: fw.sum(x, axis=(0, 0)),
        lambda x: fw.zeros((2**31,)),
        lambda x: fw.zeros((-1,)),
        lambda x: fw.transpose(x, (0, 0)),
        lambda x: fw.max(x[:0]),
        lambda x: fw.arange(0, 1, 0),
        lambda x: fw.concat([]),
    ],
)
def test_what_cannot_be_raises_a_value_error_at_once(session: fw.Session, wrong: Callable[[fw.Array], object]) -> None:
    with pytest.raises(ValueError):  # noqa: PT011  # the text differs with the case
        wrong(session.array(A))


def test_what_is_rolled_by_nothing_is_a_new_array(session: fw.Session) -> None:
    x = session.array(A)
    rolled = fw.roll(x, 0, axis=0)
    rolled[0] = 7.0
    assert x.numpy().tolist() == A.tolist()


def test_shifts_that_do_not_fit_the_axes_are_refused(session: fw.Session) -> None:
    with pytest.raises(fw.ArgumentError, match="roll by 3 shifts along 2 axes"):
        fw.roll(session.array(A), (1, 2, 3), axis=(0, 1))
