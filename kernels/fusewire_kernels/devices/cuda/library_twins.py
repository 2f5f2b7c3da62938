"""Computes library ops by CuPy, over device memory. What CuPy allocates meanwhile comes from the pool of values.

CuPy keeps the last plans of cuFFT for each thread, with the memory in which they work, which comes from that pool too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import cupy
import cupyx
from cupyx import cusolver

from fusewire_kernels.devices.workspace import Workspace
from fusewire_kernels.ops import reference
from fusewire_kernels.ops.workspaces import workspace_bytes
from fusewire_kernels.unfused.one_op_call import OneOpCall
from fusewire_kernels.unfused.twins import Twin
from fusewire_protos.errors import OutOfMemory, ServerFault
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec

# By op the function that CuPy 13 and cuSOLVER 11.6 do not have.
_OF_ANY_MATRIX = {"eig": "eig", "eigvals": "eigvals", "complex_eig": "eig"}
# All computed NaNs have the same bits.
_write = cupy.ElementwiseKernel("T value, T nan", "T result", "result = value == value ? value : nan", "fw_write")
_KEPT_BYTES = 1 << 26  # of the memory of cuFFT's plans, in each thread that uses the device


def library_twin(call: OneOpCall, allocate: Callable[[int], Any]) -> Twin:
    """Returns the twin of a call as a function of addresses in device memory. Operands and result are in C order.

    What CuPy needs meanwhile it gets by `allocate`, which returns CuPy's memory pointers and bounds their sum. A call
    holds no more of it at a time than its op declares. The function waits for the device, to learn whether an algorithm
    has failed. It raises OutOfMemory. Raises ServerFault if CuPy or cuSOLVER are too old to have the op.
    """
    if call.op.name in _OF_ANY_MATRIX and not _has(_OF_ANY_MATRIX[call.op.name]):
        raise ServerFault(f"CuPy {cupy.__version__} with this version of cuSOLVER has no {call.op.name}")
    result = call.result()
    limit_bytes = workspace_bytes(call.op, call.operands, result)
    compute = reference.prepare(call.op, cupy, call.operands, call.attributes)

    def run(operands: Sequence[int], result_address: int, starts: Sequence[int]) -> None:
        arrays = [_array(address, spec) for address, spec in zip(operands, call.operands, strict=True)]
        bounded = partial(_allocated, Workspace(limit_bytes, call.op.name), allocate)
        try:
            with cupy.cuda.using_allocator(bounded), cupyx.errstate(linalg="raise"):
                value = compute(*arrays)
                _write(value, value.dtype.type("nan"), _array(result_address, result))
        except cupy.cuda.memory.OutOfMemoryError as error:
            raise _out_of_memory(call, error) from None
        except RuntimeError as error:  # cuFFT's errors are such, and its class is known once cuFFT is loaded only
            if "CUFFT_ALLOC_FAILED" not in str(error):
                raise
            raise _out_of_memory(call, error) from None
        finally:
            if call.op.core_rank == 1:
                _bound_plans()

    return run


def _allocated(workspace: Workspace, allocate: Callable[[int], Any], size_bytes: int) -> Any:
    """Returns memory that counts for a workspace as long as CuPy holds it: a plan of cuFFT, also after the call."""
    if size_bytes == 0:  # CuPy takes a null pointer from its own pools alone
        return allocate(0)
    lease = workspace.lease(size_bytes, allocate)
    memory = cupy.cuda.UnownedMemory(lease.memory.ptr, size_bytes, lease)
    return cupy.cuda.MemoryPointer(memory, 0)


def _has(name: str) -> bool:
    return hasattr(cupy.linalg, name) and cusolver.check_availability("geev")


def _out_of_memory(call: OneOpCall, error: Exception) -> OutOfMemory:
    return OutOfMemory(f"the device has no memory to compute {call.op.name}: {error}")


def _bound_plans() -> None:
    """Frees the plans that were used least recently, until the others hold little memory."""
    plans = cupy.fft.config.get_plan_cache()
    if plans.get_curr_memsize() > _KEPT_BYTES:
        plans.set_memsize(_KEPT_BYTES)
        plans.set_memsize(-1)  # no bound: CuPy raises an error for a plan beyond it


def _array(address: int, spec: Spec) -> Any:
    """Returns an array over device memory. The caller keeps the memory."""
    memory = cupy.cuda.UnownedMemory(address, max(spec.size_bytes, 1), None)
    return cupy.ndarray(spec.shape, dtypes.to_numpy(spec.dtype), cupy.cuda.MemoryPointer(memory, 0))
