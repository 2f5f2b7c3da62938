"""Whether a call of linear algebra has a kernel follows from its op and its shapes."""

from __future__ import annotations

import pytest

from fusewire_kernels.ops.small_matrices import NAMES, has_kernel, is_of_library, library_ops, others_of
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME, OPS
from fusewire_protos.ops.op import Category
from fusewire_protos.ops.shapes import Shape, Spec
from fusewire_protos.programs.program import ProgramOp, build


def _specs(*shapes: Shape) -> list[Spec]:
    return [Spec(dtypes.float32, shape) for shape in shapes]


@pytest.mark.parametrize(
    ("name", "shapes", "is_small"),
    [
        ("inv", [(64, 64)], True),
        ("inv", [(9, 65, 65)], False),
        ("qr", [(2, 64, 1)], True),
        ("qr", [(2, 1, 65)], False),
        ("solve", [(1000, 16, 16), (1000, 16, 64)], True),
        ("solve", [(16, 16), (16, 65)], False),
        ("det", [(0, 0)], True),
        ("svd", [(2, 2)], False),
    ],
)
def test_few_rows_and_columns_have_a_kernel(name: str, shapes: list[Shape], is_small: bool) -> None:
    op, specs = BY_NAME[name], _specs(*shapes)
    assert has_kernel(op, specs) == is_small
    assert is_of_library(op, specs) != is_small


def test_only_library_ops_have_a_choice() -> None:
    assert {op.name for op in OPS if op.category is Category.LIBRARY} >= NAMES
    assert not is_of_library(BY_NAME["matmul"], _specs((100, 100), (100, 100)))


def test_the_library_ops_of_a_program_are_named_once() -> None:
    ops = [ProgramOp(BY_NAME[name], (number,), ()) for name, number in (("inv", 0), ("inv", 1), ("inv", 3))]
    program = build(_specs((3, 3), (65, 65)), (), ops, [0, 1, 2])
    assert library_ops(program) == ["inv"]
    assert library_ops(build(_specs((3, 3)), (), ops[:1], [0])) == []


@pytest.mark.parametrize(
    ("name", "shapes", "attributes", "others"),
    [
        ("solve", [(2, 3, 3), (2, 3, 7)], (), 7),
        ("qr", [(5, 3)], (False,), 3),
        ("qr", [(5, 3)], (True,), 5),
        ("qr", [(3, 5)], (False,), 3),
        ("inv", [(3, 3)], (), 0),
    ],
)
def test_a_kernel_is_told_the_columns_of_its_other_matrix(
    name: str, shapes: list[Shape], attributes: tuple[bool, ...], others: int
) -> None:
    assert others_of(BY_NAME[name], shapes, attributes) == others
