"""Reductions as data: what each starts from changes no element, and what combines them is an op of the catalogue."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_protos.errors import DtypeError
from fusewire_protos.ops import dtypes, reductions
from fusewire_protos.ops.catalogue import BY_NAME, OPS, REDUCTIONS
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Category
from fusewire_protos.ops.reductions import Extreme, Reduction

_OPS = [op for op in OPS if op.category is Category.REDUCTION]
_NAMED = [pytest.param(reduction, id=name) for name, reduction in REDUCTIONS.items()]


def _accumulators(name: str) -> set[DType]:
    """The dtypes in which the op of a reduction combines elements."""
    found = set()
    for dtype in dtypes.ALL:
        with suppress(DtypeError):
            found.add(BY_NAME[name].dtype_rule((dtype,), ((0,), False)).operands[0].accumulator)
    return found


def _elements(dtype: DType) -> npt.NDArray[Any]:
    if dtype.is_boolean:
        return np.array([False, True])
    extremes = [-np.inf, np.inf] if dtype.is_floating else [np.iinfo(dtype.name).min, np.iinfo(dtype.name).max]
    return np.array([0, 1, 5, *extremes], dtype.name)


def test_each_reduction_of_the_catalogue_has_its_name() -> None:
    assert [op.name for op in _OPS] == [op.reduction.name for op in _OPS if op.reduction]
    assert {op.reduction for op in OPS if op.reduction} == set(REDUCTIONS.values())


@pytest.mark.parametrize("reduction", _NAMED)
def test_the_identity_changes_no_element(reduction: Reduction) -> None:
    for dtype in _accumulators(reduction.name):
        elements = _elements(dtype)
        identity = np.full_like(elements, reduction.identity_in(dtype))
        combined = getattr(np, reduction.combine)(identity, elements)
        if reduction.position_of is None:
            np.testing.assert_array_equal(combined, elements)
        else:
            assert not combined.any(), "the identity is better than no element"


@pytest.mark.parametrize("reduction", _NAMED)
def test_an_op_of_two_elements_combines_in_the_accumulator(reduction: Reduction) -> None:
    op = BY_NAME[reduction.combine]
    assert (op.category, op.least_operands, op.attributes) == (Category.POINTWISE, 2, ())
    for dtype in _accumulators(reduction.name):
        result = dtypes.bool_ if reduction.position_of else dtype
        assert op.dtype_rule((dtype, dtype), ()) == ((dtype, dtype), result)


def test_only_a_reduction_with_one_identity_for_all_dtypes_takes_nothing() -> None:
    assert [name for name, reduction in REDUCTIONS.items() if reduction.takes_nothing] == ["sum", "prod", "any", "all"]
    assert [reductions.PROD.of_nothing, reductions.MAX.of_nothing] == [1, 0]


@pytest.mark.parametrize(
    ("dtype", "least", "greatest"),
    [
        (dtypes.bool_, 0, 1),
        (dtypes.int8, -128, 127),
        (dtypes.uint64, 0, 2**64 - 1),
        (dtypes.float64, -np.inf, np.inf),
    ],
)
def test_an_extreme_is_the_last_value_of_its_dtype(dtype: DType, least: float, greatest: float) -> None:
    bounds = [Reduction("of", extreme, "maximum").identity_in(dtype) for extreme in (Extreme.LEAST, Extreme.GREATEST)]
    assert bounds == [least, greatest]
