"""Composite ops against their meaning in float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from fusewire_kernels.ops.composites import expand
from fusewire_kernels.ops.reference import twin
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Category
from fusewire_protos.ops.shapes import Spec
from tests.attributes import sample_attributes
from tests.kernels.op_by_op import run_op_by_op
from tests.roundings import allowance
from tests.tolerances import assert_close

_CASES: list[tuple[str, tuple[Any, ...], tuple[float, ...]]] = [
    ("mean", ((1,), False), ()),
    ("mean", ((0, 1), True), ()),
    ("var", ((1,), False), (1.0,)),
    ("var", ((0,), True), (0.0,)),
    ("std", ((0, 1), False), (0.0,)),
    ("logsumexp", ((1,), False), ()),
    ("logsumexp", ((0,), True), ()),
    ("softmax", ((1,),), ()),
    ("softmax", ((0, 1),), ()),
    ("log_softmax", ((0,),), ()),
    ("layer_norm", ((1,),), (1e-3,)),
]


def _run(name: str, attributes: tuple[Any, ...], operands: list[Any]) -> Any:
    specs = tuple(Spec(dtypes.from_numpy(operand.dtype), operand.shape) for operand in operands)
    expansion = expand(catalogue.BY_NAME[name], specs, attributes)
    return run_op_by_op(expansion.program, operands, expansion.constants)[0]


def _operands(dtype: DType, scalars: tuple[float, ...]) -> list[Any]:
    numbers = np.random.default_rng(0).standard_normal((5, 7)) * 3
    return [np.asarray(each, dtypes.to_numpy(dtype)) for each in (numbers, *scalars)]


@pytest.mark.parametrize(("name", "attributes", "scalars"), _CASES)
@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16, dtypes.float32, dtypes.float64])
def test_an_expansion_means_what_the_op_means(
    name: str, attributes: tuple[Any, ...], scalars: tuple[float, ...], dtype: DType
) -> None:
    op, operands = catalogue.BY_NAME[name], _operands(dtype, scalars)
    wanted = twin(op)(np, operands, attributes, ())
    assert_close(_run(name, attributes, operands), wanted, op, dtype, allowance(op, operands, attributes, dtype))


def test_halves_are_summed_without_rounding_to_half_in_between() -> None:
    many = np.full(4096, 1.0009765625, np.float16)
    assert _run("mean", ((0,), False), [many]) == many[0]


def test_integers_are_averaged_in_float64() -> None:
    result = _run("mean", ((0,), False), [np.array([1, 2], np.int32)])
    assert result.dtype == np.float64
    assert result == 1.5


def test_logsumexp_of_only_negative_infinity_is_negative_infinity() -> None:
    with np.errstate(divide="ignore"):
        assert _run("logsumexp", ((0,), False), [np.full(3, -np.inf)]) == -np.inf


@pytest.mark.parametrize("name", ["softmax", "log_softmax", "layer_norm"])
def test_no_rows_are_normalised_to_no_rows(name: str) -> None:
    operands = [np.zeros((0, 3), np.float16), np.array(1e-3, np.float16)][: 1 + (name == "layer_norm")]
    assert _run(name, ((1,),), operands).shape == (0, 3)


def test_every_composite_op_has_an_expansion_of_primitives() -> None:
    for op in catalogue.OPS:
        if op.category is Category.COMPOSITE:
            operands = (Spec(dtypes.float16, (2, 3)), Spec(dtypes.float32, ()))[: op.least_operands]
            expansion = expand(op, operands, sample_attributes(op, (1,)))
            assert len(expansion.constants) == len(expansion.program.scalars)
            assert all(part.op.category is not Category.COMPOSITE for part in expansion.program.ops)


def test_an_op_that_is_no_composite_has_no_expansion() -> None:
    with pytest.raises(LookupError, match="no expansion"):
        expand(catalogue.BY_NAME["add"], (Spec(dtypes.float32, ()),) * 2, ())
