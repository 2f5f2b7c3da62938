"""The derivatives of linear algebra are those of central differences."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.api.gradients.differences import Case, check, check_twice, drawn, matrix

A, BATCH = matrix(3, 3), matrix(2, 3, 3, seed=1)
TALL, WIDE = matrix(2, 4, 3), matrix(2, 3, 4)


def _positive(x: Any) -> Any:
    return x @ x.mT + 0.1 * x.session.array(np.eye(3))


def _symmetric(x: Any) -> Any:
    return x + x.mT


def _of_vectors(values: Any, vectors: Any) -> Any:
    """What does not depend on the signs of eigenvectors."""
    return values, vectors * vectors, vectors @ (fw.exp(values)[..., None] * vectors.mT)


def _eig(x: Any) -> Any:
    """What does not depend on the phases of eigenvectors."""
    values, vectors = fw.linalg.eig(x)
    back = vectors @ (fw.exp(values)[..., None] * fw.linalg.inv(vectors))
    return values.real, values.imag, fw.abs(vectors) ** 2, back.real


def _svd(x: Any) -> Any:
    u, s, vh = fw.linalg.svd(x, full_matrices=False)
    return u * u, s, vh * vh, (u * fw.exp(s)[..., None, :]) @ vh


def _qr(x: Any, mode: Any = "reduced") -> Any:
    q, r = fw.linalg.qr(x, mode)
    return q * q, r * r, q[..., :, :1] * r[..., :1, :]


def _parts_of(*results: Any) -> tuple[Any, ...]:
    return tuple([part for each in results for part in (each.real, each.imag)])


def _complex(function: Callable[[Any], Any]) -> Callable[[Any, Any], Any]:
    """A function of both parts of complex matrices."""
    return lambda real, imag: function(real + 1j * imag)


def _hermitian(x: Any) -> Any:
    return x + x.mH


def _complex_cholesky(x: Any, *, upper: bool = False) -> Any:
    positive = x @ x.mH + 0.1 * x.session.array(np.eye(3))
    return _parts_of(fw.linalg.cholesky(positive, upper=upper))


def _slogdet(x: Any) -> Any:
    sign, logarithm = fw.linalg.slogdet(x)
    return *_parts_of(sign), logarithm


def _complex_qr(x: Any, mode: Any = "reduced") -> Any:
    return _parts_of(*fw.linalg.qr(x, mode))


def _complex_eigh(x: Any, triangle: Any = "L") -> Any:
    """What does not depend on the phases of eigenvectors."""
    values, vectors = fw.linalg.eigh(_hermitian(x), triangle)
    back = vectors @ (fw.exp(values)[..., None] * vectors.mH)
    return values, fw.abs(vectors) ** 2, *_parts_of(back, vectors[..., :, :1] @ vectors[..., :, :1].mH)


def _complex_eig(x: Any) -> Any:
    values, vectors = fw.linalg.eig(x)
    back = vectors @ (fw.exp(values)[..., None] * fw.linalg.inv(vectors))
    return *_parts_of(values, back), fw.abs(vectors) ** 2


def _complex_svd(x: Any) -> Any:
    u, s, vh = fw.linalg.svd(x, full_matrices=False)
    back = (u * fw.exp(s)[..., None, :]) @ vh
    return fw.abs(u) ** 2, s, fw.abs(vh) ** 2, *_parts_of(back, u[..., :, :1] @ vh[..., :1, :])


A2, BATCH2, TALL2, WIDE2 = (
    matrix(3, 3, seed=2),
    matrix(2, 3, 3, seed=3),
    matrix(2, 4, 3, seed=4),
    matrix(2, 3, 4, seed=5),
)

CASES: dict[str, list[Case]] = {
    "cholesky": [
        Case(lambda x: fw.linalg.cholesky(_positive(x)), (A,)),
        Case(lambda x: fw.linalg.cholesky(_positive(x), upper=True), (BATCH,)),
    ],
    "solve": [
        Case(fw.linalg.solve, (A, drawn(3, 2))),
        Case(fw.linalg.solve, (A, drawn(3))),
        Case(fw.linalg.solve, (BATCH, drawn(3, 2))),
    ],
    "inv": [Case(fw.linalg.inv, (BATCH,))],
    "det": [Case(fw.linalg.det, (A,)), Case(fw.linalg.det, (BATCH,))],
    "slogdet": [Case(lambda x: fw.linalg.slogdet(x)[1], (A,)), Case(lambda x: fw.linalg.slogdet(x)[1], (BATCH,))],
    "qr": [
        Case(_qr, (A,)),
        Case(_qr, (TALL,)),
        Case(_qr, (WIDE,)),
        Case(lambda x: _qr(x, "complete"), (WIDE,)),
        Case(lambda x: fw.linalg.qr(x, "r") ** 2, (TALL,)),
    ],
    "eig": [Case(_eig, (A,)), Case(_eig, (matrix(2, 4, 4),))],
    "eigvals": [
        Case(lambda x: fw.linalg.eigvals(x).real, (A,)),
        Case(lambda x: fw.linalg.eigvals(x).imag, (matrix(2, 4, 4),)),
    ],
    "eigh": [
        Case(lambda x: _of_vectors(*fw.linalg.eigh(_symmetric(x))), (A,)),
        Case(lambda x: _of_vectors(*fw.linalg.eigh(_symmetric(x), "U")), (BATCH,)),
    ],
    "eigvalsh": [
        Case(lambda x: fw.linalg.eigvalsh(_symmetric(x)), (A,)),
        Case(lambda x: fw.linalg.eigvalsh(_symmetric(x), "U"), (BATCH,)),
    ],
    "svd": [Case(_svd, (A,)), Case(_svd, (TALL,)), Case(_svd, (WIDE,))],
    "svdvals": [Case(fw.linalg.svdvals, (TALL,)), Case(fw.linalg.svdvals, (WIDE,))],
    "complex_cholesky": [
        Case(_complex(_complex_cholesky), (A, A2)),
        Case(_complex(lambda x: _complex_cholesky(x, upper=True)), (BATCH, BATCH2)),
    ],
    "complex_slogdet": [
        Case(_complex(_slogdet), (A, A2)),
        Case(_complex(lambda x: _parts_of(fw.linalg.det(x))), (BATCH, BATCH2)),
    ],
    "complex_qr": [
        Case(_complex(_complex_qr), (A, A2)),
        Case(_complex(_complex_qr), (TALL, TALL2)),
        Case(_complex(_complex_qr), (WIDE, WIDE2)),
        Case(_complex(lambda x: _complex_qr(x, "complete")), (WIDE, WIDE2)),
    ],
    "complex_eigh": [
        Case(_complex(_complex_eigh), (A, A2)),
        Case(_complex(lambda x: _complex_eigh(x, "U")), (BATCH, BATCH2)),
    ],
    "complex_eig": [Case(_complex(_complex_eig), (A, A2)), Case(_complex(_complex_eig), (BATCH, BATCH2))],
    "complex_svd": [
        Case(_complex(_complex_svd), (A, A2)),
        Case(_complex(_complex_svd), (TALL, TALL2)),
        Case(_complex(_complex_svd), (WIDE, WIDE2)),
    ],
}


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_is_that_of_differences(session: fw.Session, name: str) -> None:
    for case in CASES[name]:
        check(session, case.function, *case.values)


@pytest.mark.parametrize("name", ["cholesky", "solve", "inv", "det", "eigvals", "eigvalsh", "svdvals"])
def test_a_second_derivative_is_that_of_differences(session: fw.Session, name: str) -> None:
    check_twice(session, CASES[name][0].function, *[matrix(3, 3)] * len(CASES[name][0].values))


@pytest.mark.parametrize("name", ["complex_cholesky", "complex_qr", "complex_svd"])
def test_a_second_derivative_of_complex_matrices_is_that_of_differences(session: fw.Session, name: str) -> None:
    function = CASES[name][0].function
    check_twice(session, lambda *parts: sum((each * each).sum() for each in function(*parts)[:2]), A, A2)


def test_real_matrices_among_complex_ones_have_real_gradients(session: fw.Session) -> None:
    check(session, lambda x: fw.linalg.eigh((x + x.mT) * (1 + 0j)).eigenvalues, A)
    check(session, lambda x: _slogdet(x + 1j * A2), A)


def test_what_is_made_of_decompositions_is_differentiated(session: fw.Session) -> None:
    check(session, fw.linalg.pinv, TALL)
    check(session, fw.linalg.norm, A)
    check(session, lambda x: fw.linalg.matrix_power(x, 3), A)


def test_vectors_that_may_be_any_have_no_gradient(session: fw.Session) -> None:
    tall = session.array(TALL)
    with pytest.raises(fw.ArgumentError, match="reduced"):
        fw.grad(lambda x: fw.linalg.qr(x, "complete").R.sum())(tall)
    with pytest.raises(fw.ArgumentError, match="full_matrices=False"):
        fw.grad(lambda x: fw.linalg.svd(x).S.sum())(tall)
    with pytest.raises(fw.ArgumentError, match="full_matrices=False"):
        fw.grad(lambda x: fw.linalg.svd(x * 1j).S.sum())(tall)


def test_equal_eigenvalues_have_finite_gradients(session: fw.Session) -> None:
    gradient = fw.grad(lambda x: fw.linalg.eigh(x).eigenvectors.sum())(session.array(np.eye(3)))
    assert np.isfinite(gradient.numpy()).all()
