"""Computes a call of one op by its NumPy twin, over host memory. Pure but for that memory.

A twin serves where no kernel is loaded: on a machine without one, and for ops whose twin gives the very bits.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_kernels.ops import reference
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_protos.ops import dtypes, nans
from fusewire_protos.ops.op import Category
from fusewire_protos.ops.shapes import Spec

Twin = Callable[[Sequence[int], int, Sequence[int]], None]  # (operand addresses, result address, slice starts)


def has_same_bits(call: OneOpCall) -> bool:
    """Returns whether the twin of an op gives the bits that a kernel gives."""
    return call.op.is_exact or call.op.category in (Category.VIEW, Category.MOVE)


def twin_of(call: OneOpCall) -> Twin:
    """Returns the twin of a call as a function of addresses in host memory. Operands and result are in C order."""
    result = call.result()
    compute = reference.prepare(call.op, np, call.operands, call.attributes)
    has_open_nan = reference.leaves_nan_open(call.op, tuple([spec.dtype for spec in call.operands]), result.dtype)

    def run(operands: Sequence[int], result_address: int, starts: Sequence[int]) -> None:
        arrays = [host_array(address, spec) for address, spec in zip(operands, call.operands, strict=True)]
        with np.errstate(all="ignore"):
            value = compute(*arrays, starts=starts) if starts else compute(*arrays)
        host_array(result_address, result)[...] = nans.settle(value) if has_open_nan else value

    return run


def host_array(address: int, spec: Spec) -> npt.NDArray[Any]:
    """Returns an array in C order over host memory. The caller keeps the memory."""
    memory = (ctypes.c_char * max(spec.size_bytes, 1)).from_address(address)
    return np.ndarray(spec.shape, dtypes.to_numpy(spec.dtype), memoryview(memory))
