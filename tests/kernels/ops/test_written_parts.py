"""An op of which a part is missing is refused with the name of the part and its place."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from fusewire_kernels.build import build_plan
from fusewire_kernels.ops.reference import twin
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.op import Attributes, Op
from fusewire_protos.ops.reductions import Reduction
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import Program, ProgramOp, build

_DIALECTS = ("c", "cuda")


def _forgotten(like: str, **changes: Any) -> Op:
    """An op as another one, of which nothing but the entry is written."""
    return replace(BY_NAME[like], name="forgotten", code=250, **changes)


def _program(op: Op, attributes: Attributes = ()) -> Program:
    inputs = (Spec(dtypes.float32, (3, 4)),) * op.least_operands
    return build(inputs, (), [ProgramOp(op, tuple(range(len(inputs))), attributes)], (0,))


@pytest.mark.parametrize("like", ["tanh", "sum", "mean", "transpose", "take", "cumulative_sum"])
def test_an_op_without_a_twin_is_named(like: str) -> None:
    with pytest.raises(LookupError, match=r"^forgotten has no NumPy twin: add it to _RULES in ops/twin_rules\.py$"):
        twin(_forgotten(like))(np, [np.ones((3, 4))], ((0,), False), ())


@pytest.mark.parametrize("dialect", _DIALECTS)
@pytest.mark.parametrize(
    ("like", "attributes", "missing"),
    [
        ("add", (), "body: add it to BODIES in ops/bodies.py"),
        ("mean", ((0,), False), "expansion: add it to _FORMULAS in ops/composites.py"),
        ("transpose", ((1, 0),), "layout: add it to VIEWS in graph/views.py"),
        ("concat", (0,), "maker: add it to _MAKER_OF_OP in graph/op_builder.py"),
    ],
)
def test_an_op_without_a_body_is_named(like: str, attributes: Attributes, missing: str, dialect: str) -> None:
    with pytest.raises(LookupError) as refused:
        build_plan(_program(_forgotten(like), attributes), dialect)
    assert str(refused.value) == f"forgotten has no {missing}"


@pytest.mark.parametrize("dialect", _DIALECTS)
def test_a_reduction_by_an_op_without_a_body_names_that_op(dialect: str, monkeypatch: pytest.MonkeyPatch) -> None:
    reduction = Reduction("forgotten", 0, "not_written")
    monkeypatch.setitem(catalogue.REDUCTIONS, reduction.name, reduction)
    with pytest.raises(LookupError, match=r"^not_written has no body: add it to BODIES in ops/bodies\.py$"):
        build_plan(_program(_forgotten("sum", reduction=reduction), ((1,), False)), dialect)


@pytest.mark.parametrize("dialect", _DIALECTS)
def test_a_reduction_in_a_dtype_that_its_op_does_not_take_names_both(
    dialect: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    reduction = Reduction("forgotten", 0, "bitwise_or")
    monkeypatch.setitem(catalogue.REDUCTIONS, reduction.name, reduction)
    with pytest.raises(LookupError, match=r"^bitwise_or has no body for float32$"):
        build_plan(_program(_forgotten("sum", reduction=reduction), ((1,), False)), dialect)
