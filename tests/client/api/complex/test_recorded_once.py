"""Complex numbers in loops and functions whose ops are recorded once: their parts are carried and bound."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import fusewire as fw

V = np.array([1 + 2j, -3.5j, 2])


def test_a_loop_carries_complex_numbers(session: fw.Session) -> None:
    expected = V
    for i in range(5):
        expected = expected * (0.5 + 0.1j) + i
    actual = fw.fori_loop(5, lambda i, c: c * (0.5 + 0.1j) + i, session.array(V))
    np.testing.assert_allclose(actual.numpy(), expected)


def test_a_carry_holds_real_and_complex_arrays_and_numbers(session: fw.Session) -> None:
    carry = {"z": session.array(V), "x": session.array(np.ones(3)), "number": 1j}
    found = fw.fori_loop(
        3, lambda i, c: {"z": c["z"] * 1j, "x": c["x"] + abs(c["z"]), "number": c["number"] * 2}, carry
    )
    np.testing.assert_allclose(found["z"].numpy(), V * -1j)
    np.testing.assert_allclose(found["x"].numpy(), 1 + 3 * abs(V))
    assert found["number"].item() == 8j


def test_a_loop_that_makes_a_real_carry_complex_is_refused(session: fw.Session) -> None:
    with pytest.raises(fw.ArgumentError, match=r"form _, but returns _\+_j"):
        fw.fori_loop(3, lambda i, c: c * 1j, session.array(np.ones(3)))


def test_a_function_takes_and_returns_complex_numbers(session: fw.Session) -> None:
    calls = []

    @fw.function
    def product(a: Any, b: Any) -> Any:
        calls.append(a)
        return (a * b).conj(), b

    for factor in (1.0, 2.0, 3.0):
        found, real = product(session.array(V * factor), session.array(np.arange(3.0)))
        np.testing.assert_allclose(found.numpy(), (V * factor * np.arange(3)).conj())
        np.testing.assert_array_equal(real.numpy(), np.arange(3))
    assert len(calls) == 1


def test_numpys_arrays_are_uploaded_at_each_call(session: fw.Session) -> None:
    double = fw.function(lambda a: a + a)
    for factor in (1, 2):
        np.testing.assert_array_equal(double(V * factor).numpy(), V * factor * 2)


def test_an_argument_that_a_function_assigns_to_has_its_new_value(session: fw.Session) -> None:
    @fw.function
    def change(a: Any) -> Any:
        a[0] = 5j
        a *= 2
        return a.sum()

    z, host = session.array(V), V.copy()
    for _ in range(2):
        host[0] = 5j
        host *= 2
        assert change(z).item() == host.sum()
        np.testing.assert_array_equal(z.numpy(), host)


def test_an_array_from_outside_is_not_assigned_to(session: fw.Session) -> None:
    z = session.array(V)

    @fw.function
    def change(a: Any) -> Any:
        z[0] = 1
        return a

    with pytest.raises(fw.RequestError, match="assign to a copy"):
        change(session.array(V))
    np.testing.assert_array_equal(z.numpy(), V)
