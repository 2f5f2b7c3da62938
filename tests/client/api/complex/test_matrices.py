"""Products of complex matrices, and linear equations, held to NumPy."""

from __future__ import annotations

import numpy as np
import pytest

import fusewire as fw
from tests.client.api.complex.agreement import Call, check

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
