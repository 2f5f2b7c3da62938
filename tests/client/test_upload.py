"""What is read of the things that are uploaded, held to NumPy."""

from __future__ import annotations

import array
from typing import Any

import numpy as np
import pytest

from fusewire._upload import host_of, sendable, spec_of
from fusewire_protos import dtypes
from fusewire_protos.dtypes import DType


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


@pytest.mark.parametrize("data", [np.array([300, -1]), np.int64(300), [1.5, 2.5], 7, True])
def test_everything_else_is_cast_as_in_numpy(data: Any) -> None:
    np.testing.assert_array_equal(sent(data, dtypes.uint8), np.asarray(data, np.uint8))
