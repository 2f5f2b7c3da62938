"""Products of complex matrices, linear equations and what follows from decompositions, held to NumPy."""

from __future__ import annotations

from typing import Any

import hypothesis.extra.numpy as npst
import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fusewire as fw
from fusewire.testing import session_in_memory
from tests.client.api.complex.agreement import Call, check

Array = npt.NDArray[Any]

CALLS: dict[str, Call] = {
    "matmul": lambda xp, z, w, x, i: z @ w,
    "matmul with floats": lambda xp, z, w, x, i: x @ z,
    "matmul with integers": lambda xp, z, w, x, i: z @ i,
    "matrix and vector": lambda xp, z, w, x, i: z @ w[0],
    "batches": lambda xp, z, w, x, i: xp.stack([z, z]) @ w,
    "dot": lambda xp, z, w, x, i: xp.dot(z[0], w[0]),
    "vdot": lambda xp, z, w, x, i: xp.vdot(z, w),
    "vecdot": lambda xp, z, w, x, i: xp.vecdot(z, w, axis=0),
    "vecmat": lambda xp, z, w, x, i: xp.vecmat(z[0], w),
    "matvec": lambda xp, z, w, x, i: xp.matvec(z, w[0]),
    "inner": lambda xp, z, w, x, i: xp.inner(z, w),
    "outer": lambda xp, z, w, x, i: xp.outer(z[0], w[0]),
    "tensordot": lambda xp, z, w, x, i: xp.tensordot(z, w, axes=1),
    "einsum": lambda xp, z, w, x, i: xp.einsum("ij,ij,jk", z, w, x),
    "kron": lambda xp, z, w, x, i: xp.kron(z, w),
    "cross": lambda xp, z, w, x, i: xp.cross(z[0], w[0]),
    "convolve": lambda xp, z, w, x, i: xp.convolve(z[0], w[0]),
    "correlate": lambda xp, z, w, x, i: xp.correlate(z[0], w[0], "full"),
    "correlate of the shorter": lambda xp, z, w, x, i: xp.correlate(z[0, :2], w[0], "same"),
    "norm": lambda xp, z, w, x, i: xp.linalg.norm(z),
    "norm along an axis": lambda xp, z, w, x, i: xp.linalg.norm(z, axis=0),
    "norm of columns": lambda xp, z, w, x, i: xp.linalg.norm(z, 1),
    "vector norm of order 3": lambda xp, z, w, x, i: xp.linalg.vector_norm(z, ord=3),
    "matrix norm": lambda xp, z, w, x, i: xp.linalg.matrix_norm(z),
    "norm by singular values": lambda xp, z, w, x, i: xp.linalg.norm(w, 2),
    "nuclear norm": lambda xp, z, w, x, i: xp.linalg.matrix_norm(z[:2], ord="nuc", keepdims=True),
    "svdvals": lambda xp, z, w, x, i: xp.linalg.svdvals(xp.stack([w, z])[:, :2]),
    "cond": lambda xp, z, w, x, i: xp.linalg.cond(w),
    "matrix_rank": lambda xp, z, w, x, i: xp.linalg.matrix_rank(w),
    "trace": lambda xp, z, w, x, i: xp.linalg.trace(z),
    "solve": lambda xp, z, w, x, i: xp.linalg.solve(z, w),
    "solve for a vector": lambda xp, z, w, x, i: xp.linalg.solve(z, x[0]),
    "solve with real matrices": lambda xp, z, w, x, i: xp.linalg.solve(x + x.T + 1, z),
    "inv": lambda xp, z, w, x, i: xp.linalg.inv(xp.stack([z, z + 1])),
    "det": lambda xp, z, w, x, i: xp.linalg.det(xp.stack([z, z + 1])),
    "slogdet": lambda xp, z, w, x, i: xp.linalg.slogdet(w).sign,
    "logarithm of slogdet": lambda xp, z, w, x, i: xp.linalg.slogdet(z).logabsdet,
    "cholesky": lambda xp, z, w, x, i: xp.linalg.cholesky(xp.stack([w @ w.conj().mT, 3 * xp.eye(3, dtype=w.dtype)])),
    "qr": lambda xp, z, w, x, i: xp.linalg.qr(w, mode="r"),
    "eigvalsh": lambda xp, z, w, x, i: xp.linalg.eigvalsh(xp.stack([z, z + 1])),
    "eigvalsh of the upper triangle": lambda xp, z, w, x, i: xp.linalg.eigvalsh(w, UPLO="U"),
    "eigenvalues of eigh": lambda xp, z, w, x, i: xp.linalg.eigh(z).eigenvalues,
    "singular values of svd": lambda xp, z, w, x, i: xp.linalg.svd(w[:2], full_matrices=False).S,
    "svd without vectors": lambda xp, z, w, x, i: xp.linalg.svd(z, compute_uv=False),
    "eigvals": lambda xp, z, w, x, i: xp.sort(abs(xp.linalg.eigvals(z))),
    "pinv": lambda xp, z, w, x, i: xp.linalg.pinv(xp.stack([w, w + 1])[:, :2]),
    "lstsq": lambda xp, z, w, x, i: xp.linalg.lstsq(w[:, :2], w[:, 2])[0],
    "lstsq's squares": lambda xp, z, w, x, i: xp.linalg.lstsq(w[:, :2], w)[1],
    "matrix power": lambda xp, z, w, x, i: xp.linalg.matrix_power(z, -2),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_product_gives_what_numpys_gives(session: fw.Session, name: str) -> None:
    check(session, CALLS[name])


def test_the_adjoint_is_the_conjugate_transposed(session: fw.Session) -> None:
    host = np.array([[1 + 2j, 3], [1j, 4]])
    np.testing.assert_array_equal(session.array(host).mH.numpy(), host.conj().T)
    np.testing.assert_array_equal(session.array(host.real).mH.numpy(), host.real.T)


def test_the_inverse_takes_square_matrices(session: fw.Session) -> None:
    with pytest.raises(fw.ShapeError, match="square"):
        fw.linalg.inv(session.array(np.ones((2, 3), complex)))


@pytest.mark.parametrize("name", ["cholesky", "det", "slogdet", "eigh", "eigvalsh", "eig", "eigvals"])
def test_what_is_no_square_matrix_is_refused(session: fw.Session, name: str) -> None:
    for shape in ((2, 3), (3,)):
        with pytest.raises(fw.ShapeError):
            getattr(fw.linalg, name)(session.array(np.ones(shape, complex)))


def _matrices(*, square: bool) -> st.SearchStrategy[Array]:
    """Complex matrices of small whole parts, in batches; many have equal eigenvalues, or are singular."""
    side = st.integers(0, 4)
    sides = side.map(lambda n: (n, n)) if square else st.tuples(side, side)
    shapes = st.tuples(st.sampled_from([(), (2,), (0,), (2, 1)]), sides).map(lambda both: (*both[0], *both[1]))
    dtypes = st.sampled_from([np.complex64, np.complex128])
    whole = st.builds(complex, st.integers(-2, 2), st.integers(-2, 2))
    return st.tuples(shapes, dtypes).flatmap(lambda each: npst.arrays(each[1], each[0], elements=whole))


def _near(found: Any, expected: Any) -> None:
    value = found.numpy()
    is_short = value.dtype in (np.float32, np.complex64)
    assert value.dtype == expected.dtype
    np.testing.assert_allclose(value, expected, rtol=1e-4 if is_short else 1e-9, atol=1e-3 if is_short else 1e-9)


def _adjoint(x: Any) -> Any:
    return x.conj().mT


def _identities(like: Array, side: int) -> Array:
    return np.broadcast_to(np.eye(side, dtype=like.dtype), (*like.shape[:-2], side, side))


@given(_matrices(square=True), st.sampled_from("LU"))
def test_the_eigenvectors_of_hermitian_matrices_are_orthonormal_also_of_equal_eigenvalues(x: Array, half: Any) -> None:
    whole = x + _adjoint(x)
    with session_in_memory() as session:
        read = session.array(np.triu(whole) if half == "U" else np.tril(whole))
        values, vectors = fw.linalg.eigh(read, UPLO=half)
        _near(values, np.linalg.eigvalsh(whole))
        _near(fw.linalg.eigvalsh(read, UPLO=half), np.linalg.eigvalsh(whole))
        _near(_adjoint(vectors) @ vectors, _identities(x, x.shape[-1]))
        _near((vectors * values[..., None, :]) @ _adjoint(vectors), whole)


@given(_matrices(square=False), st.booleans())
def test_singular_vectors_are_orthonormal_and_give_back_their_matrices(x: Array, is_full: bool) -> None:
    side = min(x.shape[-2:])
    with session_in_memory() as session:
        u, s, vh = fw.linalg.svd(session.array(x), full_matrices=is_full)
        _near(s, np.linalg.svd(x, compute_uv=False))
        _near(_adjoint(u) @ u, _identities(x, u.shape[-1]))
        _near(vh @ _adjoint(vh), _identities(x, vh.shape[-2]))
        _near((u[..., :side] * s[..., None, :]) @ vh[..., :side, :], x)


@given(_matrices(square=False), st.sampled_from(["reduced", "complete"]))
def test_q_is_orthonormal_and_r_is_triangular(x: Array, mode: Any) -> None:
    with session_in_memory() as session:
        q, r = fw.linalg.qr(session.array(x), mode=mode)
        _near(q @ r, x)
        _near(_adjoint(q) @ q, _identities(x, q.shape[-1]))
        np.testing.assert_array_equal(r.numpy(), np.triu(r.numpy()))


@given(_matrices(square=True), st.booleans())
def test_a_cholesky_factor_gives_back_its_matrix_of_which_one_triangle_is_read(x: Array, upper: bool) -> None:
    positive = x @ _adjoint(x) + np.eye(x.shape[-1], dtype=x.dtype)
    with session_in_memory() as session:
        read = session.array(np.triu(positive) if upper else np.tril(positive))
        factor = fw.linalg.cholesky(read, upper=upper)
        _near(_adjoint(factor) @ factor if upper else factor @ _adjoint(factor), positive)
        np.testing.assert_array_equal(factor.numpy(), (np.triu if upper else np.tril)(factor.numpy()))


@given(_matrices(square=True))
def test_determinants_are_numpys(x: Array) -> None:
    with session_in_memory() as session:
        given_matrix = session.array(x)
        sign, logarithm = fw.linalg.slogdet(given_matrix)
        _near(fw.linalg.det(given_matrix), np.linalg.det(x))
        _near(sign * fw.exp(logarithm), np.linalg.det(x))


@given(_matrices(square=True))
def test_eigenvalues_belong_to_their_vectors(x: Array) -> None:
    with session_in_memory() as session:
        given_matrix = session.array(x)
        values, vectors = fw.linalg.eig(given_matrix)
        np.testing.assert_allclose(
            (given_matrix @ vectors).numpy(), (vectors * values[..., None, :]).numpy(), atol=1e-3
        )
        _near(fw.linalg.eigvals(given_matrix).sum(axis=-1), np.trace(x, axis1=-2, axis2=-1))


def test_a_matrix_that_fails_gives_nan_alone(session: fw.Session) -> None:
    host = np.stack([np.eye(2) + 0j, -np.eye(2) + 0j, np.full((2, 2), np.nan + 0j)])
    found = fw.linalg.cholesky(session.array(host)).numpy()
    np.testing.assert_array_equal(found[0], np.eye(2))
    assert np.isnan(found[1:].real).all()
    assert np.isnan(found[1:].imag).all()
