"""Calls of NumPy's functions, with NumPy's names for what they take."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._api.protocols.numpy_protocols import counterpart_of
from tests.client.peer import connect

A = np.linspace(0.1, 2, 12, dtype=np.float32).reshape(3, 4)


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.mean(a=x, axis=0),
        lambda x: np.sum(x, axis=0, out=None, keepdims=True),
        lambda x: np.var(x, axis=0, correction=1),
        lambda x: np.clip(x, a_min=0.5, a_max=1),
        lambda x: np.clip(a=x, a_min=None, a_max=1),
        lambda x: np.split(ary=x, indices_or_sections=2, axis=1)[1],
        lambda x: np.take(a=x, indices=[0, 2], axis=1),
        lambda x: np.swapaxes(x, axis1=0, axis2=1),
        lambda x: np.outer(a=x[0], b=x[1]),
        lambda x: np.outer(x[0], b=x[1]),
        lambda x: np.flip(m=x, axis=0),
        lambda x: np.roll(a=x, shift=1, axis=0),
        lambda x: np.broadcast_to(array=x[0], shape=(2, 4)),
        lambda x: np.stack(arrays=[x, x], axis=1),
        lambda x: np.full_like(a=x, fill_value=2),
    ],
)
def test_numpys_names_are_understood(session: fw.Session, function: Callable[[Any], Any]) -> None:
    actual, expected = function(session.array(A)), function(A)
    assert isinstance(actual, fw.Array)
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5, strict=True)


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (lambda x: np.concatenate([x, x], dtype="f4"), "np.concatenate .* takes no dtype, but axis"),
        (lambda x: np.take(x, [5], mode="clip"), "np.take .* takes no mode, but axis, indices"),
        (
            lambda x: np.add(x, 1, where=x.numpy() > 1),
            r"np.add takes a mask beside an out= only; write fw.where\(mask, np.add\(…\), other\)",
        ),
        (lambda x: np.add(x, 1, dtype="f8"), "np.add .* takes no dtype; cast the operands by astype"),
        (lambda x: np.logaddexp.reduce(x, initial=1), "np.logaddexp.reduce .* takes no initial; combine the result"),
        (lambda x: np.maximum.reduce(x, dtype="f8"), "np.maximum.reduce .* takes no dtype"),
        (lambda x: np.add(x, 1, casting="no"), "np.add .* takes no casting$"),
        (lambda x: np.copy(x, order="F"), "np.copy .* takes no order$"),
    ],
)
def test_an_option_of_numpys_that_there_is_not_here_is_named(
    session: fw.Session, function: Callable[[Any], Any], text: str
) -> None:
    with pytest.raises(TypeError, match=text):
        function(session.array(A))


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (np.i0, "i0"),
        (np.packbits, "packbits"),
        (np.unpackbits, "unpackbits"),
        (np.subtract.accumulate, "subtract.accumulate"),
        (np.subtract.reduce, "subtract.reduce"),
    ],
)
def test_a_function_that_there_is_not_here_says_what_to_do(
    session: fw.Session, function: Callable[[Any], Any], name: str
) -> None:
    with pytest.raises(TypeError, match=rf"^{name} does not take .*: {name}\(x\.numpy\(\)\)$"):
        function(session.array(A))


def test_what_numpy_compares_may_be_named(session: fw.Session) -> None:
    x = session.array(A)
    assert np.allclose(a=x, b=A)
    assert np.array_equal(a1=A, a2=x)
    assert np.array_equiv(a1=x, a2=A) is True
    assert (np.shape(a=x), np.size(a=x, axis=1)) == (A.shape, 4)


def test_what_numpy_asks_about_shared_memory_is_answered(session: fw.Session) -> None:
    x = session.array(A)
    for asks in (np.may_share_memory, np.shares_memory):
        assert asks(x, x)
        assert not asks(x, x[:])
        assert not asks(A, x)


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (lambda x: np.divide.at(x, [0, 0], 1), "divide.at"),
        (lambda x: np.nan_to_num(x, copy=False), "nan_to_num"),
    ],
)
def test_a_function_that_writes_is_refused_with_code_that_writes(
    session: fw.Session, write: Callable[[Any], None], name: str
) -> None:
    host = np.zeros(3)
    x = session.array(host)
    with pytest.raises(TypeError, match=rf"^{name} .*: v = np\.array\(x\); {name}\(v, …\); x\[\.\.\.\] = v$"):
        write(x)
    v = np.array(x)
    write(v)
    x[...] = v
    write(host)
    assert x.tolist() == host.tolist()


@pytest.mark.parametrize(
    "write",
    [
        lambda x, out: np.multiply(x, 3, out=out),
        lambda x, out: np.add(x, x, out),
        lambda x, out: np.hypot(x, 4.0, out=(out,)),
        lambda x, out: np.add(x[0], 1, out=out),
        lambda x, out: np.clip(x, 0.5, 1, out=out),
        lambda x, out: np.concatenate([x[:1], x[1:]], out=out),
        lambda x, out: np.add.reduce(x, axis=0, out=out[0]) + 0 * out,
        lambda x, out: np.divmod(x, 2, out=(out, None))[0],  # type: ignore[arg-type]  # NumPy takes it
        lambda x, out: np.multiply(np.ones(A.shape, np.int8), 3, out=out),
    ],
)
def test_a_result_is_written_to_an_array(session: fw.Session, write: Callable[[Any, Any], Any]) -> None:
    host, out = np.zeros_like(A), session.array(np.zeros_like(A))
    expected, actual = write(A, host), write(session.array(A), out)
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-6, strict=True)
    if actual is out:
        np.testing.assert_allclose(out.numpy(), host, rtol=1e-6, strict=True)


def test_an_output_takes_no_result_of_a_higher_kind_or_another_shape(session: fw.Session) -> None:
    x: Any = session.array(A)
    whole: Any = session.array(np.zeros(A.shape, np.int32))
    with pytest.raises(TypeError, match=r"gives float32, and out= has int32; cast it by astype"):
        np.add(x, 1, out=whole)
    with pytest.raises(ValueError, match="broadcast"):
        np.add(x, 1, out=x[0])
    assert whole.numpy().any() == False  # noqa: E712  # nothing was written


def test_an_output_on_this_machine_gets_the_values(session: fw.Session) -> None:
    x: Any = session.array([1.0, 2.0])
    host = np.zeros(2)
    given: Any = np.multiply(x, 2, out=host)
    assert given is host
    assert host.tolist() == [2, 4]
    host += x
    np.sum(x, out=host[:1].reshape(()))
    assert host.tolist() == [3, 6]


def test_an_output_on_this_machine_takes_no_higher_kind(session: fw.Session) -> None:
    x: Any = session.array([1.5, 2.5])
    host = np.zeros(2, np.int64)
    with pytest.raises(TypeError, match="same_kind"):
        host += x
    assert host.tolist() == [0, 0]


def test_numpys_own_array_takes_values_at_indices(session: fw.Session) -> None:
    host = np.zeros(3)
    np.add.at(host, session.array([0, 2, 2]), session.array([1.0, 2.0, 3.0]))
    assert host.tolist() == [1, 0, 5]


def test_functions_of_two_operands_have_the_methods_of_ufuncs(session: fw.Session) -> None:
    functions: Any = fw
    x = session.array(A)
    for name in ("add", "maximum", "logical_or"):
        ufunc: Any = getattr(np, name)
        np.testing.assert_array_equal(getattr(functions, name).reduce(x, axis=1).numpy(), ufunc.reduce(A, axis=1))
    np.testing.assert_array_equal(functions.maximum.accumulate(x).numpy(), np.maximum.accumulate(A))
    np.testing.assert_array_equal(functions.subtract.outer(x[0], x[0]).numpy(), np.subtract.outer(A[0], A[0]))
    functions.add.at(x, [0, 0], 1.0)
    expected = A.copy()
    np.add.at(expected, [0, 0], 1.0)
    np.testing.assert_array_equal(x.numpy(), expected)


def test_a_condition_alone_gives_the_places_where_it_holds(session: fw.Session) -> None:
    x = session.array(A)
    for where in (fw.where, np.where):
        found: Any = where(x > 1)
        for ours, numpys in zip(found, np.where(A > 1), strict=True):
            np.testing.assert_array_equal(ours.numpy(), numpys)
    with pytest.raises(TypeError, match="two choices"):
        fw.where(x > 1, x)  # type: ignore[call-overload]


REDUCED = [
    np.add,
    np.multiply,
    np.minimum,
    np.maximum,
    np.fmin,
    np.fmax,
    np.logical_and,
    np.logical_or,
    np.logaddexp,
]


@pytest.mark.parametrize("options", [{}, {"axis": None}, {"axis": -1, "keepdims": True}], ids=str)
@pytest.mark.parametrize("ufunc", REDUCED, ids=lambda ufunc: ufunc.__name__)
def test_a_ufunc_reduces_along_the_first_axis(session: fw.Session, ufunc: Any, options: Any) -> None:
    actual, expected = ufunc.reduce(session.array(A), **options), np.asarray(ufunc.reduce(A, **options))
    assert actual.dtype.name == expected.dtype.name
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5)


def test_a_sum_by_a_ufunc_takes_a_dtype(session: fw.Session) -> None:
    assert np.add.reduce(session.array(A), axis=1, dtype="float64").dtype == np.float64


@pytest.mark.parametrize("ufunc", [np.multiply, np.subtract, np.hypot, np.less], ids=lambda ufunc: ufunc.__name__)
def test_a_ufunc_has_an_outer_product(session: fw.Session, ufunc: Any) -> None:
    for a, b in ((session.array(A), A[0]), (A[0], session.array(A)), (session.array(A), 2.0)):
        actual = ufunc.outer(a, b)
        expected = ufunc.outer(*(each.numpy() if isinstance(each, fw.Array) else each for each in (a, b)))
        np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-6, strict=True)


def test_every_function_of_both_libraries_is_found() -> None:
    lacking = []
    for name in fw.__all__:
        numpy_function = getattr(np, name, None)
        dispatches = isinstance(numpy_function, np.ufunc) or hasattr(numpy_function, "_implementation")
        if dispatches and counterpart_of(numpy_function) is None:
            lacking.append(name)
    assert lacking == []


@pytest.mark.parametrize(
    "function",
    [
        lambda x: np.tile(A=x, reps=2),
        lambda x: np.tile(x, (2, 1)),
        lambda x: np.diag(v=x[0]),
        lambda x: np.convolve(a=x[0], v=x[1], mode="same"),
        lambda x: np.cov(m=x, y=x),
        lambda x: np.corrcoef(x=x),
        lambda x: np.vstack(tup=[x, x]),
        lambda x: np.tensordot(x, x, axes=2),
        lambda x: np.einsum("ij,ij->i", x, x, optimize=True),
        lambda x: np.nan_to_num(x, nan=1.0, copy=True),
        lambda x: np.isclose(a=x, b=x, rtol=0),
        lambda x: np.arctan2(x, x),
        lambda x: np.true_divide(x, 3),
        np.conjugate,
        lambda x: np.fabs(-x),
        np.copy,
        lambda x: np.real(val=x),
        lambda x: np.where(x > 1, x, 0),
        lambda x: np.pad(array=x, pad_width=1, constant_values=2),
        lambda x: np.diff(x, 1, 0, prepend=0),
        lambda x: np.average(x, axis=0),
        lambda x: np.meshgrid(x[0], x[1], indexing="ij")[1],
        lambda x: np.nanmax(a=x, axis=0, out=None),
    ],
)
def test_more_of_numpys_functions_take_arrays(session: fw.Session, function: Callable[[Any], Any]) -> None:
    actual, expected = function(session.array(A)), function(A)
    assert isinstance(actual, fw.Array)
    assert actual.dtype == expected.dtype
    np.testing.assert_allclose(actual.numpy(), expected, rtol=1e-5, strict=True)


def test_what_numpy_asks_about_dtypes_is_answered(session: fw.Session) -> None:
    x = session.array(A)
    assert np.result_type(x, np.int64) == np.float64
    assert np.can_cast(x, np.float64)
    assert not np.iscomplexobj(x)
    assert np.isrealobj(x)


def test_a_function_that_writes_elsewhere_needs_the_values(session: fw.Session) -> None:
    with pytest.raises(TypeError, match=r"np\.copyto\(v, x\.numpy\(\)\)$"):
        np.copyto(np.zeros(A.shape), session.array(A))
