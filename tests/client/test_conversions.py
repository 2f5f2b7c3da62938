"""Casts on the client, held to those of the server."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire._conversions import Host, cast
from fusewire_kernels.ops.reference import twin
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType
from tests.strategies import arrays, specs
from tests.tolerances import assert_same_bytes

NAN, INF = float("nan"), float("inf")
FLOATS = [dtype for dtype in dtypes.ALL if dtype.is_floating]
WIDTHS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


def _as_the_server_casts(values: Host, target: DType) -> Host:
    return np.asarray(twin(BY_NAME["astype"])(np, [values], (target.code,), ()))


@pytest.mark.parametrize("target", dtypes.ALL)
@given(data=st.data(), spec=specs())
def test_the_client_casts_as_the_server_does(target: DType, data: st.DataObject, spec: Any) -> None:
    values = data.draw(arrays(spec))
    assert_same_bytes(cast(values, dtypes.to_numpy(target)), _as_the_server_casts(values, target))


@pytest.mark.parametrize("target", dtypes.ALL)
@pytest.mark.parametrize("source", FLOATS)
@given(bits=st.binary(min_size=64, max_size=64))
def test_any_bits_of_a_float_are_cast_as_on_the_server(source: DType, target: DType, bits: bytes) -> None:
    values = np.frombuffer(bits, dtypes.to_numpy(source))
    assert_same_bytes(cast(values, dtypes.to_numpy(target)), _as_the_server_casts(values, target))


@pytest.mark.parametrize("source", [*(dtype.name for dtype in FLOATS), "longdouble", ">f4"])
@pytest.mark.parametrize("target", WIDTHS)
def test_floats_saturate_to_integers_of_every_width_and_nan_is_zero(source: str, target: str) -> None:
    dtype = dtypes.to_numpy(dtypes.bfloat16) if source == "bfloat16" else np.dtype(source)
    values = np.array([NAN, INF, -INF, -0.0, 1.75, -0.5], dtype)
    limits = np.iinfo(target)
    assert cast(values, np.dtype(target)).tolist() == [0, limits.max, limits.min, 0, 1, 0]


def test_a_cast_of_nothing_is_no_copy() -> None:
    values = np.ones((2, 3), np.float32)
    assert cast(values, np.dtype(np.float32)) is values


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_a_float_whose_bytes_are_put_in_order_keeps_its_bits_those_of_nan_too(dtype: Any) -> None:
    wanted = np.arange(-9, 9, dtype=f"i{np.dtype(dtype).itemsize}").view(dtype)
    swapped = wanted.byteswap().view(wanted.dtype.newbyteorder())
    assert_same_bytes(cast(swapped, wanted.dtype), wanted)


@pytest.mark.parametrize("target", [np.float64, np.uint8])
def test_a_cast_of_columns_is_in_the_order_in_which_it_travels(target: Any) -> None:
    columns = np.ones((3, 2), np.float32).T
    assert cast(columns, np.dtype(target)).flags.c_contiguous


def test_floats_of_more_than_a_block_are_cast_whole_and_in_order() -> None:
    values = np.linspace(-4e9, 4e9, 300_006).reshape(6, -1)[:, ::-1]
    expected = np.clip(np.trunc(values), -(2**31), 2**31 - 1).astype("int32")
    np.testing.assert_array_equal(cast(values, np.dtype("int32")), expected, strict=True)
