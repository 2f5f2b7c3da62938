"""From a kernel to its source in a dialect."""

from __future__ import annotations

from fusewire_kernels.codegen.loops import loop_text
from fusewire_kernels.codegen.product import product_text
from fusewire_kernels.kernel import Kernel, ProductKernel
from fusewire_kernels.plan import KernelSource


def generate(kernel: Kernel, dialect: str) -> KernelSource:
    """The source of a kernel in `dialect`, "c" or "cuda", to be compiled behind that dialect's prelude."""
    assert dialect == "c"
    text = product_text(kernel) if isinstance(kernel, ProductKernel) else loop_text(kernel)
    return KernelSource(kernel.key, text)
