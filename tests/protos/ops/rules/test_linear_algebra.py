"""Which matrices the ops of linear algebra take, and of which shapes their results are."""

from __future__ import annotations

import pytest

from fusewire_protos.errors import DtypeError, ShapeError
from fusewire_protos.ops import catalogue, dtypes, inference
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.op import Op
from fusewire_protos.ops.rules.linear_algebra import MOST_SIDE
from fusewire_protos.ops.shapes import Shape, Spec

_OF_SQUARE = (
    *("cholesky", "solve", "inv", "det", "slogdet", "eig", "eigvals", "eigh", "eigvalsh"),
    *("complex_cholesky", "complex_slogdet", "complex_eigh", "complex_eig"),
)
_OPS = [op for op in catalogue.OPS if op.core_rank == 2]


def _shape(name: str, *operands: Shape, flag: bool = False) -> Shape:
    specs = tuple([Spec(dtypes.float32, shape) for shape in operands])
    op = BY_NAME[name]
    return inference.infer(op, specs, (flag,) * len(op.attributes)).shape


@pytest.mark.parametrize(
    ("name", "operands", "flag", "shape"),
    [
        ("cholesky", [(2, 3, 3)], False, (2, 3, 3)),
        ("solve", [(2, 3, 3), (2, 3, 5)], False, (2, 3, 5)),
        ("det", [(7, 2, 3, 3)], False, (7, 2)),
        ("slogdet", [(7, 3, 3)], False, (7, 2)),
        ("qr", [(2, 4, 3)], False, (2, 4 * 3 + 3 * 3)),
        ("qr", [(2, 4, 3)], True, (2, 4 * 4 + 4 * 3)),
        ("eig", [(2, 3, 3)], False, (2, 3 + 3 + 9 + 9)),
        ("eigvals", [(2, 3, 3)], False, (2, 3 + 3)),
        ("eigh", [(3, 3)], False, (3 + 9,)),
        ("eigvalsh", [(2, 3, 3)], False, (2, 3)),
        ("svd", [(3, 4)], False, (3 * 3 + 3 + 3 * 4,)),
        ("svd", [(3, 4)], True, (3 * 3 + 3 + 4 * 4,)),
        ("svdvals", [(2, 3, 4)], False, (2, 3)),
        ("qr", [(0, 3)], False, (0,)),
        ("complex_cholesky", [(2, 3, 3)] * 2, False, (2, 9 + 9)),
        ("complex_slogdet", [(7, 3, 3)] * 2, False, (7, 2 + 2)),
        ("complex_qr", [(2, 4, 3)] * 2, True, (2, 2 * (4 * 4 + 4 * 3))),
        ("complex_eigh", [(3, 3)] * 2, False, (2 * (3 + 9),)),
        ("complex_svd", [(3, 4)] * 2, False, (2 * (3 * 3 + 3 + 3 * 4),)),
        ("complex_eig", [(3, 3)] * 2, False, (2 * (3 + 9),)),
    ],
)
def test_a_result_has_room_for_all_arrays(name: str, operands: list[Shape], flag: bool, shape: Shape) -> None:
    assert _shape(name, *operands, flag=flag) == shape


@pytest.mark.parametrize("name", _OF_SQUARE)
def test_what_is_not_square_is_refused(name: str) -> None:
    with pytest.raises(ShapeError, match="as many rows as columns"):
        _shape(name, *[(2, 3)] * BY_NAME[name].least_operands)


@pytest.mark.parametrize("op", _OPS, ids=lambda op: op.name)
def test_what_is_no_matrix_or_too_large_a_one_is_refused(op: Op) -> None:
    with pytest.raises(ShapeError, match="2 axes or more"):
        _shape(op.name, *[(3,)] * op.least_operands)
    with pytest.raises(ShapeError, match=f"the most is {MOST_SIDE}"):
        _shape(op.name, *[(MOST_SIDE + 1, MOST_SIDE + 1)] * op.least_operands)


@pytest.mark.parametrize("name", [op.name for op in _OPS if op.name.startswith("complex_")])
def test_parts_of_other_shapes_are_refused(name: str) -> None:
    with pytest.raises(ShapeError, match=r"imaginary parts of shape \(3, 3\) do not fit real parts of shape \(2, 2\)"):
        _shape(name, (2, 2), (3, 3))


@pytest.mark.parametrize("right", [(3, 3, 1), (2, 4, 1), (3, 1)])
def test_right_sides_that_do_not_fit_are_refused(right: Shape) -> None:
    with pytest.raises(ShapeError, match="do not fit"):
        _shape("solve", (2, 3, 3), right)


@pytest.mark.parametrize(
    ("given", "computed"),
    [(dtypes.float32, dtypes.float32), (dtypes.float64, dtypes.float64), (dtypes.int8, dtypes.float64)],
    ids=str,
)
def test_matrices_are_computed_in_long_floats(given: DType, computed: DType) -> None:
    rule = BY_NAME["inv"].dtype_rule((given,), ())
    assert (rule.operands, rule.result) == ((computed,), computed)


@pytest.mark.parametrize("dtype", [dtypes.float16, dtypes.bfloat16], ids=str)
def test_short_floats_are_refused(dtype: DType) -> None:
    with pytest.raises(DtypeError, match="astype"):
        BY_NAME["inv"].dtype_rule((dtype,), ())
