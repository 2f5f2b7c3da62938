"""`x[key]`: a key that comes again is the same op, and is not read again."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as npst

import fusewire as fw
from fusewire._api.indexing import keys
from fusewire._recording.recorded_ops import name_of_key
from fusewire._recording.recorder import Recorder
from fusewire.testing import session_in_memory
from tests.client.peer import connect
from tests.patience import HANGS_S

SHAPE = (4, 3, 5)
DATA = np.arange(60, dtype=np.float32).reshape(SHAPE)


@pytest.fixture(scope="module")
def x() -> fw.Array:
    return connect().session.array(DATA)


def records_of(x: fw.Array, key: Any) -> tuple[list[int], list[Any]]:
    """Records `x[key]`. Returns its records without references to values, and these values."""
    recorder: Recorder = x._recorder
    first = recorder.next_number
    x[key]
    records = recorder.between(first, recorder.next_number)
    return records[records >= 0].tolist()[:2], recorder.values_of(records)


@given(npst.basic_indices(SHAPE, allow_newaxis=True, max_dims=6))
def test_a_key_that_comes_again_picks_what_numpy_picks(x: fw.Array, key: Any) -> None:
    for _ in range(3):
        assert x[key].shape == DATA[key].shape
    np.testing.assert_array_equal(x[key].numpy(timeout=HANGS_S), DATA[key])


@given(npst.basic_indices(SHAPE, allow_newaxis=True, max_dims=6))
def test_a_key_that_comes_again_is_recorded_as_before(x: fw.Array, key: Any) -> None:
    assert records_of(x, key) == records_of(x, key)


def test_a_key_that_comes_again_is_not_read(x: fw.Array, monkeypatch: pytest.MonkeyPatch) -> None:
    for key in (slice(1, 3), (slice(None), 2), (..., None), (0, 1, 2), (slice(0, 4, 2), slice(1, None))):
        x[key]
        with monkeypatch.context() as patched:
            patched.setattr(keys, "read_index", None)
            assert x[key].shape == DATA[key].shape


def test_a_boolean_is_a_mask_although_it_equals_a_known_integer(x: fw.Array) -> None:
    assert x[1].shape == (3, 5)
    assert x[True].shape == (1, *DATA.shape)
    assert x[:, False].shape == DATA[:, False].shape


def test_another_shape_gives_the_same_key_another_meaning(x: fw.Array) -> None:
    assert x[-1].shape == (3, 5)
    assert x[:2][-1].shape == (3, 5)
    np.testing.assert_array_equal(x[:2][-1].numpy(timeout=HANGS_S), DATA[1])


def test_a_known_key_selects_from_an_array_of_another_thread(x: fw.Array) -> None:
    with ThreadPoolExecutor(1) as executor:
        other = executor.submit(lambda: x * 2).result(timeout=HANGS_S)
    assert x[1:3].shape == other[1:3].shape
    np.testing.assert_array_equal(other[1:3].numpy(timeout=HANGS_S), 2 * DATA[1:3])


def test_an_integer_of_numpy_selects_what_pythons_does(x: fw.Array) -> None:
    for _ in range(2):
        assert records_of(x, np.int64(2)) == records_of(x, 2)
        np.testing.assert_array_equal(x[np.int32(1) : np.uint8(3)].numpy(timeout=HANGS_S), DATA[1:3])


def test_a_key_out_of_range_raises_each_time(x: fw.Array) -> None:
    for _ in range(2):
        with pytest.raises(IndexError, match="index 4 is out of range for axis 0 of length 4"):
            x[4]


@pytest.mark.parametrize(
    "key",
    [
        np.int64(4),
        np.array(-5),
        [4],
        [[0], [-5]],
        (slice(None), [0, 3]),
        (..., np.array([-6])),
        np.array([2**63], np.uint64),
        (0, 2**70),
        1.0,
        np.float32(1),
        np.array(1.0),
        [0.0],
        "name",
        [None],
        [True, False],
        (slice(None), np.ones(4, bool)),
        (0, np.ones((3, 4), bool)),
    ],
)
def test_an_index_that_numpy_refuses_raises_as_there(x: fw.Array, key: Any) -> None:
    for indexed in (DATA, x):
        with pytest.raises(IndexError):
            indexed[key]


@pytest.mark.parametrize(("indices", "axis"), [(60, None), ([-61], None), ([[0, 3]], 1), (np.array([-6]), -1)])
def test_take_refuses_an_index_out_of_range_as_numpy_does(x: fw.Array, indices: Any, axis: int | None) -> None:
    for take in (
        lambda: np.take(DATA, indices, axis),
        lambda: fw.take(x, indices, axis),
        lambda: x.take(indices, axis),
    ):
        with pytest.raises(IndexError):
            take()


@pytest.mark.parametrize("dtype", ["int8", "uint16", "uint64", "int32"])
def test_indices_of_any_integer_dtype_select(x: fw.Array, dtype: str) -> None:
    indices = np.array([2, 0], dtype)
    np.testing.assert_array_equal(x[:, indices].numpy(timeout=HANGS_S), DATA[:, indices])
    np.testing.assert_array_equal(x.take(indices).numpy(timeout=HANGS_S), DATA.take(indices))


@given(data=st.data(), dtype=st.sampled_from(["int8", "int16", "int64", "uint8", "uint64"]), length=st.integers(1, 400))
@settings(deadline=None, max_examples=50)
def test_indices_on_the_server_count_as_in_numpy_however_narrow_their_dtype(
    x: fw.Array, data: st.DataObject, dtype: str, length: int
) -> None:
    bounds = np.iinfo(dtype)
    numbers = st.integers(max(-length, int(bounds.min)), min(length - 1, int(bounds.max)))
    indices = np.array(data.draw(st.lists(numbers, min_size=1, max_size=4)), dtype)
    host = np.arange(2 * length).reshape(length, 2)
    vector, matrix, at = x.session.array(host[:, 0]), x.session.array(host), x.session.array(indices)
    for found, expected in (
        (vector[at], host[indices, 0]),
        (vector.take(at), host[indices, 0]),
        (fw.take_along_axis(vector, at, 0), host[indices, 0]),
        (matrix[at, at * 0], host[indices, 0]),
    ):
        np.testing.assert_array_equal(found.numpy(timeout=HANGS_S), expected)
    matrix[at] = -1
    host[indices] = -1
    np.testing.assert_array_equal(matrix.numpy(timeout=HANGS_S), host)


def test_an_index_beyond_int64_means_the_last_place_as_any_other_too_great_one(x: fw.Array) -> None:
    indices = x.session.array(np.array([0, 2**63 - 1, 2**63, 2**64 - 1], np.uint64))
    columns = x.shape[1] - 1
    for found in (x[:, indices], x.take(indices, 1), x[indices * 0, indices][None]):
        expected = DATA[: len(found), [0, columns, columns, columns]]
        np.testing.assert_array_equal(found.numpy(timeout=HANGS_S), expected)


def test_a_float_on_the_server_is_no_index(x: fw.Array) -> None:
    with pytest.raises(IndexError, match="this one is float32"):
        x[x[0, 0]]


@pytest.mark.parametrize("at", [lambda x: x[[4]], lambda x: x.take([-5], 0), lambda x: x.__setitem__([4], 0)])
def test_a_body_is_refused_at_the_line_of_an_index_out_of_range(x: fw.Array, at: Any) -> None:
    with pytest.raises(IndexError, match="out of range for axis 0 of length 4"):
        fw.fori_loop(2, lambda i, carry: at(carry), x)
    with pytest.raises(IndexError, match="out of range for axis 0 of length 4"):
        fw.function(at)(x)


@pytest.mark.parametrize(
    ("key", "other"),
    [((0, 1, 2), slice(0, 1, 2)), (slice(1, 2), (1, 2, None)), ((slice(1), 2), (slice(1), None)), (0, (0, ...))],
)
def test_different_keys_have_different_names(key: Any, other: Any) -> None:
    assert name_of_key(key) != name_of_key(other)


@pytest.mark.parametrize(
    ("key", "other"),
    [(np.int64(1), 1), ((0, np.uint8(2)), (0, 2)), (slice(np.int32(-1), None, np.int64(2)), slice(-1, None, 2))],
)
def test_an_integer_of_numpy_has_the_name_of_pythons(key: Any, other: Any) -> None:
    named, expected = name_of_key(key), name_of_key(other)
    assert named == expected
    assert [type(part) for part in named or ()] == [type(part) for part in expected or (None,)]


@pytest.mark.parametrize(
    "key",
    [
        True,
        (0, False),
        np.True_,
        slice(np.True_),
        [0],
        (0, np.arange(2)),
        np.array(1),
        slice(1.0),
        slice(slice),
        slice,
        "name",
        (0, (1, 2)),
    ],
)
def test_a_key_of_anything_else_has_no_name(key: Any) -> None:
    assert name_of_key(key) is None


@pytest.mark.parametrize("shape", [(0,), (0, 3), (2, 0), (0, 0)], ids=str)
def test_a_mask_without_elements_fits_any_axis_and_selects_nothing(shape: tuple[int, ...]) -> None:
    data, mask = np.arange(24.0).reshape(2, 3, 4), np.zeros(shape, np.bool_)
    with session_in_memory() as session:
        x = session.array(data)
        for key in (mask, session.array(mask)):
            np.testing.assert_array_equal(x[key], data[mask], strict=True)
            x[key] = 1.0
        np.testing.assert_array_equal(x, data)


def test_a_mask_without_elements_of_another_length_is_refused() -> None:
    with session_in_memory() as session, pytest.raises(IndexError, match="does not fit"):
        session.array(np.zeros((2, 3)))[np.zeros((0, 5), np.bool_)]
