"""The one NaN that computed values have."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.nans import settle

FLOATS = [dtype for dtype in dtypes.ALL if dtype.is_floating]
BITS = {dtypes.float16: 0x7E00, dtypes.bfloat16: 0x7FC0, dtypes.float32: 0x7FC00000, dtypes.float64: 0x7FF8 << 48}
ELEMENTS = 40_000  # more than are looked at together


def any_bits(dtype: DType) -> npt.NDArray[Any]:
    """Numbers, and NaNs of any sign and payload, quiet and signalling."""
    wanted = dtypes.to_numpy(dtype)
    bits = np.random.default_rng(3).integers(0, 256, ELEMENTS * wanted.itemsize, np.uint8).view(f"u{wanted.itemsize}")
    bits[::7] |= np.array(np.inf, wanted).view(bits.dtype)
    return bits.view(wanted)


@pytest.mark.parametrize("dtype", FLOATS)
def test_every_nan_becomes_the_one_and_all_else_keeps_its_bits(dtype: DType) -> None:
    before = any_bits(dtype)
    with np.errstate(all="ignore"):
        is_nan = np.isnan(before)
    unsigned = f"u{before.itemsize}"
    expected = np.where(is_nan, np.array(BITS[dtype], unsigned), before.view(unsigned))
    assert is_nan[-100:].any(), "the last ones are looked at, too"
    np.testing.assert_array_equal(settle(before.copy()).view(unsigned), expected)


@pytest.mark.parametrize("axes", [(0, 1, 2), (2, 1, 0), (1, 2, 0), (0, 2, 1)])
def test_axes_in_any_order_stay_where_they_are(axes: tuple[int, ...]) -> None:
    array = np.full((5, 3, 2), -np.nan, np.float32).transpose(axes)
    array[0, 1, 0] = 7
    settled = settle(array)
    assert settled is array
    assert settled[0, 1, 0] == 7
    assert np.signbit(settled).sum() == 0


@pytest.mark.parametrize("shape", [(), (0,), (3, 0)])
def test_one_element_and_none(shape: tuple[int, ...]) -> None:
    assert not np.signbit(settle(np.full(shape, -np.nan))).any()
