"""Promotion agrees with NumPy 2, and codes are stable."""

from __future__ import annotations

import copy
import pickle
import sys
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_protos.errors import DtypeError
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType

IN_NUMPY = [dtype for dtype in dtypes.ALL if dtype is not dtypes.bfloat16]
SCALARS = [True, 1, 1.0]
CODES = {
    "bool": 0,
    "uint8": 1,
    "int32": 2,
    "int64": 3,
    "float16": 4,
    "bfloat16": 5,
    "float32": 6,
    "float64": 7,
    "int8": 8,
    "int16": 9,
    "uint16": 10,
    "uint32": 11,
    "uint64": 12,
}


def _array(dtype: DType) -> npt.NDArray[Any]:
    return np.ones(1, dtypes.to_numpy(dtype))


def test_codes_on_the_wire_never_change() -> None:
    assert {dtype.name: dtype.code for dtype in dtypes.ALL} == CODES


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_a_copied_or_unpickled_dtype_is_the_dtype_itself(dtype: DType) -> None:
    assert copy.deepcopy(dtype) is dtype
    assert copy.copy(dtype) is dtype
    assert pickle.loads(pickle.dumps(dtype)) is dtype  # noqa: S301  # our own bytes


@pytest.mark.parametrize(("a", "b"), [*product(IN_NUMPY, repeat=2)])
def test_two_dtypes_promote_as_in_numpy(a: DType, b: DType) -> None:
    assert dtypes.promote(a, b).name == np.promote_types(a.name, b.name).name


@pytest.mark.parametrize("other", dtypes.ALL)
def test_bfloat16_promotes_as_float16_does_except_beside_it(other: DType) -> None:
    expected = {
        dtypes.bfloat16: dtypes.bfloat16,
        dtypes.float16: dtypes.float32,
        dtypes.bool_: dtypes.bfloat16,
        dtypes.uint8: dtypes.bfloat16,
        dtypes.int8: dtypes.bfloat16,
    }.get(other) or dtypes.promote(dtypes.float16, other)
    assert dtypes.promote(dtypes.bfloat16, other) is expected
    assert dtypes.promote(other, dtypes.bfloat16) is expected


@pytest.mark.parametrize(("a", "b"), [*product(dtypes.ALL, repeat=2)])
def test_promotion_is_symmetric_and_keeps_what_is_promoted_already(a: DType, b: DType) -> None:
    common = dtypes.promote(a, b)
    assert common is dtypes.promote(b, a)
    assert dtypes.promote(common, a) is common


@pytest.mark.parametrize(("value", "dtype"), [*product(SCALARS, IN_NUMPY)])
def test_a_python_scalar_is_weak_as_in_numpy(value: float, dtype: DType) -> None:
    beside = dtypes.promote(dtype, dtypes.of_scalar(value, dtype))
    assert beside.name == (_array(dtype) + value).dtype.name


@pytest.mark.parametrize("dtype", IN_NUMPY)
def test_functions_are_evaluated_in_the_dtype_that_numpy_chooses(dtype: DType) -> None:
    assert dtypes.to_floating(dtype).name == np.exp(_array(dtype)).dtype.name


@pytest.mark.parametrize("dtype", IN_NUMPY)
def test_quotients_and_means_have_the_dtype_that_numpy_chooses(dtype: DType) -> None:
    assert dtypes.quotient(dtype).name == np.divide(_array(dtype), _array(dtype)).dtype.name
    assert dtypes.quotient(dtype).name == np.mean(_array(dtype)).dtype.name


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_numpy_dtypes_translate_both_ways(dtype: DType) -> None:
    numpy_dtype = dtypes.to_numpy(dtype)
    assert dtypes.from_numpy(numpy_dtype) is dtype
    assert numpy_dtype.itemsize == dtype.itemsize_bytes


@pytest.mark.parametrize("name", ["complex64", "datetime64[s]", "O", "U3", "V4"])
def test_a_dtype_that_cannot_travel_is_refused(name: str) -> None:
    with pytest.raises(DtypeError, match="not supported"):
        dtypes.from_numpy(np.dtype(name))


@pytest.mark.parametrize("code", [-1, len(CODES), 2**31, 2**64, None, 1.5, "float32", ()])
def test_an_unknown_code_is_refused(code: object) -> None:
    with pytest.raises(DtypeError, match="unknown dtype code"):
        dtypes.from_code(code)  # type: ignore[arg-type]


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_halves_accumulate_in_float32_and_all_others_in_themselves(dtype: DType) -> None:
    expected = dtypes.float32 if dtype in (dtypes.float16, dtypes.bfloat16) else dtype
    assert dtype.accumulator is expected


def test_without_ml_dtypes_values_of_bfloat16_are_refused_with_its_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    dtypes.to_numpy.cache_clear()
    with pytest.raises(DtypeError, match="pip install ml_dtypes"):
        dtypes.to_numpy(dtypes.bfloat16)


def test_without_ml_dtypes_bfloat16_is_still_compared_with_numpys(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ml_dtypes", None)
    dtypes.to_numpy.cache_clear()
    assert dtypes.bfloat16 == "bfloat16"
    assert dtypes.bfloat16 != np.float32
    assert dtypes.bfloat16 != np.dtype("float32")
    assert np.dtype("float32") != dtypes.bfloat16


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_a_dtype_equals_numpys_of_the_same_name_from_either_side(dtype: DType) -> None:
    in_numpy = dtypes.to_numpy(dtype)
    for same in (in_numpy, in_numpy.type, dtype.name):
        assert dtype == same
        assert same == dtype


@pytest.mark.parametrize("dtype", IN_NUMPY)
def test_kind_and_itemsize_are_numpys(dtype: DType) -> None:
    in_numpy = dtypes.to_numpy(dtype)
    assert (dtype.kind, dtype.itemsize) == (in_numpy.kind, in_numpy.itemsize)


@pytest.mark.parametrize(("a", "b"), [(a, b) for a, b in product(dtypes.ALL, repeat=2) if a is not b])
def test_dtypes_of_other_names_differ(a: DType, b: DType) -> None:
    assert a != b
    assert a != dtypes.to_numpy(b)
    assert a != b.name


@pytest.mark.parametrize(
    "other", [np.dtype(">f4"), "complex64", "no dtype", "a, b c", "", np.void, DType, None, 1, [("x", "f4")]]
)
def test_a_dtype_differs_from_what_is_none_of_ours(other: object) -> None:
    assert dtypes.float32 != other


@pytest.mark.parametrize("dtype", IN_NUMPY)
def test_a_dtype_is_found_in_a_dict_by_numpys(dtype: DType) -> None:
    assert {dtype: "found"}[dtypes.to_numpy(dtype)] == "found"  # type: ignore[index]  # equal, and of equal hash


_KINDS = ("bool", "signed integer", "unsigned integer", "integral", "real floating", "complex floating", "numeric")


@pytest.mark.parametrize("dtype", IN_NUMPY)
def test_numpy_tells_the_kind_of_a_dtype_as_of_its_own(dtype: Any) -> None:
    own = dtypes.to_numpy(dtype)
    assert [np.isdtype(dtype, kind) for kind in _KINDS] == [np.isdtype(own, kind) for kind in _KINDS]
    assert [np.isdtype(dtype, each) for each in dtypes.ALL[:5]] == [dtype is each for each in dtypes.ALL[:5]]
    assert np.isdtype(own, dtype)
    assert np.issubdtype(dtype, np.floating) == np.issubdtype(own, np.floating)


def test_numpy_refuses_to_tell_the_kind_of_bfloat16() -> None:
    with pytest.raises(TypeError, match="must be a NumPy dtype"):
        np.isdtype(dtypes.bfloat16, "real floating")  # type: ignore[arg-type]  # as of the bfloat16 of NumPy arrays


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_a_dtype_has_the_attributes_of_numpys(dtype: Any) -> None:
    own = dtypes.to_numpy(dtype)
    names = ("type", "char", "str", "num", "byteorder", "isnative", "hasobject", "alignment", "names", "shape")
    assert [getattr(dtype, name) for name in names] == [getattr(own, name) for name in names]
    assert isinstance(dtype, dtypes.DType)
    assert isinstance(dtype, np.dtype)
    assert not hasattr(dtype, "no_such_name")


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_numpy_takes_a_dtype_for_one_of_its_own(dtype: DType) -> None:
    assert np.zeros(2, dtype).dtype == dtypes.to_numpy(dtype)


# ---- complex dtypes, which have no code ----

_WITH_COMPLEX = [*IN_NUMPY, *dtypes.COMPLEX]


@pytest.mark.parametrize(("a", "b"), [*product(_WITH_COMPLEX, dtypes.COMPLEX)])
def test_complex_dtypes_promote_as_numpys(a: DType, b: DType) -> None:
    expected = np.promote_types(dtypes.to_numpy(a), dtypes.to_numpy(b)).name
    assert dtypes.promote(a, b).name == dtypes.promote(b, a).name == dtypes.promote_all([a, b]).name == expected


@pytest.mark.parametrize("dtype", _WITH_COMPLEX)
def test_a_complex_scalar_makes_a_complex_dtype(dtype: DType) -> None:
    assert dtypes.of_scalar(1j, dtype).name == np.result_type(dtypes.to_numpy(dtype), 1j).name
    assert dtypes.complex_of(dtypes.part_of(dtype)) is dtypes.promote(dtype, dtypes.complex64)


@pytest.mark.parametrize("dtype", dtypes.COMPLEX)
def test_a_complex_dtype_stands_in_no_message(dtype: DType) -> None:
    assert dtype not in dtypes.ALL
    with pytest.raises(DtypeError, match="unknown dtype code"):
        dtypes.from_code(dtype.code)
