"""Loads compiled files, and finds the kernels in them."""

from __future__ import annotations

import ctypes
from typing import Any

import cupy
from cupy.cuda import driver

from fusewire_kernels.devices.cuda.driver import OUT_OF_MEMORY
from fusewire_protos.errors import OutOfMemory, ServerFault


def load_module(path: str) -> Any:
    """Loads a compiled file. Raises OutOfMemory or ServerFault."""
    module = cupy.cuda.function.Module()
    try:
        module.load_file(path)
    except driver.CUDADriverError as error:
        raise _failure(error, f"the compiled file {path} cannot be loaded") from error
    return module


def kernel_in(module: Any, entry: str) -> ctypes.c_void_p:
    """Returns a kernel of a module.

    Raises ServerFault if the module lacks the kernel. Raises OutOfMemory if the device has no memory for the kernel's
    code, because the driver may load the code on the first request.
    """
    try:
        return ctypes.c_void_p(module.get_function(entry).ptr)
    except driver.CUDADriverError as error:
        raise _failure(error, f"a compiled file does not contain the kernel {entry}") from error


def _failure(error: Any, what: str) -> OutOfMemory | ServerFault:
    kind = OutOfMemory if error.status == OUT_OF_MEMORY else ServerFault
    return kind(f"{what}: {error}")
