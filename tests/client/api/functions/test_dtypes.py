"""Questions about dtypes, answered as NumPy does."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import fusewire as fw
from fusewire_protos.ops import dtypes

NAMES = [dtype.name for dtype in (*dtypes.ALL, *dtypes.COMPLEX) if dtype is not dtypes.bfloat16]
KINDS = ["bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric"]


@pytest.mark.parametrize("kind", [*KINDS, ("bool", "integral"), "float32"])
def test_a_dtype_is_of_numpys_kinds(kind: Any) -> None:
    in_numpy = np.dtype(kind) if kind == "float32" else kind
    for name in NAMES:
        given = fw.float32 if kind == "float32" else kind
        assert fw.isdtype(name, given) == np.isdtype(np.dtype(name), in_numpy)


def test_an_unknown_kind_and_no_dtype_are_refused() -> None:
    with pytest.raises(ValueError, match="no kind of dtypes"):
        fw.isdtype(fw.float32, "floating")
    with pytest.raises(TypeError, match="no dtype"):
        fw.isdtype("no such", "numeric")


@pytest.mark.parametrize("to", NAMES)
def test_casts_are_safe_where_numpys_are(to: str) -> None:
    for name in NAMES:
        assert fw.can_cast(name, to) == np.can_cast(name, to)
        assert fw.promote_types(name, to).name == np.promote_types(name, to).name
        assert fw.result_type(np.dtype(name), np.zeros(1, to)).name == np.result_type(name, to).name


def test_a_python_scalar_has_no_dtype_to_cast() -> None:
    with pytest.raises(TypeError):
        fw.can_cast(1, fw.int8)


@pytest.mark.parametrize("scalar", [True, 1, 1.0])
def test_a_python_scalar_adapts_to_a_dtype(scalar: float) -> None:
    for name in NAMES:
        assert fw.result_type(fw.promote_types(name, name), scalar).name == np.result_type(np.dtype(name), scalar).name


def test_nothing_has_no_common_dtype() -> None:
    with pytest.raises(ValueError, match="at least one"):
        fw.result_type()


@pytest.mark.parametrize("name", ["float16", "bfloat16", "float32", "float64"])
def test_limits_of_floats_are_numpys(name: str) -> None:
    ours = fw.finfo(name)
    theirs = ml_dtypes.finfo(dtypes.to_numpy(dtypes.BY_NAME[name]))  # type: ignore[no-untyped-call]
    for field in ("bits", "eps", "max", "min", "smallest_normal", "smallest_subnormal", "tiny"):
        assert getattr(ours, field) == float(getattr(theirs, field))
    assert ours.dtype is dtypes.BY_NAME[name]


@pytest.mark.parametrize("name", ["int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"])
def test_limits_of_integers_are_numpys(name: str) -> None:
    ours, theirs = fw.iinfo(np.zeros(1, name)), np.iinfo(name)
    assert (ours.bits, ours.max, ours.min) == (theirs.bits, theirs.max, theirs.min)


def test_limits_of_another_kind_are_refused() -> None:
    with pytest.raises(fw.DtypeError, match="use iinfo"):
        fw.finfo("int8")
    with pytest.raises(fw.DtypeError, match="an integer dtype"):
        fw.iinfo("bool")
