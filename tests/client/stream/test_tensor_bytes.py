"""What is read of the things that are uploaded, held to NumPy."""

from __future__ import annotations

import array
from itertools import product
from typing import Any

import numpy as np
import pytest

from fusewire._errors import DtypeError
from fusewire._stream.tensor_bytes import host_of, sendable, spec_of
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType

NAN, INF = float("nan"), float("inf")


def sent(data: Any, dtype: DType | None) -> Any:
    """`data` as it would travel."""
    host = host_of(data, dtype)
    return sendable(host, spec_of(host, dtype))


@pytest.mark.parametrize("data", [b"abc", bytearray(b"abc"), memoryview(b"abc"), array.array("B", b"abc")])
def test_a_buffer_of_bytes_is_an_array_of_uint8(data: Any) -> None:
    host = sent(data, None)
    assert host.dtype == np.uint8
    assert host.tolist() == [97, 98, 99]


def test_bytes_become_the_dtype_asked_for() -> None:
    assert sent(b"ab", dtypes.float32).tolist() == [97.0, 98.0]


@pytest.mark.parametrize("data", [300, -1, [1, 300], [[-1]]])
def test_a_python_integer_that_the_dtype_cannot_hold_overflows_as_in_numpy(data: Any) -> None:
    with pytest.raises(OverflowError):
        np.array(data, dtype="uint8")
    with pytest.raises(OverflowError):
        sent(data, dtypes.uint8)


@pytest.mark.parametrize(
    ("number", "dtype"),
    [(2**63, dtypes.int64), *product([-(2**63) - 1, 2**70], [None, dtypes.int64])],
)
def test_a_python_integer_beyond_int64_is_named(number: int, dtype: DType | None) -> None:
    for data in (number, [number], [(True,), (number,)]):
        with pytest.raises(OverflowError, match=f"^{number} is out of range for int64"):
            sent(data, dtype)


@pytest.mark.parametrize(
    ("data", "dtype", "wrong"),
    [
        ([-1, 2**63], dtypes.int64, 2**63),
        ((1, 2**63), dtypes.int32, 2**63),
        ([300, 1.5], dtypes.uint8, 300),
        ([[1.5], [-1]], dtypes.uint8, -1),
    ],
)
def test_a_python_integer_beside_others_is_never_rounded_to_fit(data: Any, dtype: DType, wrong: int) -> None:
    with pytest.raises(OverflowError, match=f"^{wrong} is out of range for {dtype.name}"):
        sent(data, dtype)


def test_integers_beside_floats_stay_exact() -> None:
    assert sent([2**53 + 1, 0.5], dtypes.int64).tolist() == [2**53 + 1, 0]


def test_floats_of_numpy_in_a_list_saturate_too() -> None:
    assert sent([np.float64(300.0), np.float64(-1)], dtypes.uint8).tolist() == [255, 0]


def test_what_makes_an_array_is_asked_for_it_once() -> None:
    class Made:
        asked = 0

        def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
            self.asked += 1
            return np.arange(3.0)

    made = Made()
    assert sent(made, dtypes.int32).tolist() == [0, 1, 2]
    assert made.asked == 1


def test_floats_hold_a_python_integer_beyond_int64() -> None:
    assert sent([2**70], dtypes.float32).tolist() == [2.0**70]


@pytest.mark.parametrize("data", [np.array([1j]), np.complex128(1), [np.complex128(2)], [[1, 2j]]])
def test_a_dtype_that_cannot_travel_is_named_whatever_its_values(data: Any) -> None:
    with pytest.raises(DtypeError, match="complex128"):
        sent(data, None)


@pytest.mark.parametrize("data", [np.array([3e9, NAN, -INF, 300.0]), [3e9, NAN, -INF, 300.0]])
@pytest.mark.parametrize(("dtype", "expected"), [("int32", [2**31 - 1, 0, -(2**31), 300]), ("uint8", [255, 0, 0, 255])])
def test_floats_saturate_on_their_way_to_integers(data: Any, dtype: str, expected: list[int]) -> None:
    assert sent(data, dtypes.BY_NAME[dtype]).tolist() == expected


@pytest.mark.parametrize(("number", "expected"), [(3e9, 2**31 - 1), (NAN, 0), (np.float32(-INF), -(2**31))])
def test_a_single_float_saturates_too(number: Any, expected: int) -> None:
    assert sent(number, dtypes.int32).tolist() == expected


@pytest.mark.parametrize("data", [np.array([300, -1]), np.int64(300), [1.5, 2.5], 7, True])
def test_everything_else_is_cast_as_in_numpy(data: Any) -> None:
    np.testing.assert_array_equal(sent(data, dtypes.uint8), np.asarray(data, np.uint8))


@pytest.mark.parametrize("shape", [(4,), (2, 2), (1, 4), (4, 1, 1)])
def test_any_byte_of_a_boolean_but_zero_is_sent_as_one(shape: tuple[int, ...]) -> None:
    mask = np.array([0, 1, 2, 255], np.uint8).view(bool).reshape(shape)
    travelling = sent(mask, None)
    assert travelling.shape == shape
    assert travelling.tobytes() == bytes([0, 1, 1, 1])


def test_any_byte_of_a_single_boolean_but_zero_is_sent_as_one() -> None:
    travelling = sent(np.array(255, np.uint8).view(bool), None)
    assert isinstance(travelling, np.ndarray)
    assert travelling.tobytes() == b"\1"


def test_booleans_that_can_be_sent_as_they_lie_are_not_copied() -> None:
    mask = np.array([True, False])
    assert np.shares_memory(sent(mask, None), mask)


@pytest.mark.parametrize("mask", [np.zeros(0, bool), np.array(True), np.True_])
def test_few_booleans_are_sent_too(mask: Any) -> None:
    np.testing.assert_array_equal(sent(mask, None), mask, strict=True)


def test_a_python_integer_that_only_uint64_holds_is_uint64() -> None:
    assert sent([2**63], None).dtype == np.uint64
