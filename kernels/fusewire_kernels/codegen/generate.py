"""Generates the source of a kernel in a dialect. Pure."""

from __future__ import annotations

from functools import lru_cache

from fusewire_kernels.codegen.geometry import head_line
from fusewire_kernels.codegen.kernel import Kernel, ProductKernel
from fusewire_kernels.codegen.loops import loop_text
from fusewire_kernels.codegen.loops_cuda import cuda_loop_text
from fusewire_kernels.codegen.product import product_text
from fusewire_kernels.codegen.product_cuda import cuda_product_text
from fusewire_kernels.plan.plan import KernelSource


@lru_cache(1024)  # because plans that differ only in sizes, or in the number of repeats of a body, have equal kernels
def generate(kernel: Kernel, dialect: str) -> KernelSource:
    """Returns the source of a kernel in `dialect`. The source has to be compiled after the prelude of the dialect.

    Raises ValueError for an unknown dialect.
    """
    match dialect:
        case "c":
            return KernelSource(kernel.key, _c_text(kernel))
        case "cuda":
            return KernelSource(kernel.key, head_line(kernel) + _cuda_text(kernel))
    raise ValueError(f"no generator for dialect {dialect!r}; there are c and cuda")


def _c_text(kernel: Kernel) -> str:
    return product_text(kernel) if isinstance(kernel, ProductKernel) else loop_text(kernel)


def _cuda_text(kernel: Kernel) -> str:
    return cuda_product_text(kernel) if isinstance(kernel, ProductKernel) else cuda_loop_text(kernel)
