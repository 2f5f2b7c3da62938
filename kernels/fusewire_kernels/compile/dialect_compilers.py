"""Finds the compiler that turns kernel sources of a dialect into files of machine code.

A dialect is a language of kernels (see `codegen/dialect.py`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Protocol

from fusewire_kernels.compile.binary_cache import Compiled
from fusewire_kernels.compile.c_compiler import CCompiler, find_compiler
from fusewire_kernels.compile.watch import USUAL_BOUNDS, Bounds
from fusewire_kernels.plan.plan import KernelSource


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


def compiler_of(dialect: str, architecture: str, bounds: Bounds = USUAL_BOUNDS) -> DialectCompiler:
    """Returns the compiler of a dialect. Raises ConfigurationError if there is none.

    Only "cuda" uses `architecture`. Only "c" uses `bounds`, those of each process of the C compiler. NVRTC runs in the
    caller's process and has no bounds here. A C compiler is looked for when it is used.
    """
    if dialect == "cuda":
        from fusewire_kernels.compile.cuda_compiler import CudaCompiler  # noqa: PLC0415 - needs NVRTC

        return CudaCompiler(architecture)
    return CCompiler(partial(find_compiler, bounds=bounds))
