"""Gives each dialect its compiler: kernel sources in, paths of compiled files out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from fusewire_kernels.compile.binary_cache import Compiled
from fusewire_kernels.compile.c_compiler import CCompiler, find_compiler
from fusewire_kernels.plan.plan import KernelSource
from fusewire_protos.errors import ServerFault


class DialectCompiler(Protocol):
    """Compiles the sources of one dialect for one architecture. Used by one thread."""

    def compile(self, sources: Sequence[KernelSource]) -> Compiled:
        """Returns the compiled files. Raises ServerFault if the compiler rejects a source."""


def compiler_of(dialect: str, architecture: str, timeout_s: float | None = None) -> DialectCompiler:
    """Returns the compiler of a dialect. Raises ServerFault if there is none.

    `architecture` matters to "cuda" only. `timeout_s` bounds a compiler that is a process of its own.
    """
    if dialect == "cuda":
        from fusewire_kernels.compile.cuda_compiler import CudaCompiler  # noqa: PLC0415 - needs NVRTC

        return CudaCompiler(architecture)
    toolchain = find_compiler()
    if toolchain is None:
        raise ServerFault("the C compiler that was found at start is gone")
    return CCompiler(toolchain if timeout_s is None else replace(toolchain, timeout_s=timeout_s))
