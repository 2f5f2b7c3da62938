"""Arrays viewed as another dtype, held to NumPy."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire_protos.ops import dtypes
from tests.client.peer import connect

_NAMES = [dtype.name for dtype in (*dtypes.ALL, *dtypes.COMPLEX)]
_REAL = [name for name in _NAMES if name not in ("bool", "bfloat16", "complex64", "complex128")]


@pytest.fixture(scope="module", autouse=True)
def session() -> Iterator[fw.Session]:
    with connect().session as opened:
        yield opened


def _numbers(name: str) -> Any:
    """Returns a matrix without NaN, whose rows have 128 bytes: NumPy's NaNs may lose bits where they are copied."""
    raw = np.random.default_rng(0).integers(0, 2 if name == "bool" else 128, (3, 128), dtype=np.uint8)
    raw[:, 1::2] &= 0x3F  # no float has all bits of an exponent
    return raw.view(_dtype(name).dtype)


def _dtype(name: str) -> fw.DType:
    found: fw.DType = (dtypes.BY_NAME | dtypes.COMPLEX_BY_NAME)[name]
    return found


@pytest.mark.parametrize(("given", "wanted"), [*product(_NAMES, _NAMES)])
def test_the_bits_are_those_of_numpys_view(session: fw.Session, given: str, wanted: str) -> None:
    host = _numbers(given)
    expected = host.view(np.uint8) != 0 if wanted == "bool" else host.view(_dtype(wanted).dtype)
    np.testing.assert_array_equal(session.array(host).view(wanted).numpy(), expected, strict=True)


@pytest.mark.parametrize("name", ["float16", "float32", "float64"])
def test_a_nan_keeps_its_bits_both_ways(session: fw.Session, name: str) -> None:
    size_bytes = _dtype(name).itemsize_bytes
    bits = np.full(3, -1, f"int{8 * size_bytes}")
    floats = session.array(bits).view(name)
    assert np.isnan(floats.numpy()).all()
    np.testing.assert_array_equal(floats.view(bits.dtype).numpy(), bits)
    of_computed = (floats + 1).view(bits.dtype).numpy()
    np.testing.assert_array_equal(of_computed, np.full(3, np.nan, name).view(bits.dtype))


@pytest.mark.parametrize("name", _REAL)
def test_an_array_of_rank_0_is_viewed_in_its_size(session: fw.Session, name: str) -> None:
    host = _numbers(name)[0, 0]
    wanted = f"uint{8 * host.itemsize}"
    np.testing.assert_array_equal(session.array(host).view(wanted).numpy(), host.view(wanted), strict=True)


@pytest.mark.parametrize(("shape", "expected"), [((2, 0), (2, 0)), ((0, 4), (0, 2))])
def test_an_array_without_elements_has_the_shape_of_its_view(shape: Any, expected: Any) -> None:
    assert fw.zeros(shape, dtype="float32").view("float64").shape == expected


def test_a_view_is_a_value_and_without_a_dtype_a_copy(session: fw.Session) -> None:
    x = session.array(np.array([1, 2], np.float32))
    seen, same = x.view("int32"), x.view()
    seen[0] = 0
    same[1] = 0
    assert x.tolist() == [1, 2]


@pytest.mark.parametrize(
    ("shape", "dtype", "error", "text"),
    [
        ((3,), "float64", fw.ArgumentError, "the last axis has 12 bytes, which is no multiple of the 8 bytes"),
        ((), "float64", fw.ArgumentError, "an array of rank 0 has no axis"),
        ((2,), "V3", fw.DtypeError, "not supported"),
    ],
)
def test_what_cannot_be_viewed_is_refused(shape: Any, dtype: str, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        fw.zeros(shape, dtype="float32").view(dtype)
