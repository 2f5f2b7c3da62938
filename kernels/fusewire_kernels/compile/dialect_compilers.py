"""Finds the compiler that turns kernel sources of a dialect into files of machine code.

A dialect is a language of kernels: "c" or "cuda".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from fusewire_kernels.compile.binary_cache import Compiled
from fusewire_kernels.compile.c_compiler import CCompiler, find_compiler
from fusewire_kernels.plan.plan import KernelSource
from fusewire_protos.errors import ServerFault


class DialectCompiler(Protocol):
    """Compiles the kernels of one dialect for one architecture. Used by one thread."""

    def compile(self, sources: Sequence[KernelSource]) -> Compiled:
        """Returns the paths of the compiled files. Raises ServerFault if the compiler rejects a source.

        Raises MachineFault or ConfigurationError if the machine kept the compiler from its work.
        """

    def find(self, sources: Sequence[KernelSource]) -> tuple[str, ...] | None:
        """Returns the paths of files that are compiled already, or None if some kernel has none.

        Raises ConfigurationError if the folder of these files cannot be used.
        """

    def warm_up(self, sources: Sequence[KernelSource]) -> None:
        """Compiles sources for nothing, if the first compilation of a process takes longer than the others.

        Raises as `compile` does.
        """


def compiler_of(dialect: str, architecture: str, timeout_s: float | None = None) -> DialectCompiler:
    """Returns the compiler of a dialect. Raises ServerFault if there is none.

    Only "cuda" uses `architecture`. Only "c" uses `timeout_s`, the time limit of each process of the C compiler. NVRTC
    runs in the caller's process and has no time limit here.
    """
    if dialect == "cuda":
        from fusewire_kernels.compile.cuda_compiler import CudaCompiler  # noqa: PLC0415 - needs NVRTC

        return CudaCompiler(architecture)
    toolchain = find_compiler()
    if toolchain is None:
        raise ServerFault("the C compiler that was found at start is gone")
    return CCompiler(toolchain if timeout_s is None else replace(toolchain, timeout_s=timeout_s))
