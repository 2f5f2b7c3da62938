"""Generates a kernel of small matrices as a C function, for one instance of one row: one matrix after another. Pure."""

from __future__ import annotations

from fusewire_kernels.codegen.dialect import C
from fusewire_kernels.codegen.expressions import TYPES
from fusewire_kernels.codegen.matrices import PITCH, algorithms, call, work_of, write_arguments
from fusewire_kernels.codegen.text import Lines
from fusewire_kernels.ir.kernel import MatrixKernel
from fusewire_kernels.ops.small_matrices import MOST_SIDE

_ONE_LANE = ("0", "1", "1")


def matrix_text(kernel: MatrixKernel) -> str:
    """Returns the C function of a kernel of small matrices, after the functions that it calls."""
    lines = Lines()
    value = TYPES[kernel.dtype].value
    lines.add(algorithms(kernel, "((void)0)"))
    with lines.block(C.head_of(kernel.key)):
        write_arguments(lines, kernel, "(slots[operands[{0}].column] + operands[{0}].byte_offset)")
        lines.add(f"{value} matrix[{MOST_SIDE * (MOST_SIDE + 1)}], first[{MOST_SIDE}], second[{MOST_SIDE}];")
        lines.add(f"int place[{MOST_SIDE}], note;")
        lines.add(work_of(kernel.dtype, "0", PITCH, *_ONE_LANE))
        lines.add(f"for (int64_t at = 0; at < count; at++) {call(kernel)}")
    return lines.text()
