"""The catalogue is consistent in itself, and its rules are NumPy's but for the stated exceptions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire_protos.errors import ArgumentError, DtypeError, ShapeError
from fusewire_protos.ops import catalogue, dtypes, inference
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Attributes, Category, Op
from fusewire_protos.ops.shapes import Region, Shape, Spec
from tests import golden_files, strategies
from tests.attributes import sample_attributes

AS_NUMPY: dict[str, Callable[..., Any]] = {
    **{
        name: getattr(np, name)
        for name in (
            *("add", "subtract", "multiply", "divide", "floor_divide", "remainder", "power", "minimum", "maximum"),
            *("equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "clip", "where"),
            *("logical_and", "logical_or", "logical_xor", "logical_not", "bitwise_and", "bitwise_or", "bitwise_xor"),
            *("isnan", "isinf", "isfinite", "negative", "abs", "sign", "square", "round", "floor", "ceil", "trunc"),
            *("sqrt", "exp", "expm1", "log", "log1p", "exp2", "log2", "log10", "sin", "cos", "tan", "tanh"),
        )
    },
    "atan2": np.arctan2,
    "bitwise_invert": np.invert,
    "gcd": np.gcd,
    "bitwise_left_shift": np.left_shift,
    "bitwise_right_shift": np.right_shift,
}
REDUCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(np, name) for name in ("sum", "prod", "min", "max", "any", "all", "argmin", "argmax", "mean")},
    "var": np.var,
    "std": np.std,
}
# Where NumPy's dtype is not ours: (op, dtype of all operands) → ours. NumPy counts in int8 and uint64, which do not
# travel, and rounds booleans to float16.
EXCEPTIONS: dict[tuple[str, DType], DType] = {
    ("round", dtypes.bool_): dtypes.bool_,
}
COMPARED = [dtype for dtype in dtypes.ALL if dtype is not dtypes.bfloat16]


def _op(name: str) -> Op:
    return catalogue.BY_NAME[name]


def _infer(name: str, *operands: tuple[DType, Shape], attributes: Attributes = ()) -> Spec:
    return inference.infer(_op(name), tuple(Spec(*operand) for operand in operands), attributes)


def test_codes_names_and_attributes_on_the_wire_never_change_unnoticed() -> None:
    lines = [
        f"{op.code} {op.name} {op.least_operands}..{op.most_operands} "
        f"[{', '.join(f'{attribute.name}: {attribute.kind.value}' for attribute in op.attributes)}]\n"
        for op in catalogue.OPS
    ]
    golden_files.check_text("protos/catalogue.txt", "".join(lines))


def test_no_two_ops_share_a_name_or_a_code() -> None:
    assert len(catalogue.BY_CODE) == len(catalogue.BY_NAME) == len(catalogue.OPS)


@pytest.mark.parametrize("op", catalogue.OPS, ids=lambda op: op.name)
def test_only_ops_of_a_part_take_starts(op: Op) -> None:
    starts = {"slice": 2, "assign_slice": 2, "strided": 1, "assign_strided": 1}.get(op.name, 0)
    assert op.takes_starts == (starts > 0)
    assert op.starts(((0, 2), (1, 1), (1, 1), ()) if op.part is Region else ((2, 2), (1, 1))) == starts


def _all_dtypes(name: str) -> list[tuple[str, tuple[DType, ...]]]:
    count = _op(name).least_operands
    return [(name, chosen) for chosen in strategies.dtype_tuples(count) if dtypes.bfloat16 not in chosen]


@pytest.mark.parametrize("name", AS_NUMPY)
def test_dtypes_of_elementwise_ops_are_numpys(name: str) -> None:
    for _, chosen in _all_dtypes(name):
        arrays = [np.ones(1, dtypes.to_numpy(dtype)) for dtype in chosen]
        ours = _result_dtype(name, chosen)
        expected = EXCEPTIONS.get((name, dtypes.promote_all(chosen))) or _numpy_dtype(AS_NUMPY[name], arrays)
        assert ours is expected, chosen


def _result_dtype(name: str, chosen: tuple[DType, ...]) -> DType | None:
    try:
        return _infer(name, *((dtype, (1,)) for dtype in chosen)).dtype
    except DtypeError:
        return None


def _numpy_dtype(function: Callable[..., Any], arrays: list[Any]) -> DType | None:
    try:
        return dtypes.from_numpy(np.asarray(function(*arrays)).dtype)
    except TypeError:
        return None


@pytest.mark.parametrize("name", REDUCTIONS)
@pytest.mark.parametrize("dtype", COMPARED)
def test_dtypes_of_reductions_are_numpys(name: str, dtype: DType) -> None:
    second = [(dtype, ())] if _op(name).least_operands == 2 else []
    ours = _infer(name, (dtype, (3,)), *second, attributes=((0,), False)).dtype
    numpys = dtypes.BY_NAME.get(REDUCTIONS[name](np.ones(3, dtypes.to_numpy(dtype))).dtype.name)
    assert ours is (EXCEPTIONS.get((name, dtype)) or numpys)


@pytest.mark.parametrize("name", ["add", "exp", "sum", "matmul", "mean", "softmax"])
def test_bfloat16_stays_bfloat16(name: str) -> None:
    op = _op(name)
    attributes: Attributes = ((0,), False)[: len(op.attributes)]
    operands = ((dtypes.bfloat16, (3,)),) * op.least_operands
    assert _infer(name, *operands, attributes=attributes).dtype is dtypes.bfloat16


@pytest.mark.parametrize("name", ["subtract", "negative", "sign", "relu", "matmul"])
def test_ops_without_a_meaning_on_booleans_refuse_them(name: str) -> None:
    operands = ((dtypes.bool_, (2,)),) * _op(name).least_operands
    with pytest.raises(DtypeError, match=rf"{name}\(bool\[2\].*not defined for bool"):
        _infer(name, *operands)


@pytest.mark.parametrize("name", ["take", "one_hot", "bitwise_and"])
def test_ops_on_integers_refuse_floats(name: str) -> None:
    op = _op(name)
    with pytest.raises(DtypeError):
        _infer(
            name,
            *((dtypes.float32, (2,)),) * op.least_operands,
            attributes=(0, dtypes.float32.code)[: len(op.attributes)],
        )


@pytest.mark.parametrize("op", catalogue.OPS, ids=lambda op: op.name)
@settings(max_examples=20)
@given(data=st.data())
def test_every_op_infers_a_spec_for_operands_that_fit(op: Op, data: st.DataObject) -> None:
    work = data.draw(strategies.programs_of(op))
    spec = work.program.result_spec(0)
    assert spec.dtype in dtypes.ALL
    assert all(dim >= 0 for dim in spec.shape)


@pytest.mark.parametrize("op", catalogue.OPS, ids=lambda op: op.name)
def test_a_wrong_number_of_operands_is_refused(op: Op) -> None:
    one = Spec(dtypes.int32, (2,))
    attributes = (0,) * len(op.attributes)
    if op.least_operands:
        with pytest.raises(ArgumentError, match=f"{op.name} takes"):
            inference.infer(op, (one,) * (op.least_operands - 1), attributes)
    if op.most_operands is not None:
        with pytest.raises(ArgumentError, match=f"{op.name} takes"):
            inference.infer(op, (one,) * (op.most_operands + 1), attributes)


@pytest.mark.parametrize("op", catalogue.OPS, ids=lambda op: op.name)
def test_a_wrong_number_of_attributes_is_refused(op: Op) -> None:
    operands = (Spec(dtypes.int32, (2,)),) * op.least_operands
    with pytest.raises(ArgumentError, match="attributes"):
        inference.infer(op, operands, (0,) * (len(op.attributes) + 1))


@pytest.mark.parametrize("name", ["min", "max", "argmin", "argmax", "logsumexp", "softmax", "log_softmax"])
def test_there_is_no_greatest_of_nothing(name: str) -> None:
    attributes: Attributes = ((1,), False)[: len(_op(name).attributes)]
    assert _infer(name, (dtypes.float32, (0, 3)), attributes=attributes).shape[0] == 0
    with pytest.raises(ShapeError, match="no identity"):
        _infer(name, (dtypes.float32, (3, 0)), attributes=attributes)


@pytest.mark.parametrize(
    ("name", "attributes"),
    [
        ("var", ((0,), False)),
        ("std", ((0,), False)),
        ("layer_norm", ((0,),)),
        ("full", ((2, 3), dtypes.float32.code)),
        ("arange", (4, dtypes.float32.code)),
        ("linspace", (4, dtypes.float32.code)),
    ],
)
def test_an_array_in_place_of_a_scalar_is_refused(name: str, attributes: Attributes) -> None:
    operands = [(dtypes.float32, (3,))] * _op(name).least_operands
    with pytest.raises(ShapeError, match="a scalar is required"):
        _infer(name, *operands, attributes=attributes)


def test_errors_name_the_op_and_its_operands() -> None:
    with pytest.raises(ShapeError, match=r"^add\(float32\[2, 3\], int32\[4\]\): shapes .* cannot be broadcast"):
        _infer("add", (dtypes.float32, (2, 3)), (dtypes.int32, (4,)))


@pytest.mark.parametrize(
    ("name", "operands", "attributes"),
    [
        ("add", [(2**20, 1), (1, 2**21)], ()),
        ("matmul", [(2**21, 1), (1, 2**21)], ()),
        ("concat", [(2**31 - 1,), (2**31 - 1,)], (0,)),
        ("broadcast_to", [(1,)], ((2**31 - 1, 2**31 - 1),)),
        ("one_hot", [(2**31 - 1,)], (2**31 - 1, 0)),
        ("take", [(2**20, 2), (2**10, 2**12)], (1,)),
        ("take", [(1,) * 16, (1,) * 8], (0,)),
        ("broadcast_to", [()], ((1,) * 17,)),
    ],
)
def test_a_result_beyond_the_limits_is_refused(name: str, operands: list[Shape], attributes: Attributes) -> None:
    with pytest.raises(ShapeError, match=r"the limit|is not an integer in 0\.\."):
        _infer(name, *((dtypes.int32, shape) for shape in operands), attributes=attributes)


def test_attributes_of_ops_of_elements_are_numbers_that_they_compute_with() -> None:
    for op in catalogue.OPS:
        if op.category is Category.POINTWISE and op.name != "astype":
            sample = sample_attributes(op)
            assert op.numbers(sample) == sample


def test_attributes_that_say_where_elements_go_are_no_numbers_to_compute_with() -> None:
    assert _op("eye").numbers((3, 4, 1, dtypes.float32.code)) == ()
    assert _op("softmax").numbers(((0,),)) == ()


def test_views_and_creation_are_exact_and_composites_are_not() -> None:
    for op in catalogue.OPS:
        if op.category in {Category.VIEW, Category.MOVE, Category.CREATE}:
            assert op.is_exact
        if op.category in {Category.COMPOSITE, Category.PRODUCT}:
            assert not op.is_exact
