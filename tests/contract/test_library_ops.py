"""Linear algebra: alone, among other ops, in loops, and beside other clients. Small matrices have plans."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._api.complex.complex_array import ComplexArray
from tests.contract.service import Service
from tests.patience import HANGS_S
from tests.tolerances import assert_same_bytes

_RANDOM = np.random.default_rng(0)
_SQUARE = _RANDOM.standard_normal((3, 5, 5)).astype(np.float32)
_POSITIVE = _SQUARE @ _SQUARE.mT + np.eye(5, dtype=np.float32)
_SINGULAR = np.stack([_POSITIVE[0], np.zeros((5, 5), np.float32)])
_ITERATIONS = 4
_COMPLEX = (_SQUARE + 1j * _RANDOM.standard_normal((3, 5, 5))).astype(np.complex64)
_HERMITIAN = _COMPLEX @ _COMPLEX.conj().mT + np.eye(5, dtype=np.complex64)


def _turned(x: Any) -> Any:
    """The next step of the QR algorithm, whose eigenvalues are those of `x`."""
    q, r = fw.linalg.qr(x)
    return r @ q


def test_decompositions_give_back_their_matrices(service: Service) -> None:
    with service.connect() as session:
        x, wide = session.array(_POSITIVE), session.array(_SQUARE[:, :3])
        lower = fw.linalg.cholesky(x)
        q, r = fw.linalg.qr(wide, "complete")
        values, vectors = fw.linalg.eigh(x)
        any_values, any_vectors = fw.linalg.eig(session.array(_SQUARE))
        u, s, vh = fw.linalg.svd(wide, full_matrices=False)
        sign, logarithm = fw.linalg.slogdet(x)
        for found, expected in (
            (lower @ lower.mT, _POSITIVE),
            (q @ r, _SQUARE[:, :3]),
            (q @ q.mT, np.broadcast_to(np.eye(3), (3, 3, 3))),
            (vectors * values[:, None] @ vectors.mT, _POSITIVE),
            (any_vectors * any_values[:, None] @ fw.linalg.inv(any_vectors), _SQUARE.astype(np.complex64)),
            (fw.linalg.eigvals(session.array(_SQUARE)).sum(axis=-1).real, np.trace(_SQUARE, axis1=1, axis2=2)),
            ((u * s[:, None]) @ vh, _SQUARE[:, :3]),
            (x @ fw.linalg.solve(x, x), _POSITIVE),
            (x @ fw.linalg.inv(x), np.broadcast_to(np.eye(5), (3, 5, 5))),
            (sign * fw.exp(logarithm), np.linalg.det(_POSITIVE)),
            (fw.linalg.det(x), np.linalg.det(_POSITIVE)),
            (fw.linalg.svdvals(wide), s.numpy(timeout=HANGS_S)),
            (fw.linalg.eigvalsh(x), values.numpy(timeout=HANGS_S)),
        ):
            np.testing.assert_allclose(found.numpy(timeout=HANGS_S), expected, rtol=2e-4, atol=2e-4)


def test_decompositions_of_complex_matrices_give_back_their_matrices(service: Service) -> None:
    with service.connect() as session:
        x, wide = session.array(_HERMITIAN), session.array(_COMPLEX[:, :3])
        lower = fw.linalg.cholesky(x)
        q, r = fw.linalg.qr(wide, "complete")
        values, vectors = fw.linalg.eigh(x)
        any_values, any_vectors = fw.linalg.eig(session.array(_COMPLEX))
        u, s, vh = fw.linalg.svd(wide, full_matrices=False)
        sign, logarithm = fw.linalg.slogdet(x)
        for found, expected in (
            (lower @ lower.mH, _HERMITIAN),
            (q @ r, _COMPLEX[:, :3]),
            (q @ q.mH, np.broadcast_to(np.eye(3), (3, 3, 3))),
            (vectors * values[:, None] @ vectors.mH, _HERMITIAN),
            (any_vectors * any_values[:, None] @ fw.linalg.inv(any_vectors), _COMPLEX),
            ((u * s[:, None]) @ vh, _COMPLEX[:, :3]),
            (sign * fw.exp(logarithm), np.linalg.det(_HERMITIAN)),
            (fw.linalg.eigvalsh(x), values.numpy(timeout=HANGS_S)),
        ):
            np.testing.assert_allclose(found.numpy(timeout=HANGS_S), expected, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("points", [1, 2, 15, 16, 1009, 1 << 14])
def test_transforms_are_numpys(service: Service, points: int, dtype: str) -> None:
    lines = _RANDOM.standard_normal((3, points)).astype(dtype)
    spectrum = np.fft.rfft(lines)
    tolerance = 16 * (1 + np.log2(points)) * np.finfo(dtype).eps
    with service.connect() as session:
        x = session.array(lines)
        found = fw.fft.rfft(x)
        for transformed, expected in (
            (found, spectrum),
            (fw.fft.fft(x), np.fft.fft(lines)),
            (fw.fft.ifft(found, points), np.fft.ifft(spectrum, points)),
            (fw.fft.irfft(found, points), lines),
        ):
            read = transformed.numpy(timeout=HANGS_S)
            assert read.dtype == expected.dtype
            np.testing.assert_allclose(read, expected, rtol=0, atol=tolerance * np.abs(expected).max())


def test_a_real_line_takes_no_imaginary_parts_at_its_ends(service: Service) -> None:
    real, imaginary = _RANDOM.standard_normal((2, 9)).astype(np.float32)
    without = imaginary.copy()
    without[[0, -1]] = 0
    with service.connect() as session:
        found, expected = [
            fw.fft.irfft(ComplexArray(session.array(real), session.array(parts))) for parts in (imaginary, without)
        ]
        assert_same_bytes(found.numpy(timeout=HANGS_S), expected.numpy(timeout=HANGS_S))


def test_transforms_have_the_bytes_that_each_client_gets_alone(service: Service) -> None:
    def blurred(x: Any) -> Any:
        return fw.fft.irfft(fw.fft.rfft(fw.fft.ifft2(x).real), x.shape[-1])

    given = [_RANDOM.standard_normal((5, 40)).astype(np.float32) for _ in range(2)]
    with service.connect() as one, service.connect() as other:
        sessions = (one, other)
        alone = [blurred(session.array(x)).numpy(timeout=HANGS_S) for session, x in zip(sessions, given, strict=True)]
        together = [blurred(session.array(x)).future() for session, x in zip(sessions, given, strict=True)]
        looped = fw.fori_loop(2, lambda i, x: blurred(x), one.array(given[0])).numpy(timeout=HANGS_S)
        for mine, kept in zip(together, alone, strict=True):
            assert_same_bytes(mine.result(HANGS_S), kept)
        assert_same_bytes(looped, blurred(one.array(alone[0])).numpy(timeout=HANGS_S))


def test_matrices_that_fail_or_have_no_elements_are_computed_too(service: Service) -> None:
    with service.connect() as session:
        inverses = fw.linalg.inv(session.array(_SINGULAR)).numpy(timeout=HANGS_S)
        np.testing.assert_allclose(inverses[0], np.linalg.inv(_POSITIVE[0]), rtol=2e-4, atol=2e-4)
        assert_same_bytes(inverses[1], np.full((5, 5), np.nan, np.float32))
        assert fw.linalg.det(session.array(np.zeros((2, 0, 0)))).numpy(timeout=HANGS_S).tolist() == [1.0, 1.0]


def test_a_loop_gives_the_bytes_of_its_steps(service: Service) -> None:
    with service.connect() as session:
        one = x = session.array(_POSITIVE)
        for _ in range(_ITERATIONS):
            one = session.array(_turned(one).numpy(timeout=HANGS_S))
        in_a_loop = fw.fori_loop(_ITERATIONS, lambda i, x: _turned(x), x)
        assert_same_bytes(in_a_loop.numpy(timeout=HANGS_S), one.numpy(timeout=HANGS_S))


def test_clients_get_the_bytes_that_each_gets_alone(service: Service) -> None:
    with service.connect() as one, service.connect() as other:
        given = [(one, _SQUARE), (other, _POSITIVE)]
        alone = [fw.linalg.svd(session.array(x)).U.numpy(timeout=HANGS_S) for session, x in given]
        together = [fw.linalg.svd(session.array(x)).U.future() for session, x in given]
        for mine, kept in zip(together, alone, strict=True):
            assert_same_bytes(mine.result(HANGS_S), kept)


def test_a_program_says_why_it_runs_op_by_op(service: Service) -> None:
    with service.connect() as session:
        fw.linalg.svdvals(session.array(_POSITIVE)).numpy(timeout=HANGS_S)
        service.wait_until_told()
        reasons = [each["refusal"] for each in service.programs().values() if each["state"] == "refused"]
        assert any("svdvals: the array library computes it" in reason for reason in reasons)


def test_a_loop_that_solves_small_equations_gets_a_plan_and_keeps_its_bytes(service: Service) -> None:
    def step(i: Any, x: Any) -> Any:
        return fw.linalg.solve(a, x + 1.0) * 0.5

    with service.connect() as session:
        a, x = session.array(_POSITIVE), session.array(_SQUARE[:, :, :2])
        one = x
        for i in range(_ITERATIONS):
            one = session.array(step(i, one).numpy(timeout=HANGS_S))
        known = frozenset(service.programs())
        first = fw.fori_loop(_ITERATIONS, step, x).numpy(timeout=HANGS_S)

        def is_planned() -> bool:
            return any(each["tier"] > 0 for digest, each in service.programs().items() if digest not in known)

        service.wait_until(is_planned, "a plan of the loop")
        again = fw.fori_loop(_ITERATIONS, step, x).numpy(timeout=HANGS_S)
        assert_same_bytes(first, one.numpy(timeout=HANGS_S))
        assert_same_bytes(again, first)


def test_matrices_on_both_sides_of_the_limit_are_computed(service: Service) -> None:
    with service.connect() as session:
        for side in (64, 65):
            a = _RANDOM.standard_normal((2, side, side)) + side * np.eye(side)
            found = fw.linalg.solve(session.array(a), session.array(a[:, :, :1])).numpy(timeout=HANGS_S)
            np.testing.assert_allclose(found, np.eye(side)[None, :, :1].repeat(2, 0), atol=1e-12)


def test_a_result_that_nobody_reads_needs_no_memory(service: Service) -> None:
    with service.connect() as session:
        for _ in range(3):
            fw.linalg.svd(session.array(_SQUARE))
        assert session.array([1.0]).numpy(timeout=HANGS_S).tolist() == [1.0]
