"""What the texts of products have in common: the names of sizes, the types of accumulators, and their steps. Pure."""

from __future__ import annotations

from typing import NamedTuple

from fusewire_kernels.codegen.expressions import TYPES, canonical, storable
from fusewire_kernels.ir.kernel import Argument, ProductKernel
from fusewire_protos.ops.dtypes import DType

_WORD_BYTES, _LONG_BYTES = 4, 8  # of the accumulators of integers


def product_size_names(kernel: ProductKernel) -> list[str]:
    """Returns the names of the values in `sizes`, in order."""
    batch = range(kernel.batch_rank)
    extents = [f"n{dim}" for dim in batch] + ["rows", "columns", "inner"]
    a_strides = [f"as{dim}" for dim in batch] + ["a_row", "a_inner"]
    b_strides = [f"bs{dim}" for dim in batch]
    if kernel.walks is None:
        return extents + a_strides + b_strides + ["b_inner", "b_column"]
    return extents + a_strides + b_strides + [name for walk in walk_names(kernel) for each in walk for name in each]


def walk_names(kernel: ProductKernel) -> list[tuple[list[str], list[str]]]:
    """Returns the names of the extents and of the strides of the axes along k, and of those along columns."""
    ranks = zip(("inner", "column"), kernel.walks or (), strict=False)
    return [
        ([f"{name}_extent{digit}" for digit in range(rank)], [f"{name}_stride{digit}" for digit in range(rank)])
        for name, rank in ranks
    ]


def multiply_add(dtype: DType, a: str, b: str, c: str) -> str:
    """Returns the expression a · b + c of one element. A float result is rounded once, and an integer result wraps."""
    if dtype.is_floating:
        return f"fw_fma_{TYPES[dtype.accumulator].suffix}({a}, {b}, {c})"
    return f"{a} * {b} + {c}"


class AccumulatorType(NamedTuple):
    """The type in which elements of a dtype are accumulated. `is_stored`: whether the result is stored in this type."""

    name: str
    is_stored: bool


def accumulator_of(dtype: DType) -> AccumulatorType:
    """Returns the accumulator's type. Integers accumulate in an unsigned type, for which wrapping is defined."""
    if dtype.is_floating:
        return AccumulatorType(TYPES[dtype.accumulator].value, not dtype.is_half)
    if dtype.itemsize_bytes == _LONG_BYTES:
        return AccumulatorType("uint64_t", is_stored=True)
    return AccumulatorType("uint32_t", is_stored=dtype.itemsize_bytes == _WORD_BYTES)


def finished(value: str, dtype: DType) -> str:
    """Returns the expression that turns a finished accumulator into the stored value."""
    if dtype.is_floating:
        return storable(canonical(value, dtype), dtype)
    return f"({TYPES[dtype].stored}){value}"


def epilogue_arrays(kernel: ProductKernel) -> list[tuple[int, Argument]]:
    """Returns the array arguments of an epilogue but the product, each with its number among the operands."""
    arguments = () if kernel.epilogue is None else kernel.arguments
    return [(number, argument) for number, argument in enumerate(arguments, 2) if argument.strides]
