"""Scalar bodies as data: which expression a dtype has, and how long a chain of operations it is."""

from __future__ import annotations

import pytest

from fusewire_kernels.ops.bodies import BODIES, HEAVY_WEIGHT, weight
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import OPS
from fusewire_protos.ops.op import Category


def test_every_pointwise_op_has_a_body_and_each_body_an_op() -> None:
    named = {op.name for op in OPS if op.category is Category.POINTWISE} - {"astype"}
    assert named | {"random_bits"} == set(BODIES)


def test_classes_of_dtypes_have_expressions_of_their_own() -> None:
    add, maximum = BODIES["add"], BODIES["maximum"]
    assert (add.template(dtypes.float32), add.template(dtypes.int8)) == ("{0} + {1}", "fw_add_{t}({0}, {1})")
    assert maximum.template(dtypes.bfloat16) == maximum.template(dtypes.float64) != maximum.template(dtypes.float16)


@pytest.mark.parametrize(("name", "dtype"), [("exp", dtypes.int32), ("logical_or", dtypes.float32)])
def test_a_dtype_that_an_op_does_not_compute_in_has_no_expression(name: str, dtype: dtypes.DType) -> None:
    assert BODIES[name].template(dtype) is None


def test_rounding_to_a_half_makes_a_chain_longer_unless_the_op_only_selects() -> None:
    assert weight("add", dtypes.float16) > weight("add", dtypes.float32)
    assert weight("where", dtypes.float16) == weight("where", dtypes.float32)


def test_a_function_is_a_long_chain() -> None:
    assert weight("add", dtypes.float16) < HEAVY_WEIGHT <= weight("tanh", dtypes.float32)
