"""Which lines the Fourier transforms take, and of which shapes their results are."""

from __future__ import annotations

import pytest

from fusewire_protos.errors import ShapeError
from fusewire_protos.ops import catalogue, dtypes, inference
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Op
from fusewire_protos.ops.rules.fourier import MOST_POINTS
from fusewire_protos.ops.shapes import Shape, Spec

_OPS = [op for op in catalogue.OPS if op.core_rank == 1]


def _shape(name: str, *operands: Shape, flag: bool = False) -> Shape:
    specs = tuple([Spec(dtypes.float32, shape) for shape in operands])
    op = BY_NAME[name]
    return inference.infer(op, specs, (flag,) * len(op.attributes)).shape


@pytest.mark.parametrize(
    ("name", "operands", "flag", "shape"),
    [
        ("fft", [(2, 5), (2, 5)], False, (2, 10)),
        ("fft", [(1,), (1,)], True, (2,)),
        ("rfft", [(2, 5)], False, (2, 6)),
        ("rfft", [(4,)], False, (6,)),
        ("irfft", [(2, 3), (2, 3)], False, (2, 4)),
        ("irfft", [(2, 3), (2, 3)], True, (2, 5)),
        ("irfft", [(1,), (1,)], True, (1,)),
        ("fft", [(0, 5), (0, 5)], False, (0, 10)),
        ("rfft", [(3, 0, 5)], False, (3, 0, 6)),
    ],
)
def test_a_result_has_room_for_both_parts(name: str, operands: list[Shape], flag: bool, shape: Shape) -> None:
    assert _shape(name, *operands, flag=flag) == shape


@pytest.mark.parametrize("op", _OPS, ids=lambda op: op.name)
def test_what_is_no_line_or_too_long_a_one_is_refused(op: Op) -> None:
    with pytest.raises(ShapeError, match="rank 1 or more"):
        _shape(op.name, *[()] * op.least_operands)
    with pytest.raises(ShapeError, match="1 point or more"):
        _shape(op.name, *[(3, 0)] * op.least_operands)
    with pytest.raises(ShapeError, match=f"the most is {MOST_POINTS}"):
        _shape(op.name, *[(MOST_POINTS + 1,)] * op.least_operands)


def test_a_real_line_is_bounded_by_its_own_length() -> None:
    with pytest.raises(ShapeError, match="1 point or more, not 0"):
        _shape("irfft", (1,), (1,))
    with pytest.raises(ShapeError, match=f"{MOST_POINTS + 2} points"):
        _shape("irfft", *[(MOST_POINTS // 2 + 2,)] * 2)


@pytest.mark.parametrize("name", ["fft", "irfft"])
def test_parts_of_different_shapes_are_refused(name: str) -> None:
    with pytest.raises(ShapeError, match="do not fit"):
        _shape(name, (2, 4), (4,))


@pytest.mark.parametrize(
    ("given", "computed"),
    [
        *[(dtype, dtypes.float32) for dtype in (dtypes.float16, dtypes.bfloat16, dtypes.float32)],
        *[(dtype, dtypes.float64) for dtype in (dtypes.float64, dtypes.int8, dtypes.uint64, dtypes.bool_)],
    ],
    ids=str,
)
def test_lines_are_computed_in_long_floats(given: DType, computed: DType) -> None:
    rule = BY_NAME["rfft"].dtype_rule((given,), ())
    assert (rule.operands, rule.result) == ((computed,), computed)
