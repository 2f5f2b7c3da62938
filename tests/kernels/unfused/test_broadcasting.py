"""Operands that broadcast in more loops than kernels are listed for are copied first."""

from __future__ import annotations

import pytest

from fusewire_kernels.unfused.broadcasting import MOST_LOOPS, most_loops, repeated
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Shape


@pytest.mark.parametrize(
    ("shapes", "most", "expected"),
    [
        (((3, 4), (3, 4)), 1, [False, False]),
        (((3, 4), ()), 1, [False, False]),
        (((3, 4), (4,)), 1, [False, True]),
        (((3, 4), (4,)), 2, [False, False]),
        (((3, 1), (1, 4)), 1, [True, True]),
        (((2, 1, 2), (2, 2, 2)), 2, [True, False]),
        (((2, 1, 2), (2, 2, 2)), 3, [False, False]),
        (((2, 3, 1, 1), (2, 3, 4, 5)), 2, [False, False]),  # neighbouring axes are one loop
        (((1, 1), (3, 4)), 1, [False, False]),
    ],
)
def test_an_operand_is_copied_that_repeats_in_too_many_loops(
    shapes: tuple[Shape, ...], most: int, expected: list[bool]
) -> None:
    assert repeated(shapes, most) == expected


def test_dtypes_that_few_programs_use_broadcast_in_fewer_loops() -> None:
    assert most_loops([dtypes.int16, dtypes.int16]) < most_loops([dtypes.float32, dtypes.float32]) == MOST_LOOPS
