"""Functions that write to elements, or count what falls to a place, held to NumPy."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire_protos.frames import Fetch
from tests.client.peer import connect

NUMBERS = np.random.default_rng(0).integers(0, 9, 50)
WEIGHTS = np.random.default_rng(1).random(50)
MATRIX = np.random.default_rng(2).standard_normal((3, 5))


@pytest.fixture(scope="module")
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def same(ours: fw.Array, numpys: Any) -> None:
    np.testing.assert_array_equal(ours.numpy(), numpys, strict=True)


def test_add_at_adds_in_place_as_often_as_an_element_is_named(session: fw.Session) -> None:
    x, expected = session.array(np.zeros(4)), np.zeros(4)
    fw.add_at(x, [1, 1, 3], [1.0, 2.0, 3.0])
    np.add.at(expected, [1, 1, 3], [1.0, 2.0, 3.0])
    same(x, expected)


@pytest.mark.parametrize("ufunc", [np.add, np.subtract, np.multiply, np.minimum, np.maximum])
def test_at_of_a_ufunc_writes_to_an_array_on_a_server(session: fw.Session, ufunc: np.ufunc) -> None:
    x: Any = session.array([1.0, 2.0, 3.0])
    expected = np.array([1.0, 2.0, 3.0])
    for array in (x, expected):
        ufunc.at(array, [0, 0, 2], 2.0)
    same(x, expected)


@pytest.mark.parametrize("is_on_server", [False, True])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_put_along_axis_writes_where_take_along_axis_reads(session: fw.Session, axis: int, is_on_server: bool) -> None:
    order = np.argsort(MATRIX, axis=axis)
    indices = order[:2] if axis == 0 else order[:, :2]
    x, expected = session.array(MATRIX), MATRIX.copy()
    fw.put_along_axis(x, session.array(indices) if is_on_server else indices, 9.0, axis=axis)
    np.put_along_axis(expected, indices, 9.0, axis=axis)
    same(x, expected)


def test_put_along_no_axis_sees_the_array_flat(session: fw.Session) -> None:
    x, expected = session.array(MATRIX), MATRIX.copy()
    fw.put_along_axis(x, [1, 12, 1], [5.0, 6.0, 7.0], axis=None)
    np.put_along_axis(expected, np.array([1, 12, 1]), [5.0, 6.0, 7.0], axis=None)
    same(x, expected)


def test_put_along_axis_refuses_another_rank(session: fw.Session) -> None:
    with pytest.raises(fw.ShapeError, match="indices of rank 2, not 1"):
        fw.put_along_axis(session.array(MATRIX), [1], 0.0, axis=0)


@pytest.mark.parametrize("minlength", [0, 5, 20])
@pytest.mark.parametrize("weights", [None, WEIGHTS])
def test_bincount_counts_or_sums_weights(session: fw.Session, weights: Any, minlength: int) -> None:
    counted = fw.bincount(session.array(NUMBERS), weights, minlength)
    expected = np.bincount(NUMBERS, weights, minlength)
    assert counted.dtype == expected.dtype
    np.testing.assert_allclose(counted.numpy(), expected, rtol=1e-14)


def test_bincount_waits_once() -> None:
    peer = connect()
    with peer.session as opened:
        fw.bincount(opened.array(NUMBERS))
        assert sum(isinstance(entry, Fetch) for entry in peer.server.entries) == 1


def test_bincount_of_nothing_has_the_least_length(session: fw.Session) -> None:
    same(fw.bincount(session.array([], dtype="int64"), minlength=3), np.bincount([], minlength=3))


@pytest.mark.parametrize(
    ("x", "options", "error"),
    [
        ([-1, 2], {}, fw.ArgumentError),
        ([0.5], {}, fw.DtypeError),
        ([[1]], {}, fw.ShapeError),
        ([1], {"minlength": -1}, fw.ArgumentError),
        ([1, 2], {"weights": [1.0]}, fw.ShapeError),
    ],
)
def test_bincount_refuses_what_numpy_refuses(
    session: fw.Session, x: Any, options: dict[str, Any], error: type[Exception]
) -> None:
    with pytest.raises((ValueError, TypeError)):
        np.bincount(np.asarray(x), **options)
    with pytest.raises(error):
        fw.bincount(session.array(x), **options)


@pytest.mark.parametrize("right", [False, True])
@pytest.mark.parametrize("bins", [[0, 2, 5], [5, 2, 0], [3], [2, 2, 2]])
def test_digitize_finds_the_bin(session: fw.Session, bins: list[int], right: bool) -> None:
    same(fw.digitize(session.array(NUMBERS), bins, right=right), np.digitize(NUMBERS, bins, right=right))


@pytest.mark.parametrize("options", [{}, {"density": True}, {"weights": WEIGHTS}])
@pytest.mark.parametrize("where", [{}, {"bins": 5}, {"bins": 4, "range": (1, 7)}, {"bins": [0.0, 2.0, 5.0]}])
@pytest.mark.parametrize("x", [NUMBERS, np.random.default_rng(3).standard_normal(50), np.ones(50)])
def test_histograms_are_those_of_numpy(session: fw.Session, x: Any, where: Any, options: Any) -> None:
    counts, edges = fw.histogram(session.array(x), **where, **options)
    expected, numpys_edges = np.histogram(x, **where, **options)
    assert counts.dtype == expected.dtype
    np.testing.assert_allclose(edges.numpy(), numpys_edges, rtol=1e-15, atol=1e-15)
    np.testing.assert_allclose(counts.numpy(), expected, rtol=1e-12)


@pytest.mark.parametrize("x", [MATRIX, NUMBERS])
def test_bins_may_have_a_name(session: fw.Session, x: Any) -> None:
    for ours, numpys in zip(fw.histogram(session.array(x), "auto"), np.histogram(x, "auto"), strict=True):
        same(ours, numpys)


def test_edges_of_named_bins_are_float64_as_others_are(session: fw.Session) -> None:
    single = MATRIX.astype(np.float32)
    counts, edges = fw.histogram(session.array(single), "auto")
    expected, numpys = np.histogram(single.astype(np.float64), "auto")
    same(edges, numpys)
    same(counts, expected)


def test_a_histogram_of_nothing_is_empty(session: fw.Session) -> None:
    counts, edges = fw.histogram(session.array(np.zeros(0)), 3)
    same(counts, np.zeros(3, np.int64))
    same(edges, np.histogram([], 3)[1])


@pytest.mark.parametrize(
    "options",
    [
        {"bins": 0},
        {"bins": [1.0]},
        {"range": (2, 1)},
        {"range": (0, np.inf)},
        {"bins": "unknown"},
        {"bins": "auto", "range": (2, 1)},
        {"bins": "auto", "weights": np.ones_like(MATRIX)},
    ],
)
def test_a_histogram_needs_bins(session: fw.Session, options: dict[str, Any]) -> None:
    with pytest.raises(fw.ArgumentError):
        fw.histogram(session.array(MATRIX), **options)


WRITES: dict[str, Callable[[Any, Any], None]] = {
    "copyto": lambda xp, x: xp.copyto(x, [9, 8, 7, 6, 5]),
    "copyto where": lambda xp, x: xp.copyto(x, 4, where=[[True], [False], [True]]),
    "copyto of small integers": lambda xp, x: xp.copyto(x, np.arange(5, dtype=np.int8)),
    "fill_diagonal": lambda xp, x: xp.fill_diagonal(x, 4),
    "fill_diagonal of the transposed": lambda xp, x: xp.fill_diagonal(x[:, :2], 4),
    "fill_diagonal by a vector": lambda xp, x: xp.fill_diagonal(x, [4, 5]),
    "place": lambda xp, x: xp.place(x, MATRIX > 0, [1, 2, 3]),
    "place of few": lambda xp, x: xp.place(x, MATRIX > 1.5, np.arange(50, dtype=np.int8)),
    "place nowhere": lambda xp, x: xp.place(x, MATRIX > 99, [1]),
    "put": lambda xp, x: xp.put(x, [0, -1, 7], [1, 2]),
    "put one": lambda xp, x: xp.put(x, 3, 9),
    "put wrapped": lambda xp, x: xp.put(x, [-16, 31], [1, 2], mode="wrap"),
    "put clipped": lambda xp, x: xp.put(x, [-16, 31], [1, 2], mode="clip"),
    "put a matrix": lambda xp, x: xp.put(x, [[1, 2], [3, 4]], [5, 6, 7, 8]),
    "putmask": lambda xp, x: xp.putmask(x, MATRIX > 0, (MATRIX * 10).astype(np.int8)),
    "putmask repeated": lambda xp, x: xp.putmask(x, MATRIX > 0, [1, 2]),
    "putmask of a number": lambda xp, x: xp.putmask(x, MATRIX > 0, 7),
}


@pytest.mark.parametrize("dtype", ["float64", "int32"])
@pytest.mark.parametrize("name", WRITES)
def test_a_function_that_writes_leaves_what_numpys_leaves(session: fw.Session, name: str, dtype: str) -> None:
    host = (MATRIX * 10).astype(dtype)
    for xp in (fw, np):
        x, expected = session.array(host), host.copy()
        WRITES[name](xp, x)
        WRITES[name](np, expected)
        if "transposed" not in name:  # a slice of ours is a value
            same(x, expected)


@pytest.mark.parametrize("shape", [(7, 3), (3, 7), (4, 4), (3, 3, 3), (1, 1), (0, 3), (3, 0)])
@pytest.mark.parametrize("wrap", [False, True])
def test_diagonals_of_all_shapes_are_filled(session: fw.Session, shape: tuple[int, ...], wrap: bool) -> None:
    host = np.zeros(shape)
    x = session.array(host)
    for xp, array in ((np, host), (np, x)):
        xp.fill_diagonal(array, 1.0, wrap)
    same(x, host)


WRONG_WRITES: dict[str, tuple[type[Exception], Callable[[Any, Any], None]]] = {
    "an unsafe cast": (TypeError, lambda xp, x: xp.copyto(x.astype("int32"), 1.5 * MATRIX)),
    "values that do not fit": (ValueError, lambda xp, x: xp.copyto(x, [1.0, 2.0])),
    "an index too far": (IndexError, lambda xp, x: xp.put(x, [15], 1.0)),
    "a vector's diagonal": (ValueError, lambda xp, x: xp.fill_diagonal(x[0], 1.0)),
    "a diagonal of unequal axes": (ValueError, lambda xp, x: xp.fill_diagonal(x.reshape(1, 3, 5), 1.0)),
    "no values": (ValueError, lambda xp, x: xp.place(x, MATRIX > 0, [])),
}


@pytest.mark.parametrize("name", WRONG_WRITES)
def test_a_function_that_writes_refuses_what_numpys_refuses(session: fw.Session, name: str) -> None:
    kind, write = WRONG_WRITES[name]
    for array in (MATRIX.copy(), session.array(MATRIX)):
        with pytest.raises(kind):
            write(np, array)


@pytest.mark.parametrize("name", ["copyto", "fill_diagonal", "place", "put", "putmask"])
def test_what_is_written_to_is_an_array_on_the_server(session: fw.Session, name: str) -> None:
    others = (1.0,) if name in ("copyto", "fill_diagonal") else (session.array([True]), 1.0)
    with pytest.raises(TypeError, match=f"{name} writes to an array on the server, not to ndarray"):
        getattr(fw, name)(np.zeros((2, 2)), *others)


POINTS = np.random.default_rng(4).normal(size=(2, 50))


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"bins": 4},
        {"bins": (3, 5)},
        {"bins": [[-1.0, 0.0, 2.0], 4]},
        {"bins": [-1.0, 0.0, 1.0, 2.0]},
        {"bins": 4, "range": [[-1, 1], [0, 2]]},
        {"bins": 3, "density": True},
        {"bins": 3, "weights": POINTS[0], "density": True},
    ],
)
def test_histograms_of_points_are_those_of_numpy(session: fw.Session, options: dict[str, Any]) -> None:
    found = fw.histogram2d(session.array(POINTS[0]), session.array(POINTS[1]), **options)
    for ours, numpys in zip(found, np.histogram2d(*POINTS, **options), strict=True):
        np.testing.assert_allclose(ours.numpy(), numpys, rtol=1e-12, strict=True)


def test_a_histogram_of_points_needs_as_many_of_both_coordinates(session: fw.Session) -> None:
    with pytest.raises(ValueError, match=r"vectors of one length, not \[\(50,\), \(49,\)\]"):
        fw.histogram2d(session.array(POINTS[0]), POINTS[1, 1:])


@pytest.mark.parametrize("bins", ["auto", "fd", (3, "auto")])
def test_a_histogram_of_points_takes_no_name_for_bins(session: fw.Session, bins: Any) -> None:
    with pytest.raises(fw.ArgumentError, match="only histogram takes a name"):
        fw.histogram2d(session.array(POINTS[0]), session.array(POINTS[1]), bins)
