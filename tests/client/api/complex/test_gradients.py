"""Gradients by and through complex numbers: dL/dx + i dL/dy of a real L, held to central differences."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusewire as fw

Z = np.array([0j, 1 + 1j, -0.5 + 2j, 2.5, -0.3j])
_STEP = 1e-6


def _hermitian(z: Any) -> Any:
    made = z[:3, None] * fw.asarray([1.0, 2.0, -1.0j])
    return made + made.mH + z[4].real


LOSSES: dict[str, Any] = {
    "eigvalsh": lambda z: fw.linalg.eigvalsh(_hermitian(z))[0],
    "size": lambda z: abs(z).sum(),
    "square of the size": lambda z: (abs(z) ** 2).sum(),
    "product": lambda z: (z * z * (1 + 2j)).imag.sum(),
    "quotient": lambda z: (1 / (z + 1)).real.sum(),
    "quotient by imaginary numbers": lambda z: (1 / (1j * (z.real + 1))).imag.sum(),
    "reciprocal": lambda z: fw.reciprocal(z + 1).imag.sum(),
    "power": lambda z: ((z + 3) ** 1.5).imag.sum(),
    "whole power": lambda z: (z**3).real.sum(),
    "sqrt": lambda z: fw.sqrt(z + 2).imag.sum(),
    "exp": lambda z: fw.exp(z).imag.sum(),
    "expm1": lambda z: fw.expm1(z).imag.sum(),
    "log": lambda z: fw.log(z + 3).imag.sum(),
    "log1p": lambda z: fw.log1p(z).real.sum(),
    "sin": lambda z: fw.sin(z).imag.sum(),
    "cos": lambda z: fw.cos(z).imag.sum(),
    "tan": lambda z: fw.tan(z).imag.sum(),
    "sinh": lambda z: fw.sinh(z).imag.sum(),
    "cosh": lambda z: fw.cosh(z).real.sum(),
    "tanh": lambda z: fw.tanh(z).real.sum(),
    "asin": lambda z: fw.asin(z * 0.3 + 0.1).imag.sum(),
    "acos": lambda z: fw.acos(z * 0.3 + 0.1).imag.sum(),
    "atan": lambda z: fw.atan(z * 0.3 + 0.1).imag.sum(),
    "asinh": lambda z: fw.asinh(z * 0.3).real.sum(),
    "acosh": lambda z: fw.acosh(z * 0.1 + 2).imag.sum(),
    "atanh": lambda z: fw.atanh(z * 0.1).real.sum(),
    "sign": lambda z: fw.sign(z + 1).imag.sum(),
    "prod": lambda z: (z + 1).prod().imag,
    "cumulative_prod": lambda z: fw.cumulative_prod(z + 1).real.sum(),
    "var": lambda z: z.var(),
    "matmul": lambda z: abs(z @ z.conj()),
    "conj": lambda z: (z.conj() * z * z).imag.sum(),
    "norm": fw.linalg.norm,
    "elements": lambda z: (z[1:] * z[:-1]).real.sum(),
    "where": lambda z: fw.where(z.real > 0.2, z, 2j * z).imag.sum(),
    "eigenvectors": lambda z: abs(fw.linalg.eigh(_hermitian(z)).eigenvectors[0, 1]),
    "det": lambda z: fw.linalg.det(_hermitian(z) + 1j * z[3]).imag,
    "inv": lambda z: fw.linalg.inv(_hermitian(z) + 9).real.sum(),
    "pinv": lambda z: fw.linalg.pinv(_hermitian(z)[:, :2] + z[3]).imag[0, 1],
    "lstsq": lambda z: abs(fw.linalg.lstsq(_hermitian(z)[:, :2] + z[3], z[:3])[0]).sum(),
    "nuclear norm": lambda z: fw.linalg.norm(_hermitian(z)[:, :2], "nuc"),
    "matrix_power": lambda z: fw.linalg.matrix_power(_hermitian(z) + 3j * fw.eye(3), -2).imag.sum(),
    "a loop": lambda z: abs(fw.fori_loop(3, lambda i, c: c * z + 1, z)).sum(),
}


@pytest.mark.parametrize("name", LOSSES)
def test_a_gradient_is_that_by_both_parts(session: fw.Session, name: str) -> None:
    loss = LOSSES[name]
    gradient = fw.grad(loss)(session.array(Z))
    assert gradient.dtype is fw.complex128
    np.testing.assert_allclose(gradient.numpy(), _differences(session, loss), rtol=1e-6, atol=1e-6)


def _differences(session: fw.Session, loss: Any) -> Any:
    def slope(direction: Any) -> float:
        ends = [loss(session.array(Z + side * direction)).item() for side in (_STEP, -_STEP)]
        return float(ends[0] - ends[1]) / (2 * _STEP)

    return np.array([slope(unit) + 1j * slope(1j * unit) for unit in np.eye(Z.size)])


def test_a_real_argument_has_a_real_gradient_through_complex_numbers(session: fw.Session) -> None:
    x = np.array([1.0, 2.0])
    gradient = fw.grad(lambda x: abs(fw.exp(1j * x * x) + 1).sum())(session.array(x))
    assert gradient.dtype is fw.float64
    np.testing.assert_allclose(gradient.numpy(), -2 * x * np.sin(x * x) / abs(np.exp(1j * x * x) + 1))


def test_a_step_against_the_gradient_makes_the_loss_less(session: fw.Session) -> None:
    z = session.array(Z)
    loss = lambda z: (abs(z - (1 + 2j)) ** 2).sum()  # noqa: E731
    for _ in range(50):
        z = z - 0.1 * fw.grad(loss)(z)
    np.testing.assert_allclose(z.numpy(), np.full(Z.shape, 1 + 2j), rtol=1e-3)


def test_numpys_arrays_and_nested_arguments_are_taken(session: fw.Session) -> None:
    gradient = fw.grad(lambda given: (abs(given["z"]) ** 2).sum() + given["x"])({"z": Z, "x": 1.0})
    np.testing.assert_allclose(gradient["z"].numpy(), 2 * Z)
    assert gradient["x"].item() == 1


def test_an_argument_may_be_assigned_to(session: fw.Session) -> None:
    def loss(z: Any) -> Any:
        z[0] = 2 * z[1]
        return (abs(z) ** 2).sum()

    np.testing.assert_allclose(fw.grad(loss)(session.array(Z)).numpy(), 2 * Z * [0, 5, 1, 1, 1])


def test_both_parts_of_a_gradient_are_assigned_to_apart(session: fw.Session) -> None:
    gradient = fw.grad(lambda z: (z.real + z.imag).sum())(session.array(Z))
    gradient[0] = 5 - 7j
    np.testing.assert_array_equal(gradient.numpy(), [5 - 7j, *[1 + 1j] * 4])


def test_cotangents_of_complex_results_are_complex(session: fw.Session) -> None:
    value, pull_back = fw.vjp(lambda z: z * z, session.array(Z))
    (pulled,) = pull_back(session.array(np.full(Z.shape, 1 + 1j)))
    np.testing.assert_allclose(value.numpy(), Z * Z)
    np.testing.assert_allclose(pulled.numpy(), (1 + 1j) * 2 * Z.conj())


def test_a_complex_loss_has_no_gradient(session: fw.Session) -> None:
    with pytest.raises(fw.DtypeError, match="returns arrays of floats, not of complex128"):
        fw.grad(lambda z: z.sum())(session.array(Z))
