"""Generates the sources of a kernel in a dialect. Pure."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from fusewire_kernels.codegen.c.lines import line_text
from fusewire_kernels.codegen.c.loops import loop_text
from fusewire_kernels.codegen.c.matrices import matrix_text
from fusewire_kernels.codegen.c.product import product_text
from fusewire_kernels.codegen.cuda.geometry import (
    FEW_ELEMENTS,
    LONG_ROWS,
    NARROW_ROWS,
    SHORT_ROWS,
    WHOLE_ROWS,
    Layout,
    Schedule,
    head_line,
    layout,
    tiles_of,
)
from fusewire_kernels.codegen.cuda.lines import cuda_line_text
from fusewire_kernels.codegen.cuda.loops import cuda_loop_text
from fusewire_kernels.codegen.cuda.matrices import cuda_matrix_sources
from fusewire_kernels.codegen.cuda.product import cuda_product_text
from fusewire_kernels.codegen.cuda.register_rows import register_rows
from fusewire_kernels.codegen.dialect import CUDA, C, Dialect, dialect_of
from fusewire_kernels.codegen.statements import analyse
from fusewire_kernels.ir.kernel import Kernel, LineKernel, LoopKernel, MatrixKernel, ProductKernel
from fusewire_kernels.plan.plan import KernelSource


@lru_cache(1024)  # because plans that differ only in sizes, or in the number of repeats of a body, have equal kernels
def generate(kernel: Kernel, dialect: str) -> tuple[KernelSource, ...]:
    """Returns the sources of a kernel in `dialect`. A source has to be compiled after the prelude of the dialect.

    In CUDA a product has a source for each size of tile, because they compile sooner side by side, and a kernel of
    small matrices has one for each kind of block. A kernel that keeps its rows in registers has a source for each class
    of lengths of rows, and one that reduces columns has two. Any other kernel has one source. Raises ValueError for an
    unknown dialect.
    """
    return _SOURCES_OF[dialect_of(dialect)](kernel)


def _c_sources(kernel: Kernel) -> tuple[KernelSource, ...]:
    return (KernelSource(kernel.key, _c_text(kernel)),)


def _c_text(kernel: Kernel) -> str:
    match kernel:
        case ProductKernel():
            return product_text(kernel)
        case LineKernel():
            return line_text(kernel)
        case MatrixKernel():
            return matrix_text(kernel)
    return loop_text(kernel)


def _cuda_sources(kernel: Kernel) -> tuple[KernelSource, ...]:
    match kernel:
        case ProductKernel():
            return _cuda_product(kernel)
        case LineKernel():
            return (KernelSource(kernel.key, head_line(layout(kernel)) + cuda_line_text(kernel)),)
        case MatrixKernel():
            return cuda_matrix_sources(kernel, head_line(layout(kernel)))
    return _cuda_loops(kernel)


def _cuda_product(kernel: ProductKernel) -> tuple[KernelSource, ...]:
    head = head_line(layout(kernel))
    return tuple(
        KernelSource(f"{kernel.key}_{tile.entry}", head + cuda_product_text(kernel, tile)) for tile in tiles_of(kernel)
    )


def _cuda_loops(kernel: LoopKernel) -> tuple[KernelSource, ...]:
    plain = layout(kernel)
    rows = register_rows(analyse(kernel))
    if rows is None:
        source = KernelSource(kernel.key, head_line(plain) + cuda_loop_text(kernel, kernel.key))
        return (source, _few_elements(kernel, plain)) if plain.schedule is Schedule.COLUMNS else (source,)
    in_registers = Layout(Schedule.REGISTER_ROWS, kernel.rank)
    head = head_line(in_registers)
    whole, short, narrow, long = (f"{kernel.key}_{entry}" for entry in (WHOLE_ROWS, SHORT_ROWS, NARROW_ROWS, LONG_ROWS))
    return (
        KernelSource(whole, head + cuda_loop_text(kernel, whole, rows._replace(are_whole=True))),
        KernelSource(short, head + cuda_loop_text(kernel, short, rows)),
        KernelSource(narrow, head + cuda_loop_text(kernel, narrow, rows._replace(are_narrow=True))),
        KernelSource(long, head + cuda_loop_text(kernel, long)),
        _few_elements(kernel, in_registers),
    )


def _few_elements(kernel: LoopKernel, layout: Layout) -> KernelSource:
    key = f"{kernel.key}_{FEW_ELEMENTS}"
    return KernelSource(key, head_line(layout) + cuda_loop_text(kernel, key, has_few_elements=True))


_SOURCES_OF: dict[Dialect, Callable[[Kernel], tuple[KernelSource, ...]]] = {C: _c_sources, CUDA: _cuda_sources}
