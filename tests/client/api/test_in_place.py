"""`x += v` and the like keep the array object, its dtype and its shape, as in NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from tests.client.peer import connect

DTYPES = ("bool", "uint8", "int32", "int64", "float16", "float32", "float64")
ARITHMETIC = (
    operator.iadd,
    operator.isub,
    operator.imul,
    operator.itruediv,
    operator.ifloordiv,
    operator.imod,
    operator.ipow,
)
BITWISE = (operator.iand, operator.ior, operator.ixor, operator.ilshift, operator.irshift)

In_place = Callable[[Any, Any], Any]


@pytest.fixture(scope="module")
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def outcome(change: In_place, x: Any, value: Any) -> Any:
    """Returns the dtype and the elements after an assignment in place, or the name of the error that it raises."""
    try:
        x = change(x, value)
    except TypeError:
        return "TypeError"
    return x.dtype.name, x.tolist()


@pytest.mark.parametrize("change", [*ARITHMETIC, *BITWISE], ids=lambda change: change.__name__)
@pytest.mark.parametrize("left", DTYPES)
def test_any_two_dtypes_give_what_they_give_in_numpy(session: fw.Session, change: In_place, left: str) -> None:
    for right in DTYPES:
        x, value = np.array([3, 1, 2]).astype(left), np.array([1, 1, 2]).astype(right)
        assert outcome(change, session.array(x), session.array(value)) == outcome(change, x.copy(), value), right


@pytest.mark.parametrize("value", [2, 2.5, True, np.float64(0.1), np.float32(0.1), np.int64(3), [1.0, 2.0, 3.0]])
@pytest.mark.parametrize("dtype", ["int32", "float32"])
def test_any_scalar_gives_what_it_gives_in_numpy(session: fw.Session, dtype: str, value: Any) -> None:
    x = np.array([3, 1, 2]).astype(dtype)
    assert outcome(operator.imul, session.array(x), value) == outcome(operator.imul, x.copy(), value)


def test_a_weight_stays_float32_if_its_step_is_float64(session: fw.Session) -> None:
    w = session.array(np.ones((2, 3), np.float32))
    w -= np.sqrt(2.0) * session.array(np.ones((2, 3)))
    assert w.dtype == np.float32


def test_the_shape_stays(session: fw.Session) -> None:
    x = session.array(np.ones(1))
    with pytest.raises(fw.ShapeError, match=r"keeps the shape \(1,\), but its result has \(3,\)"):
        x += np.ones(3)
    assert x.tolist() == [1.0]


def test_an_array_of_rank_0_becomes_any_other_as_a_scalar_of_numpy_does(session: fw.Session) -> None:
    total, expected = session.array(np.arange(3)).sum(), np.arange(3).sum()
    total += np.full(2, 0.5)
    expected += np.full(2, 0.5)
    assert (total.dtype.name, total.tolist()) == (expected.dtype.name, expected.tolist())


@pytest.mark.parametrize("change", [operator.iadd, operator.isub, operator.imul, operator.itruediv])
@pytest.mark.parametrize("value", [2.0, np.full(3, 2.0), [1.0, 2.0, 4.0]])
def test_all_names_of_the_array_show_the_new_value(session: fw.Session, change: In_place, value: Any) -> None:
    x, host = session.array([3.0, 1.0, 2.0]), np.array([3.0, 1.0, 2.0])
    other, before = x, x + 0
    assert change(x, value) is x
    change(host, value)
    assert other.tolist() == host.tolist()
    assert before.tolist() == [3.0, 1.0, 2.0]


def test_a_loop_over_parameters_changes_them(session: fw.Session) -> None:
    parameters = [session.array(np.ones((2, 2))), session.array(np.zeros(3, np.float32))]
    for _ in range(40):
        for parameter in parameters:
            parameter -= 0.5 * (parameter - 2.0)  # noqa: PLW2901  # the object changes
    assert np.allclose(parameters[0].numpy(), 2.0)
    assert np.allclose(parameters[1].numpy(), 2.0)


def test_a_function_changes_its_argument(session: fw.Session) -> None:
    def scale(x: Any) -> None:
        x *= 3

    x = session.array([1, 2])
    scale(x)
    assert x.tolist() == [3, 6]


def test_a_slice_that_is_changed_is_assigned_back(session: fw.Session) -> None:
    x = session.array(np.zeros((2, 2)))
    x[0] += 1
    x[:, 1] *= 5
    assert x.tolist() == [[1, 5], [0, 0]]


def test_other_names_keep_an_array_of_rank_0_as_they_keep_a_number(session: fw.Session) -> None:
    total = session.array([1.0, 2.0]).sum()
    before = total
    total += 1
    assert (before.item(), total.item()) == (3.0, 4.0)


def test_a_body_changes_its_own_arrays_and_refuses_those_from_outside(session: fw.Session) -> None:
    outside = session.array([1.0, 2.0])

    def body(_: Any, x: Any) -> Any:
        x += 1
        x *= 2
        return x

    assert fw.fori_loop(2, body, outside).tolist() == [10.0, 14.0]
    assert outside.tolist() == [1.0, 2.0]
    with pytest.raises(fw.RequestError, match="cannot assign to an array from outside"):
        fw.fori_loop(2, lambda i, x: x + outside.__iadd__(1), outside)


def test_a_product_in_place_has_the_matrix_on_its_right(session: fw.Session) -> None:
    x, w = np.arange(4.0).reshape(2, 2), np.array([[0.0, 1.0], [2.0, 3.0]])
    changed = session.array(x)
    changed @= session.array(w)
    np.testing.assert_array_equal(changed.numpy(), x @ w)


def test_what_is_no_operand_is_refused_as_by_the_operator(session: fw.Session) -> None:
    x = session.array(np.ones(3))
    with pytest.raises(TypeError):
        x += object()
