"""The complex dtypes: their names, what they promote to, and what is asked about them."""

from __future__ import annotations

import pickle
from itertools import product
from typing import Any

import numpy as np
import pytest

import fusewire as fw
from fusewire_protos.errors import DtypeError
from fusewire_protos.ops import dtypes

NAMES = [*[dtype.name for dtype in dtypes.ALL if dtype is not dtypes.bfloat16], "complex64", "complex128"]
COMPLEX = (fw.complex64, fw.complex128)


@pytest.mark.parametrize(("a", "b"), [*product(NAMES, NAMES)])
def test_dtypes_promote_as_numpys(a: str, b: str) -> None:
    assert fw.promote_types(a, b).name == np.promote_types(a, b).name
    assert fw.can_cast(a, b) == np.can_cast(a, b)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("scalar", [True, 1, 1.0, 1j])
def test_a_python_scalar_adapts_to_a_dtype(name: str, scalar: Any) -> None:
    assert fw.result_type(fw.promote_types(name, name), scalar).name == np.result_type(np.dtype(name), scalar).name


def test_bfloat16_becomes_complex64() -> None:
    assert fw.promote_types(fw.bfloat16, fw.complex64) is fw.complex64
    assert fw.result_type(fw.bfloat16, 1j) is fw.complex64


@pytest.mark.parametrize("dtype", COMPLEX)
def test_a_complex_dtype_is_numpys_of_its_name(session: fw.Session, dtype: Any) -> None:
    in_numpy = np.dtype(dtype.name)
    for same in (in_numpy, in_numpy.type, dtype.name):
        assert dtype == same
        assert same == dtype
    assert (dtype.kind, dtype.itemsize, hash(dtype), np.dtype(dtype)) == (
        "c",
        in_numpy.itemsize,
        hash(in_numpy),
        in_numpy,
    )
    assert pickle.loads(pickle.dumps(dtype)) is dtype  # noqa: S301 - our own
    assert fw.zeros(1, dtype=dtype.name).dtype is dtype
    kinds = [each for each in ("complex floating", "numeric", "real floating", "bool") if fw.isdtype(dtype, each)]
    assert kinds == ["complex floating", "numeric"]
    given: Any = dtype
    assert [np.isdtype(given, kind) for kind in ("complex floating", "real floating")] == [True, False]


def test_python_and_numpy_name_the_dtypes_too(session: fw.Session) -> None:
    assert fw.zeros(1, dtype=complex).dtype is fw.complex128
    assert fw.zeros(1, dtype=np.complex64).dtype is fw.complex64


@pytest.mark.parametrize("dtype", COMPLEX)
def test_no_message_takes_a_complex_dtype(dtype: Any) -> None:
    with pytest.raises(DtypeError, match="unknown dtype code"):
        dtypes.from_code(dtype.code)
    with pytest.raises(DtypeError, match="not supported"):
        dtypes.from_numpy(np.dtype(dtype.name))
    assert dtype not in dtypes.ALL


def test_limits_are_those_of_the_parts() -> None:
    assert fw.finfo(fw.complex64) == fw.finfo(fw.float32)
    assert fw.finfo("complex128").eps == np.finfo("complex128").eps


def test_the_namespace_tells_of_complex_dtypes() -> None:
    info = fw.__array_namespace_info__()
    assert info.dtypes(kind="complex floating") == {"complex64": fw.complex64, "complex128": fw.complex128}
    assert info.default_dtypes()["complex floating"] is fw.complex128
