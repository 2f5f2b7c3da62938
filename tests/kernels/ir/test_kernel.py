"""Kernels as data: equal ones have one name, and others another."""

from __future__ import annotations

from dataclasses import replace

import pytest

from fusewire_kernels.ir.kernel import Argument, ArgumentKind, LineKernel, LoopKernel, ProductKernel, Store, Stride
from fusewire_protos.ops import dtypes
from tests.kernels.codegen.kernels_of_note import NOTED


def test_kernels_that_differ_have_different_keys() -> None:
    assert len({kernel.key for kernel in NOTED.values()}) == len(NOTED)


@pytest.mark.parametrize("name", NOTED)
def test_equal_kernels_have_equal_keys(name: str) -> None:
    again = replace(NOTED[name])
    assert again is not NOTED[name]
    assert again.key == NOTED[name].key


def test_only_a_kernel_that_stores_what_it_reads_is_a_copy() -> None:
    array = Argument(ArgumentKind.ARRAY, dtypes.float32, (Stride.UNIT,))
    strided = array._replace(strides=(Stride.ANY,))
    kernel = LoopKernel(1, False, (array,), (), (Store(0, array),))
    assert kernel.is_copy
    assert not replace(kernel, stores=(Store(0, strided),)).is_copy


def test_a_kernel_runs_along_columns_if_more_inputs_lie_along_them() -> None:
    along_rows, along_columns = (
        Argument(ArgumentKind.ARRAY, dtypes.float32, strides)
        for strides in ((Stride.ANY, Stride.UNIT), (Stride.UNIT, Stride.ANY))
    )
    output = Argument(ArgumentKind.ARRAY, dtypes.float32, (Stride.UNIT, Stride.ZERO))
    kernel = LoopKernel(1, True, (along_columns, along_rows), (), (Store(0, output),))
    assert not kernel.runs_along_columns
    assert replace(kernel, inputs=(along_columns, along_columns, along_rows)).runs_along_columns


def test_a_product_has_the_operands_of_its_epilogue_behind_its_own() -> None:
    product = ProductKernel(dtypes.float16, 0, b_is_unit=True)
    assert product.argument_dtypes == (dtypes.float16,) * 3
    given = Argument(ArgumentKind.ARRAY, dtypes.float16, (Stride.ANY, Stride.UNIT))
    mask = given._replace(dtype=dtypes.bool_)
    epilogue = LoopKernel(2, False, (given, mask), (), (Store(0, given),))
    assert replace(product, epilogue=epilogue).argument_dtypes == (*[dtypes.float16] * 2, dtypes.bool_, dtypes.float16)


def test_a_kernel_of_lines_has_places_to_read_and_scratch_behind_its_result() -> None:
    segments = LineKernel("segment_sum", dtypes.float32, dtypes.float32)
    assert segments.argument_dtypes == (dtypes.float32, dtypes.int64, dtypes.float32)
    sorting = LineKernel("argsort", dtypes.float32, dtypes.int64, has_scratch=True)
    assert sorting.argument_dtypes == (dtypes.float32, dtypes.int64, dtypes.int64)


@pytest.mark.parametrize(
    ("body", "sorts", "merges", "reduces_segments"),
    [
        ("argsort_descending", True, False, False),
        ("merge", True, True, False),
        ("segment_max", False, False, True),
        ("max", False, False, False),
        ("merge_bits", False, False, False),  # a reduction may have such a name
    ],
)
def test_the_body_of_a_kernel_of_lines_says_what_it_does(
    body: str, sorts: bool, merges: bool, reduces_segments: bool
) -> None:
    kernel = LineKernel(body, dtypes.int64, dtypes.int64)
    assert (kernel.sorts, kernel.merges, kernel.reduces_segments) == (sorts, merges, reduces_segments)
