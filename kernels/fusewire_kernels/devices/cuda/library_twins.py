"""Computes library ops by CuPy, over device memory. What CuPy allocates meanwhile comes from the current pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import cupy
import cupyx

from fusewire_kernels.ops import reference
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_kernels.unfused.twins import Twin
from fusewire_protos.errors import OutOfMemory
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec


def library_twin(call: OneOpCall) -> Twin:
    """Returns the twin of a call as a function of addresses in device memory. Operands and result are in C order.

    The function waits for the device, to learn whether an algorithm has failed. It raises OutOfMemory.
    """
    result = call.result()
    compute = reference.prepare(call.op, cupy, call.operands, call.attributes)

    def run(operands: Sequence[int], result_address: int, starts: Sequence[int]) -> None:
        arrays = [_array(address, spec) for address, spec in zip(operands, call.operands, strict=True)]
        try:
            with cupyx.errstate(linalg="raise"):
                value = compute(*arrays)
            # All computed NaNs have the same bits.
            _array(result_address, result)[...] = cupy.where(cupy.isnan(value), value.dtype.type("nan"), value)
        except cupy.cuda.memory.OutOfMemoryError as error:
            raise OutOfMemory(f"the device has no memory to compute {call.op.name}: {error}") from None

    return run


def _array(address: int, spec: Spec) -> Any:
    """Returns an array over device memory. The caller keeps the memory."""
    memory = cupy.cuda.UnownedMemory(address, max(spec.size_bytes, 1), None)
    return cupy.ndarray(spec.shape, dtypes.to_numpy(spec.dtype), cupy.cuda.MemoryPointer(memory, 0))
