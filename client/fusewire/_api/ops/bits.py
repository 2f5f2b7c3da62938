"""The bits of real numbers as unsigned integers of the same size, and back."""

from __future__ import annotations

from fusewire._api.array import Array
from fusewire._api.ops.operations import astype
from fusewire._recording.record_op import apply_to_one
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.dtypes import DType


def unsigned_of(size_bytes: int) -> DType:
    """Returns the dtype of unsigned integers of this size."""
    return dtypes.BY_NAME[f"uint{8 * size_bytes}"]


def bits_of(x: Array) -> Array:
    """Returns the bits of real numbers or booleans."""
    if x.dtype.is_floating:
        return apply_to_one(BY_NAME["bits_of_float"], x, ())
    return astype(x, unsigned_of(x.itemsize), copy=False)


def of_bits(bits: Array, dtype: DType) -> Array:
    """Returns the numbers of a real dtype that have these bits, which are unsigned integers of its size.

    A NaN of bfloat16 gets the bits of `numpy.nan`.
    """
    if not dtype.is_floating:
        return astype(bits, dtype, copy=False)
    if dtype is dtypes.bfloat16:  # the upper half of a float32
        return astype(of_bits(astype(bits, dtypes.uint32) << 16, dtypes.float32), dtype)
    return apply_to_one(BY_NAME["float_of_bits"], bits, ())
