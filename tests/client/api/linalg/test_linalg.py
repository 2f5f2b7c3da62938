"""Every function of `fusewire.linalg` gives what NumPy's gives, for one matrix and for batches of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from math import inf
from typing import Any, cast

import numpy as np
import pytest

import fusewire as fw
from fusewire import linalg
from fusewire.testing import session_in_memory

_RANDOM = np.random.default_rng(0)
_SQUARE = _RANDOM.standard_normal((3, 4, 4))
_POSITIVE = _SQUARE @ _SQUARE.mT + np.eye(4)
_WIDE = _RANDOM.standard_normal((2, 3, 5))
_TENSOR = np.eye(24).reshape(6, 4, 2, 3, 4) + 0.1 * _RANDOM.standard_normal((6, 4, 2, 3, 4))
_VECTOR = _RANDOM.standard_normal(4)


@pytest.fixture
def session() -> Iterator[fw.Session]:
    with session_in_memory() as opened:
        yield opened


def _close(found: Any, expected: Any) -> None:
    """Compares one array, or several of a tuple."""
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            _close(one, other)
        return
    np.testing.assert_allclose(np.asarray(found), expected, rtol=1e-9, atol=1e-10)


_CALLS: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "cholesky": (lambda la, x: la.cholesky(x), (_POSITIVE,)),
    "cholesky upper": (lambda la, x: la.cholesky(x, upper=True), (_POSITIVE,)),
    "qr": (lambda la, x: tuple(la.qr(x)), (_WIDE,)),
    "qr complete": (lambda la, x: tuple(la.qr(x.mT, "complete")), (_WIDE,)),
    "qr r": (lambda la, x: la.qr(x, mode="r"), (_WIDE,)),
    "eig": (lambda la, x: tuple(each.astype("complex128") for each in la.eig(x)), (_SQUARE,)),
    "eig of real values": (lambda la, x: tuple(each.astype("complex128") for each in la.eig(x)), (_POSITIVE,)),
    "eigvals": (lambda la, x: la.eigvals(x), (_SQUARE,)),
    "eigh": (lambda la, x: tuple(la.eigh(x)), (_POSITIVE,)),
    "eigvalsh": (lambda la, x: la.eigvalsh(x, UPLO="U"), (_POSITIVE,)),
    "svd": (lambda la, x: tuple(la.svd(x)), (_WIDE,)),
    "svd not full": (lambda la, x: tuple(la.svd(x, full_matrices=False)), (_WIDE,)),
    "svd values": (lambda la, x: la.svd(x, compute_uv=False), (_WIDE,)),
    "svdvals": (lambda la, x: la.svdvals(x), (_WIDE,)),
    "solve": (lambda la, a, b: la.solve(a, b.mT), (_SQUARE, _SQUARE[:, :2])),
    "solve a vector": (lambda la, a, b: la.solve(a, b), (_SQUARE, _VECTOR)),
    "solve broadcast": (lambda la, a, b: la.solve(a, b), (_SQUARE[0], _SQUARE)),
    "inv": (lambda la, x: la.inv(x), (_SQUARE,)),
    "det": (lambda la, x: la.det(x), (_SQUARE,)),
    "slogdet": (lambda la, x: tuple(la.slogdet(x)), (_SQUARE,)),
    "pinv": (lambda la, x: la.pinv(x), (_WIDE,)),
    "pinv cut": (lambda la, x: la.pinv(x, rtol=0.5), (_WIDE,)),
    "matrix_rank": (lambda la, x: la.matrix_rank(x), (np.stack([np.eye(3), np.ones((3, 3))]),)),
    "matrix_rank tol": (lambda la, x: la.matrix_rank(x, tol=2.0), (_SQUARE,)),
    "matrix_rank of a vector": (lambda la, x: la.matrix_rank(x), (_VECTOR,)),
    "lstsq": (lambda la, a, b: la.lstsq(a, b), (_WIDE[0].T, np.arange(5.0))),
    "lstsq of columns": (lambda la, a, b: la.lstsq(a, b), (_WIDE[0].T, _RANDOM.standard_normal((5, 2)))),
    "lstsq of few equations": (lambda la, a, b: la.lstsq(a, b), (_WIDE[0], np.arange(3.0))),
    "multi_dot": (lambda la, x: la.multi_dot([x[0], x.T, x]), (_WIDE[0],)),
    "multi_dot of vectors": (lambda la, x: la.multi_dot([x[0], x[1]]), (_WIDE[0],)),
    "tensorsolve": (lambda la, a, b: la.tensorsolve(a, b), (_TENSOR, _RANDOM.standard_normal((6, 4)))),
    "tensorinv": (lambda la, a: la.tensorinv(a), (_TENSOR,)),
    "cross": (lambda la, a, b: la.cross(a, b), (_WIDE[0, :, :3], _WIDE[1, :, :3])),
    "outer": (lambda la, a: la.outer(a, a), (_VECTOR,)),
    "diagonal": (lambda la, x: la.diagonal(x, offset=1), (_WIDE,)),
    "trace": (lambda la, x: la.trace(x, offset=-1), (_WIDE,)),
    "matrix_transpose": (lambda la, x: la.matrix_transpose(x), (_WIDE,)),
    "vecdot": (lambda la, x: la.vecdot(x, x), (_WIDE,)),
    "tensordot": (lambda la, x: la.tensordot(x, x, axes=2), (_SQUARE[0],)),
    "matmul": (lambda la, x: la.matmul(x, x), (_SQUARE,)),
    "norm of all": (lambda la, x: la.norm(x), (_WIDE,)),
    "norm of integers": (lambda la, x: la.norm(x), (np.arange(6),)),
    "matrix_norm keepdims": (lambda la, x: la.matrix_norm(x, keepdims=True), (_WIDE,)),
    **{f"matrix_power {n}": (lambda la, x, n=n: la.matrix_power(x, n), (_SQUARE,)) for n in (-2, 0, 1, 2, 5)},
    **{f"cond {p}": (lambda la, x, p=p: la.cond(x, p), (_SQUARE,)) for p in (None, 2, -2, 1, -1, inf, "fro", "nuc")},
    **{
        f"matrix norm {kind}": (lambda la, x, kind=kind: la.norm(x, kind, axis=(0, 2), keepdims=True), (_WIDE,))
        for kind in (None, "fro", "nuc", 1, -1, 2, -2, inf, -inf)
    },
    **{
        f"vector norm {kind}": (lambda la, x, kind=kind: la.vector_norm(x, axis=(0, 1), ord=kind), (_WIDE,))
        for kind in (0, 1, 2, 3, 0.5, inf, -inf)
    },
    **{f"norm of a vector {kind}": (lambda la, x, kind=kind: la.norm(x, kind), (_VECTOR,)) for kind in (1, 3, inf)},
}


@pytest.mark.parametrize("name", _CALLS)
def test_a_function_is_numpys(session: fw.Session, name: str) -> None:
    call, operands = _CALLS[name]
    expected = call(np.linalg, *operands)
    _close(call(linalg, *map(session.array, operands)), tuple(expected) if isinstance(expected, tuple) else expected)


@pytest.mark.parametrize("name", _CALLS)
def test_numpys_function_takes_our_arrays(session: fw.Session, name: str) -> None:
    call, operands = _CALLS[name]
    found = call(np.linalg, *map(session.array, operands))
    assert all(isinstance(each, fw.Array) for each in (found if isinstance(found, tuple) else [found]))


def test_every_name_is_called_here() -> None:
    assert {*linalg.__all__} == {name.partition(" ")[0] for name in _CALLS} - {"vector", "matrix"} | {"vector_norm"}


def test_results_have_numpys_names(session: fw.Session) -> None:
    x = session.array(_POSITIVE)
    assert linalg.qr(x)._fields == ("Q", "R")
    assert linalg.eig(x)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.eigh(x)._fields == ("eigenvalues", "eigenvectors")
    assert linalg.svd(x)._fields == ("U", "S", "Vh")
    assert linalg.slogdet(x)._fields == ("sign", "logabsdet")


def test_a_singular_matrix_gives_nan_and_no_error(session: fw.Session) -> None:
    singular = session.array(np.stack([np.eye(2), np.zeros((2, 2))]))
    assert np.isnan(linalg.inv(singular).numpy()).any(axis=(1, 2)).tolist() == [False, True]
    assert np.isnan(linalg.cholesky(-session.array(np.eye(2))).numpy()).all()


def test_integers_are_computed_in_float64_and_float32_stays(session: fw.Session) -> None:
    assert linalg.inv(session.array(np.eye(2, dtype=np.int8))).dtype is fw.float64
    assert all(each.dtype is fw.float32 for each in linalg.svd(session.array(np.eye(2, dtype=np.float32))))


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda x: linalg.inv(x[:, :3]), fw.ShapeError, "as many rows as columns"),
        (lambda x: linalg.inv(x.astype("float16")), fw.DtypeError, "astype"),
        (lambda x: linalg.solve(x, x[:3]), ValueError, "do not fit"),
        (lambda x: linalg.solve(x[0], x), fw.ShapeError, "takes matrices"),
        (lambda x: linalg.qr(x, cast("Any", "economic")), fw.ArgumentError, "reduced, complete and r"),
        (lambda x: linalg.eigh(x, UPLO=cast("Any", "M")), fw.ArgumentError, "L or U"),
        (lambda x: linalg.eig(x[:, :3] + 1j), fw.ShapeError, "as many rows as columns"),
        (lambda x: linalg.eigvals(x[:, :3]), fw.ShapeError, "as many rows as columns"),
        (lambda x: linalg.norm(x, 3), fw.ArgumentError, "no norm 3"),
        (lambda x: linalg.norm(x, 2, axis=(0, 1, 2)), IndexError, "axis 2"),
        (lambda x: linalg.vector_norm(x, ord="fro"), fw.ArgumentError, "no norm 'fro'"),
        (lambda x: linalg.matrix_norm(x[0]), fw.ShapeError, "takes matrices"),
        (lambda x: linalg.matrix_power(x, cast("Any", 1.5)), TypeError, "integer"),
        (lambda x: linalg.multi_dot([x]), fw.ArgumentError, "two arrays"),
        (lambda x: linalg.multi_dot([x, x[0], x]), fw.ShapeError, "vectors at the ends"),
        (lambda x: linalg.tensorinv(x, 0), fw.ArgumentError, "one axis"),
        (lambda x: linalg.tensorsolve(x, x[0, :3]), fw.ShapeError, "unknowns"),
        (lambda x: linalg.lstsq(x[0], x), fw.ShapeError, "takes a matrix"),
        (lambda x: linalg.outer(x, x), fw.ShapeError, "takes vectors"),
    ],
)
def test_what_numpy_refuses_is_refused_at_the_line(
    session: fw.Session, call: Callable[[fw.Array], Any], error: type[Exception], text: str
) -> None:
    with pytest.raises(error, match=text):
        call(session.array(_SQUARE[0]))


def test_a_program_may_name_numpys_error() -> None:
    assert fw.linalg.LinAlgError is np.linalg.LinAlgError  # type: ignore[attr-defined]  # no name of our own
