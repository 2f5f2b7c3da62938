"""Functions with the parameters of NumPy's: `out=` beside `where=`, and operands by NumPy's names."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

FUSEWIRE: Any = fw  # a type checker sees no parameter that a function gets when the namespace is made
A = np.linspace(-2, 2, 12).reshape(3, 4)
MASK = A > -1


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize("name", ["exp", "negative", "cbrt", "fabs", "sign"])
def test_a_ufunc_of_one_operand_writes_where_a_mask_is_true(session: fw.Session, name: str) -> None:
    host, out = np.full(A.shape, 7.0), session.array(np.full(A.shape, 7.0))
    result = getattr(fw, name)(session.array(A), out=out, where=MASK)
    getattr(np, name)(A, out=host, where=MASK)
    assert result is out
    np.testing.assert_allclose(out.numpy(), host, rtol=1e-14, strict=True)


@pytest.mark.parametrize("name", ["add", "divide", "hypot", "maximum", "power", "copysign"])
def test_a_ufunc_of_two_operands_writes_where_a_mask_is_true(session: fw.Session, name: str) -> None:
    host, out = np.full(A.shape, 7.0), session.array(np.full(A.shape, 7.0))
    getattr(fw, name)(session.array(np.abs(A)), session.array(A), out=out, where=session.array(MASK))
    getattr(np, name)(np.abs(A), A, out=host, where=MASK)
    np.testing.assert_allclose(out.numpy(), host, rtol=1e-14, strict=True)


def test_numpys_ufunc_writes_where_a_mask_is_true(session: fw.Session) -> None:
    out: Any = fw.zeros(A.shape)
    x: Any = session.array(A)
    np.divide(1.0, x, out=out, where=MASK)
    np.testing.assert_allclose(out.numpy(), np.divide(1.0, A, out=np.zeros(A.shape), where=MASK), strict=True)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "cumsum", "argmax", "median"])
def test_a_function_along_an_axis_writes_to_its_output(session: fw.Session, name: str) -> None:
    expected = np.asarray(getattr(np, name)(A, axis=0))
    out = session.array(np.zeros_like(expected))
    assert getattr(FUSEWIRE, name)(session.array(A), axis=0, out=out) is out
    np.testing.assert_allclose(out.numpy(), expected, rtol=1e-14, strict=True)


def test_an_output_on_this_machine_gets_the_chosen_elements(session: fw.Session) -> None:
    host = np.zeros(A.shape)
    assert FUSEWIRE.add(session.array(A), 1, out=host, where=MASK) is host
    np.testing.assert_array_equal(host, np.where(MASK, A + 1, 0))


def test_several_results_have_an_output_each(session: fw.Session) -> None:
    fraction, whole = fw.zeros(A.shape), fw.zeros(A.shape)
    FUSEWIRE.modf(session.array(A), out=(fraction, whole))
    for ours, numpys in zip((fraction, whole), np.modf(A), strict=True):
        np.testing.assert_allclose(ours.numpy(), numpys, rtol=1e-14)


def test_an_output_of_a_lower_kind_is_refused(session: fw.Session) -> None:
    with pytest.raises(TypeError, match=r"exp gives float64, and out= has int64; cast it by astype"):
        fw.exp(session.array(A), out=fw.zeros(A.shape, "int64"))


def test_what_is_no_array_is_refused_as_an_output(session: fw.Session) -> None:
    with pytest.raises(TypeError, match="sum writes to an array, not to list"):
        FUSEWIRE.sum(session.array(A), out=[0.0])


def test_a_mask_alone_is_refused(session: fw.Session) -> None:
    with pytest.raises(TypeError, match=r"exp takes a mask beside an out= only; write fw.where\(mask, exp\(…\), other"):
        fw.exp(session.array(A), where=MASK)


def test_the_signature_names_the_parameter() -> None:
    assert "out" in inspect.signature(fw.hypot).parameters
    assert [*inspect.signature(fw.sum).parameters].count("where") == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda xp, x: xp.sum(a=x, axis=0),
        lambda xp, x: xp.clip(x, a_min=-1, a_max=1),
        lambda xp, x: xp.clip(x, a_min=None, a_max=1),
        lambda xp, x: xp.tile(x, reps=2),
        lambda xp, x: xp.quantile(x, q=0.5, axis=1),
        lambda xp, x: xp.append(arr=x, values=x, axis=1),
        lambda xp, x: xp.split(x, indices_or_sections=3)[1],
        lambda xp, x: xp.searchsorted(x[0], v=x[1]),
        lambda xp, x: xp.polyval(p=x[0], x=x),
    ],
)
def test_operands_have_numpys_names_too(session: fw.Session, call: Any) -> None:
    np.testing.assert_allclose(call(fw, session.array(A)).numpy(), call(np, A), rtol=1e-14, strict=True)


def test_values_to_write_have_a_name(session: fw.Session) -> None:
    host, x = A.copy(), session.array(A)
    places = np.argsort(-A, axis=1)
    np.put_along_axis(host, places, values=A, axis=1)
    FUSEWIRE.put_along_axis(x, places, values=A, axis=1)
    np.testing.assert_array_equal(x.numpy(), host)


def test_an_unknown_name_is_refused(session: fw.Session) -> None:
    with pytest.raises(TypeError, match="unexpected keyword argument 'array'"):
        FUSEWIRE.tile(array=session.array(A), reps=2)


def test_aliases_are_one_function() -> None:
    assert FUSEWIRE.acos is FUSEWIRE.arccos
