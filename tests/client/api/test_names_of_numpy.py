"""Names that are about no array on the server mean what they mean in NumPy, so that `fw` may stand for `np`."""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire._api.names_of_numpy import ABOUT_NO_ARRAY, MAKE_ARRAYS, OTHER_NAMES
from tests.client.peer import connect

A = np.arange(6.0).reshape(2, 3)
NAMESPACE: Any = fw


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened, connect().session:  # the second one is the default session
        yield opened


@pytest.mark.parametrize("name", ABOUT_NO_ARRAY)
def test_a_name_about_no_array_is_numpys_own(name: str) -> None:
    assert getattr(fw, name) is getattr(np, name)
    assert name not in fw.__all__


@pytest.mark.parametrize("name", OTHER_NAMES)
def test_another_name_of_numpys_is_the_same(name: str) -> None:
    ours, numpys = getattr(fw, name), getattr(np, name, np.vstack)  # newer versions have no row_stack
    assert ours is getattr(fw, OTHER_NAMES[name])
    if isinstance(ours, fw.DType):
        assert ours == numpys


def test_the_class_of_arrays_has_numpys_name_for_annotations(session: fw.Session) -> None:
    assert isinstance(session.array(A), NAMESPACE.ndarray)


def test_what_numpy_reads_from_files_and_iterators_is_uploaded() -> None:
    assert {*MAKE_ARRAYS} <= {*dir(np)}
    made = [NAMESPACE.fromiter(iter([1, 2]), dtype="int32"), NAMESPACE.loadtxt(["1 2", "3 4"])]
    assert [each.tolist() for each in made] == [[1, 2], [[1.0, 2.0], [3.0, 4.0]]]
    assert all(isinstance(each, fw.Array) for each in made)


def test_what_numpy_computes_of_coefficients_is_uploaded_and_a_polynomial_takes_arrays(session: fw.Session) -> None:
    roots = NAMESPACE.roots(session.array([1.0, -3.0, 2.0]))
    assert isinstance(roots, fw.Array)
    np.testing.assert_allclose(np.asarray(roots), [2, 1])
    quotient, rest = NAMESPACE.polydiv(session.array([1.0, -3.0, 2.0]), [1.0, -1.0])
    assert (quotient.tolist(), rest.tolist(), rest.session) == ([1.0, -2.0], [0.0], session)
    polynomial = NAMESPACE.poly1d(session.array([1.0, -3.0, 2.0]))
    assert isinstance(polynomial, NAMESPACE.poly1d)
    assert (str(polynomial), polynomial(4.0)) == (str(np.poly1d([1.0, -3.0, 2.0])), 6.0)
    assert polynomial(session.array(A)).tolist() == np.poly1d([1.0, -3.0, 2.0])(A).tolist()
    of_ours: Any = np.poly1d(session.array([1.0, -3.0, 2.0]))
    assert str(of_ours) == str(polynomial)
    np.testing.assert_allclose([*map(float, of_ours.deriv().coeffs)], [2, -3])


def test_what_numpy_computes_of_arrays_is_uploaded_to_their_session(session: fw.Session) -> None:
    x = session.array([1.0, 2.0])
    assert fw.default_session() is not session
    assert [NAMESPACE.roots(x).session, NAMESPACE.polyadd(a1=[1.0], a2=x).session] == [session, session]


def test_a_function_of_one_element_is_called_with_the_values(session: fw.Session) -> None:
    assert NAMESPACE.vectorize(lambda x: x if x > 2 else 0)(session.array(A)).tolist() == [[0, 0, 0], [3, 4, 5]]
    assert [place for place, x in NAMESPACE.ndenumerate(session.array(A)) if x > 4] == [(1, 2)]


def test_an_iterator_of_numpys_reads_arrays_and_refuses_to_write_to_them(session: fw.Session) -> None:
    x = session.array(A)
    assert sum(each for each in NAMESPACE.nditer(x)) == A.sum()
    assert [float(a + b) for a, b in NAMESPACE.nditer([x, A])] == (A + A).ravel().tolist()
    outer, inner = NAMESPACE.nested_iters(op=x, axes=[[0], [1]])
    assert [[float(each) for each in inner] for _ in outer] == A.tolist()
    with pytest.raises(ValueError, match="read-only"):
        NAMESPACE.nditer(x, op_flags=["readwrite"])
    with pytest.raises(ValueError, match="read-only"):
        NAMESPACE.nditer([A, x], op_flags=[["readonly"], ["writeonly"]])
    with pytest.raises(ValueError, match="read-only"):
        NAMESPACE.nested_iters(x, [[0], [1]], op_flags=[["readwrite"]])


def test_the_assertions_of_numpy_take_arrays(session: fw.Session) -> None:
    x = session.array(A)
    NAMESPACE.testing.assert_equal(x, A)
    NAMESPACE.testing.assert_allclose(x * (1 + 1e-9), x, rtol=1e-6)
    with pytest.raises(AssertionError, match="Not equal"):
        NAMESPACE.testing.assert_allclose(x + 1, x)
    with pytest.raises(AttributeError, match="has no attribute 'serve'"):
        NAMESPACE.testing.serve  # noqa: B018


def test_what_is_saved_is_read_and_loaded_again(session: fw.Session) -> None:
    for save in (NAMESPACE.save, np.save):
        file = io.BytesIO()
        save(file, session.array(A))
        file.seek(0)
        np.testing.assert_array_equal(NAMESPACE.load(file).numpy(), A)
    text = io.StringIO()
    np.savetxt(text, session.array(A))
    assert len(text.getvalue().splitlines()) == 2
    assert np.array2string(session.array(A)) == np.array2string(A)  # type: ignore[arg-type]


def test_a_dtype_makes_scalars_and_casts_arrays(session: fw.Session) -> None:
    for name in ("float32", "int64", "uint8"):
        ours, numpys = getattr(fw, name), getattr(np, name)
        assert (type(ours(2)), ours(2), ours()) == (numpys, numpys(2), numpys())
    casts: Any = fw.int32
    assert (casts(session.array(A)).dtype, casts(A).dtype) == (fw.int32, np.int32)
    assert (str(fw.float32), f"{fw.int8}", repr(fw.int8)) == ("float32", "int8", "fusewire.int8")
    with pytest.raises(ValueError, match="could not convert"):
        fw.float32("text")
