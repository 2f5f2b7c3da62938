"""Products and statistics, held to NumPy: one source runs on both."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

rng = np.random.default_rng(7)
A, B = rng.normal(size=(3, 4)).astype(np.float32), rng.normal(size=(4, 3)).astype(np.float32)
CUBE = rng.normal(size=(2, 3, 4))
WHOLE = rng.integers(-5, 6, (3, 4), np.int32)


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def same(actual: Any, expected: Any) -> None:
    expected = np.asarray(expected)
    assert isinstance(actual, fw.Array)
    assert actual.dtype.name == expected.dtype.name
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5, atol=1e-6, strict=True)


PRODUCTS: dict[str, Callable[..., Any]] = {
    "dot of an image and a vector": lambda xp, a, b, c, w: xp.dot(c, b[:, 0]),
    "dot of an image and a matrix": lambda xp, a, b, c, w: xp.dot(c, b),
    "dot of a matrix and an image": lambda xp, a, b, c, w: xp.dot(xp.swapaxes(b, 0, 1), xp.swapaxes(c, 1, 2)),
    "dot of a vector and an image": lambda xp, a, b, c, w: xp.dot(b[:, 0], xp.swapaxes(c, 1, 2)),
    "tensordot": lambda xp, a, b, c, w: xp.tensordot(c, a),
    "tensordot none": lambda xp, a, b, c, w: xp.tensordot(a, b, axes=0),
    "tensordot one": lambda xp, a, b, c, w: xp.tensordot(a, b, 1),
    "tensordot axes": lambda xp, a, b, c, w: xp.tensordot(c, b, axes=([2, 1], [0, 1])),
    "tensordot axis": lambda xp, a, b, c, w: xp.tensordot(c, b, axes=(1, -1)),
    "tensordot whole": lambda xp, a, b, c, w: xp.tensordot(w, w),
    "vecdot": lambda xp, a, b, c, w: xp.vecdot(c, a) if hasattr(xp, "vecdot") else (c * a).sum(-1),
    "inner": lambda xp, a, b, c, w: xp.inner(c, a),
    "inner vectors": lambda xp, a, b, c, w: xp.inner(a[0], a[1]),
    "inner scalar": lambda xp, a, b, c, w: xp.inner(a, 2.0),
    "outer": lambda xp, a, b, c, w: xp.outer(a, b),
    "kron": lambda xp, a, b, c, w: xp.kron(a, b),
    "kron ranks": lambda xp, a, b, c, w: xp.kron(c, a[0]),
    "kron scalar": lambda xp, a, b, c, w: xp.kron(w, w[0, 0]),
    "cross": lambda xp, a, b, c, w: xp.cross(b, b[::-1]),
    "cross axis": lambda xp, a, b, c, w: xp.cross(a, w, axis=0),
    "cross broadcast": lambda xp, a, b, c, w: xp.cross(b, b[0]),
    "vdot": lambda xp, a, b, c, w: xp.vdot(a, b),
    "vdot whole": lambda xp, a, b, c, w: xp.vdot(w, w),
    "trapezoid": lambda xp, a, b, c, w: xp.trapezoid(a),
    "trapezoid dx": lambda xp, a, b, c, w: xp.trapezoid(c, dx=0.5, axis=1),
    "trapezoid points": lambda xp, a, b, c, w: xp.trapezoid(c, x=b[:, 0]),
    "trapezoid points of each": lambda xp, a, b, c, w: xp.trapezoid(a, x=w, axis=0),
    "count_nonzero": lambda xp, a, b, c, w: xp.count_nonzero(w, axis=1),
    "ptp": lambda xp, a, b, c, w: xp.ptp(a),
    "ptp axis": lambda xp, a, b, c, w: xp.ptp(w, axis=0, keepdims=True),
    "average": lambda xp, a, b, c, w: xp.average(a, axis=0),
    "average whole": lambda xp, a, b, c, w: xp.average(w),
    "average weights": lambda xp, a, b, c, w: xp.average(a, axis=1, weights=b[:, 0]),
    "average all": lambda xp, a, b, c, w: xp.average(w, weights=xp.abs(w)),
    "average keepdims": lambda xp, a, b, c, w: xp.average(c, axis=-2, weights=a[:, 0], keepdims=True),
    "cov": lambda xp, a, b, c, w: xp.cov(a),
    "cov vector": lambda xp, a, b, c, w: xp.cov(w[0]),
    "cov two": lambda xp, a, b, c, w: xp.cov(a, w),
    "cov columns": lambda xp, a, b, c, w: xp.cov(a, rowvar=False, bias=True),
    "cov ddof": lambda xp, a, b, c, w: xp.cov(a, ddof=2),
    "cov dtype": lambda xp, a, b, c, w: xp.cov(a, dtype="float32"),
    "corrcoef": lambda xp, a, b, c, w: xp.corrcoef(a),
    "corrcoef vector": lambda xp, a, b, c, w: xp.corrcoef(a[0]),
    "corrcoef two": lambda xp, a, b, c, w: xp.corrcoef(a[0], a[1]),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_a_product_or_statistic_is_numpys(session: fw.Session, name: str) -> None:
    hosts = A, B, CUBE, WHOLE
    same(PRODUCTS[name](fw, *map(session.array, hosts)), PRODUCTS[name](np, *hosts))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_statistics_of_halves_are_rounded_once(session: fw.Session, dtype: str) -> None:
    host, weights = (np.abs(rng.normal(size=(50, 40))).astype(dtype) for _ in range(2))
    x, w = session.array(host), session.array(weights)
    wide, wide_weights = host.astype(np.float64), weights.astype(np.float64)
    for actual, expected in (
        (fw.average(x, axis=0, weights=w), np.average(wide, axis=0, weights=wide_weights)),
        (fw.trapezoid(x), np.trapezoid(wide)),
        (fw.trapezoid(x, w, axis=0), np.trapezoid(wide, wide_weights, axis=0)),
        (fw.nanmean(x, axis=0), wide.mean(0)),
        (fw.nanvar(x, axis=0), wide.var(0)),
    ):
        assert actual.dtype == dtype
        np.testing.assert_allclose(actual.numpy().astype(float), expected, rtol=6e-4 if dtype == "float16" else 1e-4)


def test_products_of_matrices_and_vectors_are_matmuls(session: fw.Session) -> None:
    same(fw.matvec(session.array(CUBE), A[0]), CUBE @ A[0])
    same(fw.vecmat(session.array(A[0]), B), A[0] @ B)
    same(fw.matvec(session.array(CUBE), CUBE[:, 0]), np.einsum("bij,bj->bi", CUBE, CUBE[:, 0]))
    same(fw.vecmat(session.array(CUBE[:, :, 0]), CUBE), np.einsum("bi,bij->bj", CUBE[:, :, 0], CUBE))


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("sizes", [(7, 3), (3, 7), (4, 4), (6, 2), (2, 6), (1, 1), (5, 4)])
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_convolutions_and_correlations_are_numpys(session: fw.Session, dtype: str, sizes: Any, mode: Any) -> None:
    a, b = (rng.integers(-9, 10, size).astype(dtype) for size in sizes)
    same(fw.convolve(session.array(a), b, mode), np.convolve(a, b, mode))
    same(fw.correlate(session.array(a), b, mode), np.correlate(a, b, mode))


def test_an_infinity_of_the_shorter_vector_reaches_only_what_it_overlaps(session: fw.Session) -> None:
    a, b = np.array([1.0, 2.0, 3.0, 4.0]), np.array([2.0, np.inf])
    same(fw.convolve(session.array(a), b), np.convolve(a, b))


EINSUMS: list[tuple[str, tuple[Any, ...]]] = [
    ("ij,jk->ik", (A, B)),
    ("ij,jk", (A, B)),
    ("ij,jk->ki", (A, B)),
    ("ij->ji", (A,)),
    ("ba", (A,)),
    ("ij->", (A,)),
    ("ij->j", (WHOLE,)),
    ("ii", (A[:, :3],)),
    ("ii->i", (WHOLE[:, :3],)),
    ("iij->ij", (np.arange(18.0).reshape(3, 3, 2),)),
    ("i,i", (A[0], A[1])),
    ("i,j->ij", (A[0], B[0])),
    ("bij,bjk->bik", (CUBE, np.swapaxes(CUBE, 1, 2).copy())),
    ("bij,kj->bk", (CUBE, A)),
    ("ij,ij->ij", (WHOLE, WHOLE)),
    ("ij,i->i", (WHOLE, WHOLE[:, 0])),
    ("ij,jk,kl->il", (A, B, A)),
    ("ij,jk,kl", (A, B, A)),
    ("i,j,k->kij", (A[0], B[0], A[1])),
    ("ab,bc,cd,da->", (A, B, A, B)),
    ("...ij,...jk->...ik", (CUBE, B)),
    ("...i->...", (CUBE,)),
    ("i...,i...->...", (A, WHOLE)),
    ("...,...", (A, 2.0)),
    ("ij,ij", (A, A[:1])),
    (" i j , j -> i ", (A, A[0])),
]


@pytest.mark.parametrize(("subscripts", "operands"), EINSUMS)
def test_sums_of_products_are_numpys(session: fw.Session, subscripts: str, operands: tuple[Any, ...]) -> None:
    same(fw.einsum(subscripts, *map(session.array, operands)), np.einsum(subscripts, *operands))


REFUSED: list[tuple[Callable[[Any], Any], type[Exception], str]] = [
    (lambda x: fw.tensordot(x, x, axes=1), ValueError, "differ in length"),
    (lambda x: fw.tensordot(x, x, axes=3), ValueError, "over 3 axes"),
    (lambda x: fw.tensordot(x, x, axes=((0, 1), (0,))), ValueError, "2 axes of one array and 1"),
    (lambda x: fw.tensordot(x, x, axes=((2,), (0,))), IndexError, "axis 2"),
    (lambda x: fw.vecdot(x, x[:, :2]), ValueError, "4 elements and 2"),
    (lambda x: fw.vecdot(x, x, axis=2), IndexError, "axis 2"),
    (lambda x: fw.cross(x, x), ValueError, "3 elements, not 4 and 4"),
    (lambda x: fw.convolve(x, x), ValueError, "two vectors"),
    (lambda x: fw.convolve(x[0], x[0, :0]), ValueError, "with elements"),
    (lambda x: fw.convolve(x[0], x[0], "valed"), ValueError, "no mode 'valed'"),
    (lambda x: fw.average(x, axis=0, weights=[1.0]), ValueError, "fit no axis"),
    (lambda x: fw.cov(x[None]), ValueError, "ranks up to 2"),
    (lambda x: fw.einsum("ij,jk", x), ValueError, "2 groups"),
    (lambda x: fw.einsum("ij->k", x), ValueError, "of an operand"),
    (lambda x: fw.einsum("ij->ii", x), ValueError, "there once"),
    (lambda x: fw.einsum("ijk", x), ValueError, "3 subscripts"),
    (lambda x: fw.einsum("i1", x), ValueError, "no letter"),
    (lambda x: fw.einsum("ii", x), ValueError, "lengths 3 and 4"),
    (lambda x: fw.einsum("ijk...", x), ValueError, "more subscripts"),
    (lambda x: fw.einsum(x, [0, 1]), ValueError, "as a text"),
    (lambda x: fw.einsum("ij,jk", x > 0, x.T > 0), TypeError, "bool"),
]


@pytest.mark.parametrize(("function", "error", "text"), REFUSED)
def test_what_does_not_fit_is_refused_at_its_line(
    session: fw.Session, function: Callable[[Any], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        function(session.array(A))
