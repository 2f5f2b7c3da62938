"""What `x.at[key]` returns, held to NumPy's `ufunc.at`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fusewire as fw
from tests.client.api.indexing.test_assignment import DATA, broadcastable, gathering_keys, on_server
from tests.client.peer import connect

METHODS = {"add": np.add, "subtract": np.subtract, "multiply": np.multiply, "min": np.minimum, "max": np.maximum}
NUMBERS = np.arange(-12.0, 12).reshape(DATA.shape)  # exact, however they are summed


@pytest.fixture(scope="module")
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


@settings(deadline=None)
@given(data=st.data(), key=gathering_keys(), method=st.sampled_from([*METHODS]))
def test_all_values_of_an_element_count(session: fw.Session, key: Any, method: str, data: st.DataObject) -> None:
    shape = data.draw(broadcastable(NUMBERS[key].shape))
    value: Any = data.draw(st.sampled_from([2, np.arange(np.prod(shape)).reshape(shape) % 3 - 1.0]))
    expected = NUMBERS.copy()
    of_each = np.broadcast_to(value, (1,) * (np.ndim(value) - expected[key].ndim) + expected[key].shape)
    METHODS[method].at(expected, key, of_each.reshape(expected[key].shape))
    for form in (key, on_server(session, key)):
        x = session.array(NUMBERS)
        result = getattr(x.at[form], method)(value)
        np.testing.assert_array_equal(result.numpy(), expected, strict=True)
        np.testing.assert_array_equal(x.numpy(), NUMBERS, strict=True)


@pytest.mark.parametrize("key", [1, (slice(None), 2), ..., (0, slice(1, 3), None)])
def test_basic_keys_have_one_value_for_each_element(session: fw.Session, key: Any) -> None:
    expected = NUMBERS.copy()
    expected[key] += 3
    np.testing.assert_array_equal(session.array(NUMBERS).at[key].add(3).numpy(), expected, strict=True)


def test_set_and_get_are_assignment_and_item(session: fw.Session) -> None:
    x = session.array([1, 2, 3])
    assert x.at[[0, 0]].set([8, 9]).tolist() == [9, 2, 3]
    assert x.at[1:].get().tolist() == [2, 3]
    assert x.tolist() == [1, 2, 3]


@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "bfloat16", "float32"])
def test_the_dtype_stays(session: fw.Session, dtype: str) -> None:
    x = session.array([1, 2, 3], dtype=dtype).at[[2, 2, 0]].add(1)
    assert (x.dtype.name, x.tolist()) == (dtype, [2, 2, 5])


def test_elements_that_nothing_goes_to_keep_their_bits(session: fw.Session) -> None:
    x = session.array([-0.0, 1.0])
    assert np.signbit(x.at[[1]].add(1.0).numpy()).tolist() == [True, False]


def test_a_value_of_a_higher_kind_is_refused_as_in_place(session: fw.Session) -> None:
    x = session.array([1, 2])
    for value in (0.5, np.float32(1), [0.5, 1.5]):
        with pytest.raises(fw.DtypeError, match="add keeps int64, but the values are float"):
            x.at[[0, 1]].add(value)
    with pytest.raises(fw.DtypeError):
        session.array([True]).at[[0]].add(1)


@pytest.mark.parametrize(
    ("key", "value", "error"), [([2], 1, IndexError), ([0, 1], [1, 2, 3], fw.ShapeError), ([0.5], 1, IndexError)]
)
def test_what_does_not_fit_raises(session: fw.Session, key: Any, value: Any, error: type[Exception]) -> None:
    with pytest.raises(error):
        session.array([1, 2]).at[key].add(value)


def test_a_body_adds_at_indices_of_the_server(session: fw.Session) -> None:
    places = session.array([0, 2, 2])
    result = fw.fori_loop(3, lambda i, x: x.at[places].add(x[0] + 1), session.array([0, 0, 0]))
    expected = np.zeros(3, np.int64)
    for _ in range(3):
        np.add.at(expected, [0, 2, 2], expected[0] + 1)
    np.testing.assert_array_equal(result.numpy(), expected, strict=True)
