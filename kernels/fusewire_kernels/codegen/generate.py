"""Generates the sources of a kernel in a dialect. Pure."""

from __future__ import annotations

from functools import lru_cache

from fusewire_kernels.codegen.geometry import TILES, head_line
from fusewire_kernels.codegen.kernel import Kernel, ProductKernel
from fusewire_kernels.codegen.loops import loop_text
from fusewire_kernels.codegen.loops_cuda import cuda_loop_text
from fusewire_kernels.codegen.product import product_text
from fusewire_kernels.codegen.product_cuda import cuda_product_text
from fusewire_kernels.plan.plan import KernelSource


@lru_cache(1024)  # because plans that differ only in sizes, or in the number of repeats of a body, have equal kernels
def generate(kernel: Kernel, dialect: str) -> tuple[KernelSource, ...]:
    """Returns the sources of a kernel in `dialect`. A source has to be compiled after the prelude of the dialect.

    A product has a source for each size of tile in CUDA, because they compile sooner side by side. Any other kernel has
    one source. Raises ValueError for an unknown dialect.
    """
    match dialect:
        case "c":
            text = product_text(kernel) if isinstance(kernel, ProductKernel) else loop_text(kernel)
            return (KernelSource(kernel.key, text),)
        case "cuda":
            head = head_line(kernel)
            if not isinstance(kernel, ProductKernel):
                return (KernelSource(kernel.key, head + cuda_loop_text(kernel)),)
            return tuple(
                KernelSource(f"{kernel.key}_{tile.entry}", head + cuda_product_text(kernel, tile)) for tile in TILES
            )
    raise ValueError(f"no generator for dialect {dialect!r}; there are c and cuda")
