"""The tolerances refuse what is plainly wrong, for every op that has one, and take what is off by its last rounding."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from fusewire_kernels.ops.conversions import cast
from fusewire_kernels.ops.reference import twin
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Category, Op
from tests.attributes import sample_attributes
from tests.roundings import EXACT_OF_ONE, allowance
from tests.strategies import OF_SMALL_MATRICES, PLANNED
from tests.tolerances import EXACT_BUT_FOR_ZEROS, assert_close

Array = npt.NDArray[Any]
Wrong = Callable[[Array], Array]

_FLOATS = (dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64)
_REDUCING = {Category.REDUCTION, Category.COMPOSITE}
_OF_SEGMENTS = {"segment_sum", "segment_prod"}
_SEGMENT = 3  # elements
_CASES = [
    pytest.param(op, dtype, length, id=f"{op.name}-{dtype.name}-{length}")
    for op, dtype, length in product(PLANNED, _FLOATS, (9, 3001))
    if op not in OF_SMALL_MATRICES
    and not op.is_exact
    and op.name not in EXACT_BUT_FOR_ZEROS
    and (op.category in _REDUCING or length == 9)
    if op.name != "prod" or length == 9  # more factors leave nothing
]


def _zeros(right: Array) -> Array:
    return np.zeros_like(right)


def _half_as_much_again(right: Array) -> Array:
    return right * 1.5


@pytest.mark.parametrize("wrong", [_zeros, _half_as_much_again])
@pytest.mark.parametrize(("op", "dtype", "length"), _CASES)
def test_wrong_results_are_refused(op: Op, dtype: DType, length: int, wrong: Wrong) -> None:
    operands, attributes = _operands(op, dtype, length), _attributes(op)
    right = np.asarray(twin(op)(np, operands, attributes, ()))
    given = cast(np, wrong(_exactly(right, dtype)), dtypes.float64, dtype)
    with pytest.raises(AssertionError) as refused:
        assert_close(np.asarray(given), right, op, dtype, allowance(op, operands, attributes, dtype))
    differing = int(str(refused.value).partition(" of ")[0])
    assert differing >= 0.99 * right.size, "nearly all are refused: the others are zero, or nearly"


@pytest.mark.parametrize(("op", "dtype", "length"), _CASES)
def test_results_one_place_off_are_taken(op: Op, dtype: DType, length: int) -> None:
    operands, attributes = _operands(op, dtype, length), _attributes(op)
    right = np.asarray(twin(op)(np, operands, attributes, ()))
    given = (right.view(f"u{dtype.itemsize_bytes}") + 1).view(right.dtype)
    assert_close(given, right, op, dtype, allowance(op, operands, attributes, dtype))


@pytest.mark.parametrize("dtype", _FLOATS, ids=lambda dtype: dtype.name)
def test_nothing_is_said_of_a_quotient_of_what_is_as_good_as_zero(dtype: DType) -> None:
    op, attributes = catalogue.BY_NAME["layer_norm"], ((0,),)
    operands = [np.full(7, 0.1, dtypes.to_numpy(dtype)), np.zeros((), dtypes.to_numpy(dtype))]
    assert np.isinf(allowance(op, operands, attributes, dtype)).all()


@pytest.mark.parametrize("op", [op for op in catalogue.OPS if op.name in EXACT_OF_ONE], ids=lambda op: op.name)
def test_nothing_is_allowed_to_what_is_made_of_one_element(op: Op) -> None:
    operands, attributes = _operands(op, dtypes.float32, 1), _attributes(op)
    assert allowance(op, operands, attributes, dtypes.float32) == 0.0


def _operands(op: Op, dtype: DType, length: int) -> list[Array]:
    """Numbers about one; a setting of a composite op is a half."""
    random = np.random.default_rng(5)
    if op.name in _OF_SEGMENTS:
        values = np.random.default_rng(5).uniform(0.5, 1.5, length)
        return [np.asarray(cast(np, values, dtypes.float64, dtype)), np.arange(length) // _SEGMENT]
    count = 1 if op.category in _REDUCING else op.least_operands
    shape = (3, 3) if op.category is Category.PRODUCT else (length,)
    numbers = [random.uniform(0.5, 1.5, shape) for _ in range(count)]
    settings = [np.asarray(0.5)] * (op.least_operands - count)
    return [np.asarray(cast(np, each, dtypes.float64, dtype)) for each in (*numbers, *settings)]


def _attributes(op: Op) -> Attributes:
    return (0, 3) if op.name in _OF_SEGMENTS else sample_attributes(op)


def _exactly(values: Array, dtype: DType) -> Array:
    return np.asarray(cast(np, values, dtype, dtypes.float64))
