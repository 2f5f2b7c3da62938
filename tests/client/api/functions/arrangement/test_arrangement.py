"""Functions that move, join, repeat and pad, held to NumPy: one source runs on both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

A = np.arange(1, 13, dtype=np.float32).reshape(3, 4)
CUBE = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
HOSTS = {"matrix": A, "cube": CUBE, "flags": A % 3 == 0, "halves": A.astype(np.float16), "none": A[:, :0]}


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def same(actual: Any, expected: Any) -> None:
    if isinstance(expected, tuple | list):
        assert len(actual) == len(expected)
        for ours, theirs in zip(actual, expected, strict=True):
            same(ours, theirs)
        return
    assert isinstance(actual, fw.Array)
    assert actual.dtype.name == expected.dtype.name
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-6, strict=True)


ARRANGEMENTS: dict[str, Callable[[Any, Any], Any]] = {
    "moveaxis": lambda xp, a: xp.moveaxis(a, 0, -1),
    "moveaxis several": lambda xp, a: xp.moveaxis(a, (0, 1), (1, 0)),
    "tile": lambda xp, a: xp.tile(a, 3),
    "tile once": lambda xp, a: xp.tile(a, 1),
    "tile axes": lambda xp, a: xp.tile(a, (2, 1, 2, 3)),
    "tile no time": lambda xp, a: xp.tile(a, (2, 0)),
    "repeat flat": lambda xp, a: xp.repeat(a, 2),
    "repeat": lambda xp, a: xp.repeat(a, 3, axis=1),
    "repeat no time": lambda xp, a: xp.repeat(a, 0, axis=0),
    "repeat counts": lambda xp, a: xp.repeat(a, [*range(a.shape[0])], axis=0),
    "unstack": lambda xp, a: xp.unstack(a, axis=1) if hasattr(xp, "unstack") else tuple(np.moveaxis(a, 1, 0)),
    "broadcast_arrays": lambda xp, a: xp.broadcast_arrays(a, a[:1], a[0, :1]),
    "tril": lambda xp, a: xp.tril(a),
    "tril k": lambda xp, a: xp.tril(a, k=1),
    "triu": lambda xp, a: xp.triu(a, -1),
    "triu far": lambda xp, a: xp.triu(a, 9),
    "diagonal": lambda xp, a: xp.diagonal(a),
    "diagonal above": lambda xp, a: xp.diagonal(a, 1),
    "diagonal below": lambda xp, a: xp.diagonal(a, -2, 1, 0),
    "diagonal outside": lambda xp, a: xp.diagonal(a, 7),
    "trace": lambda xp, a: xp.trace(a),
    "trace offset": lambda xp, a: xp.trace(a, 1, dtype="float64"),
    "rot90": lambda xp, a: xp.rot90(a),
    "rot90 twice": lambda xp, a: xp.rot90(a, 2),
    "rot90 back": lambda xp, a: xp.rot90(a, -1, axes=(1, 0)),
    "rot90 k=3": lambda xp, a: xp.rot90(a, 3, axes=(-1, 0)),
    "rot90 not at all": lambda xp, a: xp.rot90(a, 4),
    "fliplr": lambda xp, a: xp.fliplr(a),
    "flipud": lambda xp, a: xp.flipud(a),
    "roll": lambda xp, a: xp.roll(a, 1, axis=0),
    "hstack": lambda xp, a: xp.hstack([a, a]),
    "hstack vectors": lambda xp, a: xp.hstack([a[0].ravel(), a[0].ravel()]),
    "vstack": lambda xp, a: xp.vstack([a, a]),
    "vstack vectors": lambda xp, a: xp.vstack([a.ravel(), a.ravel()]),
    "dstack": lambda xp, a: xp.dstack([a, a]),
    "column_stack": lambda xp, a: xp.column_stack([a.ravel(), a.ravel()]),
    "column_stack matrices": lambda xp, a: xp.column_stack([a, a]),
    "atleast_1d": lambda xp, a: xp.atleast_1d(a, a.sum()),
    "atleast_2d": lambda xp, a: xp.atleast_2d(a.ravel(), a.sum(), a),
    "atleast_3d": lambda xp, a: xp.atleast_3d(a.ravel(), a.sum(), a),
    "atleast_3d one": lambda xp, a: xp.atleast_3d(a),
    "count_nonzero": lambda xp, a: np.asarray(xp.count_nonzero(a)) if xp is np else xp.count_nonzero(a),
    "count_nonzero axis": lambda xp, a: xp.count_nonzero(a, axis=0, keepdims=True),
    "diff": lambda xp, a: xp.diff(a),
    "diff twice": lambda xp, a: xp.diff(a, 2, axis=0),
    "diff no time": lambda xp, a: xp.diff(a, n=0),
    "diff with ends": lambda xp, a: xp.diff(a, axis=0, prepend=a[:1], append=a[-1:]),
    "append": lambda xp, a: xp.append(a, a),
    "append axis": lambda xp, a: xp.append(a, a[:1], axis=0),
    "array_split": lambda xp, a: xp.array_split(a, 2),
    "array_split more": lambda xp, a: xp.array_split(a, 5, axis=1),
    "array_split places": lambda xp, a: xp.array_split(a, [1, 2]),
    "hsplit": lambda xp, a: xp.hsplit(a, [1]),
    "hsplit vector": lambda xp, a: xp.hsplit(a.ravel(), [1]),
    "vsplit": lambda xp, a: xp.vsplit(a, 1),
    "dsplit": lambda xp, a: xp.dsplit(a[..., None], 1),
    "ediff1d": lambda xp, a: xp.ediff1d(a + 0),
    "pad": lambda xp, a: xp.pad(a, 1),
    "pad numbers": lambda xp, a: xp.pad(a, (1, 2), constant_values=(3, 4)),
    "pad nothing": lambda xp, a: xp.pad(a, 0),
}


@pytest.mark.parametrize("host", HOSTS)
@pytest.mark.parametrize("name", ARRANGEMENTS)
def test_an_arrangement_is_numpys(session: fw.Session, name: str, host: str) -> None:
    function = ARRANGEMENTS[name]
    same(function(fw, session.array(HOSTS[host])), function(np, HOSTS[host]))


@pytest.mark.parametrize("axis", [0, 1, -1, None])
@pytest.mark.parametrize("dtype", ["int64", "uint8", "int32"])
def test_elements_are_taken_along_an_axis_as_in_numpy(session: fw.Session, axis: Any, dtype: str) -> None:
    at = np.array([[0, 2, 1, 0], [1, 0, 2, 2]], dtype)
    at = {0: at, None: at.ravel()}.get(axis, np.array([[3], [0], [1]], dtype))
    same(fw.take_along_axis(session.array(A), at, axis=axis), np.take_along_axis(A, at.astype(np.int64), axis=axis))
    if axis == 0 and dtype != "uint8":
        same(fw.take_along_axis(session.array(A), at - 1, axis=0), np.take_along_axis(A, at - 1, axis=0))
        beyond = session.array(at + 9)
        same(fw.take_along_axis(session.array(A), beyond, axis=0), np.take_along_axis(A, at * 0 + 2, axis=0))
        same(
            fw.take_along_axis(session.array(CUBE), at[None] - 1, axis=1),
            np.take_along_axis(CUBE, at[None] - 1, axis=1),
        )


METHODS: dict[str, Callable[[Any], Any]] = {
    "swapaxes": lambda a: a.swapaxes(0, 1),
    "repeat": lambda a: a.repeat(2, axis=0),
    "diagonal": lambda a: a.diagonal(1),
    "trace": lambda a: a.trace(dtype="float64"),
    "conj": lambda a: a.conj(),
    "conjugate": lambda a: a.conjugate(),
    "real": lambda a: a.real,
    "imag": lambda a: a.imag,
}


@pytest.mark.parametrize("name", METHODS)
def test_a_method_is_numpys(session: fw.Session, name: str) -> None:
    for host in (A, CUBE):
        same(METHODS[name](session.array(host)), METHODS[name](host))
        assert session.array(host).tobytes() == host.tobytes()


@pytest.mark.parametrize("mode", ["edge", "reflect", "symmetric", "wrap"])
@pytest.mark.parametrize("widths", [0, 1, (2, 3), ((1, 0), (0, 2)), ((0, 0), (7, 11))])
def test_padding_by_elements_is_numpys(session: fw.Session, mode: Any, widths: Any) -> None:
    for host in (A, A[:1, :1]):
        same(fw.pad(session.array(host), widths, mode), np.pad(host, widths, mode))


@pytest.mark.parametrize("k", [0, 1, -2, 9])
@pytest.mark.parametrize("shape", [(3,), (2, 4)])
@pytest.mark.parametrize("dtype", [None, "int8", "bool"])
def test_matrices_of_ones_are_numpys(session: fw.Session, shape: Any, k: int, dtype: Any) -> None:
    options: Any = {"k": k, "dtype": float if dtype is None else dtype}
    same(fw.tri(shape[0], shape[-1], k=k, dtype=dtype), np.tri(shape[0], shape[-1], **options))
    same(fw.identity(shape[0], dtype), np.identity(shape[0], dtype))


@pytest.mark.parametrize("k", [0, 1, -2])
def test_a_vector_becomes_a_diagonal(session: fw.Session, k: int) -> None:
    for host in (A[0], np.array([np.inf, np.nan, 0], np.float16), np.array([True, False])):
        same(fw.diag(session.array(host), k), np.diag(host, k))
    same(fw.diag(session.array(A), k), np.diag(A, k))


@pytest.mark.parametrize("end", [0, 5.0])
def test_a_scalar_comes_before_and_behind_differences(session: fw.Session, end: float) -> None:
    for host in (A, CUBE):
        same(fw.diff(session.array(host), prepend=end, append=end), np.diff(host, prepend=end, append=end))


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("count", [1, 2, 3])
def test_a_grid_is_numpys(session: fw.Session, indexing: Any, count: int) -> None:
    hosts = [np.arange(size, dtype=np.int32) for size in (2, 3, 4)[:count]]
    same(fw.meshgrid(*map(session.array, hosts), indexing=indexing), np.meshgrid(*hosts, indexing=indexing))


@pytest.mark.parametrize("endpoint", [True, False])
@pytest.mark.parametrize("dtype", [None, "float32"])
@pytest.mark.parametrize("num", [0, 1, 7])
def test_points_spaced_by_their_logarithms_are_numpys(
    session: fw.Session, num: int, dtype: Any, endpoint: bool
) -> None:
    options: Any = {"num": num, "endpoint": endpoint, "dtype": dtype}
    same(fw.logspace(-2, 3, **options), np.logspace(-2, 3, **options))
    same(fw.logspace(0, 3, base=2, **options), np.logspace(0, 3, base=2, **options))
    same(fw.geomspace(1e-3, 8, **options), np.geomspace(1e-3, 8, **options))
    same(fw.geomspace(-5, -40, **options), np.geomspace(-5, -40, **options))


REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda x: fw.moveaxis(x, 2, 0), np.exceptions.AxisError, "source: axis 2 is out of bounds"),
    (lambda x: fw.moveaxis(x, 0, -3), np.exceptions.AxisError, "destination: axis -3 is out of bounds"),
    (lambda x: fw.moveaxis(x, (0, 0), (0, 1)), ValueError, "twice"),
    (lambda x: fw.moveaxis(x, 0, (0, 1)), ValueError, "moves 1 axes to 2"),
    (lambda x: fw.unstack(x, axis=5), IndexError, "axis 5"),
    (lambda x: fw.repeat(x, -1), ValueError, "dim -1"),
    (lambda x: fw.repeat(x, [1, 2], axis=0), ValueError, "2 repeats do not fit axis 0"),
    (lambda x: fw.tril(x[0]), ValueError, "rank 2 or more"),
    (lambda x: fw.trace(x[0]), ValueError, "rank 2 or more"),
    (lambda x: fw.diagonal(x, 0, 1, 1), ValueError, "twice"),
    (lambda x: fw.diag(x[None]), ValueError, "a matrix or a vector"),
    (lambda x: fw.rot90(x, axes=(0, 0)), ValueError, "two different axes"),
    (lambda x: fw.fliplr(x[0]), IndexError, "axis 1"),
    (lambda x: fw.broadcast_arrays(x, x[:, :3]), ValueError, "cannot be broadcast"),
    (lambda x: fw.pad(x, 1, "mean"), ValueError, "no mode 'mean'"),
    (lambda x: fw.pad(x, -1), ValueError, "0 or more"),
    (lambda x: fw.pad(x, (1, 2, 3)), ValueError, "no pair for each of 2 axes"),
    (lambda x: fw.pad(x[:0], 1, "edge"), ValueError, "no elements"),
    (lambda x: fw.diff(x, -1), ValueError, "order -1"),
    (lambda x: fw.diff(x[0, 0]), IndexError, "dimension 0"),
    (fw.meshgrid, ValueError, "takes vectors"),
    (lambda x: fw.meshgrid(x[0], indexing="ji"), ValueError, "no indexing"),
    (lambda x: fw.geomspace(0, 1), ValueError, "not 0"),
    (lambda x: fw.geomspace(-1, 1), ValueError, "of one sign"),
    (lambda x: fw.take_along_axis(x, [0]), ValueError, "rank 2, not 1"),
    (lambda x: fw.take_along_axis(x, x), IndexError, "dtype float32"),
    (lambda x: fw.array_split(x, 0), ValueError, "into 0 parts"),
    (lambda x: fw.vsplit(x[0], 1), ValueError, "rank 2 or more, not 1"),
    (lambda x: fw.dsplit(x, 1), ValueError, "rank 3 or more, not 2"),
    (lambda x: fw.hstack([]), ValueError, "at least one"),
    (lambda x: fw.tile(x, (1,) * 17), ValueError, "rank 17 exceeds the limit of 16"),
]


@pytest.mark.parametrize(("function", "error", "text"), REFUSED)
def test_what_does_not_fit_is_refused_at_its_line(
    session: fw.Session, function: Callable[[Any], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        function(session.array(A))


def test_what_numpy_broadcasts_beside_an_array_stays_on_this_machine(session: fw.Session) -> None:
    given: Any = (session.array([[1.0, 2.0]]), None, np.ones((3, 1)))  # as matplotlib has them
    x, nothing, y = found = np.broadcast_arrays(*given)
    assert isinstance(found, tuple)
    assert isinstance(x, fw.Array)
    assert x.shape == (3, 2)
    np.testing.assert_array_equal(nothing, np.full((3, 2), None))
    np.testing.assert_array_equal(y, np.ones((3, 2)))
