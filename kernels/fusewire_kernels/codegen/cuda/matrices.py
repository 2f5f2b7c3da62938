"""Generates the CUDA text of a kernel of small matrices. Pure.

A block computes one matrix after another, which lies in its shared memory. If the matrix has few rows and columns, the
block is a warp. So there are many blocks on a multiprocessor, and the lanes wait for one another without a barrier.
"""

from __future__ import annotations

from fusewire_kernels.codegen.cuda.entry import LET_NEXT_START, WAIT, instance_lines
from fusewire_kernels.codegen.cuda.geometry import MATRIX_BLOCKS, MatrixBlock
from fusewire_kernels.codegen.dialect import CUDA
from fusewire_kernels.codegen.expressions import TYPES
from fusewire_kernels.codegen.matrices import PITCH, algorithms, call, names_of, work_of, write_arguments
from fusewire_kernels.codegen.text import Lines
from fusewire_kernels.ir.kernel import MatrixKernel
from fusewire_kernels.ops.order import LANES
from fusewire_kernels.plan.plan import KernelSource

_SIZES = 5
# The right sides of equations, or the vectors of a matrix of a warp. With a matrix of float64 they fit in 48 KiB, which
# every device gives a block.
_NEAR_ELEMENTS = 32 * 33
_MEET_OF_WARP, _MEET_OF_BLOCK = "__syncwarp()", "__syncthreads()"
# The kernels of a unit share the algorithms, so that it is the lanes, which are known to the compiler, that tell.
_MEET = f"do {{ if ((w).lanes == {LANES}) {_MEET_OF_WARP}; else {_MEET_OF_BLOCK}; }} while (0)"


def cuda_matrix_sources(kernel: MatrixKernel, head: str) -> tuple[KernelSource, ...]:
    """Returns a source for each kind of block, whose text begins with `head`."""
    return tuple(_source(kernel, block, head) for block in MATRIX_BLOCKS)


def _source(kernel: MatrixKernel, block: MatrixBlock, head: str) -> KernelSource:
    lines = Lines()
    value, side = TYPES[kernel.dtype].value, block.most_side
    meet = _MEET_OF_WARP if block.threads == LANES else _MEET_OF_BLOCK
    lines.add(algorithms(kernel, _MEET))
    key = f"{kernel.key}_{block.entry}"
    with lines.block(CUDA.head_of(key, block.threads)):
        lines.add(*instance_lines(_SIZES, len(names_of(kernel))))
        write_arguments(
            lines, kernel, "__cvta_global_to_generic(slots[operands[{0}].column] + operands[{0}].byte_offset)"
        )
        lines.add(f"__shared__ {value} matrix[{side * (side + 1)}], first[{side}], second[{side}];")
        lines.add(f"__shared__ {value} near[{_NEAR_ELEMENTS}];")
        lines.add(f"__shared__ int place[{side}], note;")
        lines.add(WAIT, LET_NEXT_START)
        lane = ("(int)threadIdx.x", str(block.threads), str(block.across))
        lines.add(work_of(kernel.dtype, str(_NEAR_ELEMENTS), PITCH, *lane))
        with lines.block("for (int64_t at = blockIdx.x; at < count; at += gridDim.x)"):
            lines.add(call(kernel), f"{meet};")
    return KernelSource(key, head + lines.text())
