"""From a kernel to its source in a dialect."""

from __future__ import annotations

from fusewire_kernels.codegen.loops import loop_text
from fusewire_kernels.kernel import Kernel, LoopKernel
from fusewire_kernels.plan import KernelSource


def generate(kernel: Kernel, dialect: str) -> KernelSource:
    """The source of a kernel in `dialect`, "c" or "cuda", to be compiled behind that dialect's prelude."""
    assert isinstance(kernel, LoopKernel)
    assert dialect == "c"
    return KernelSource(kernel.key, loop_text(kernel))
