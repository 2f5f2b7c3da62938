"""What the texts of kernels of lines have in common: how elements are combined, compared, read and written. Pure."""

from __future__ import annotations

from fusewire_kernels.codegen.expressions import TYPES, canonical, loaded, storable
from fusewire_kernels.codegen.reductions import combined
from fusewire_kernels.ir.kernel import LineKernel
from fusewire_protos.ops.catalogue import REDUCTIONS
from fusewire_protos.ops.reductions import Reduction


def definitions(kernel: LineKernel) -> list[str]:
    """Returns the lines that define the macros of a kernel's text, which `names` lists, and what they call."""
    lines = [f"#define FW_LINE_LOADED(element) ({loaded('(element)', kernel.operand_dtype)})"]
    if kernel.sorts:
        order = "FW_DESCENDING" if kernel.body.endswith("_descending") else "FW_ASCENDING"
        return [*lines, f"#define FW_LINE_PRECEDES(a, b) {order}(a, b)"]
    combine = combined(reduction_of(kernel), kernel.operand_dtype)
    return [
        f"FW_COMBINATION({kernel.key}, {TYPES[kernel.operand_dtype].value}, {combine})",
        *lines,
        f"#define FW_LINE_COMBINE(a, b) fw_combine_{kernel.key}(a, b)",
        f"#define FW_LINE_STORED(value) ({_stored(kernel)})",
    ]


def names(kernel: LineKernel) -> tuple[str, ...]:
    """Returns the names of a kernel's macros: of element and value to read and write, of two values what they give."""
    return ("FW_LINE_LOADED", "FW_LINE_PRECEDES" if kernel.sorts else "FW_LINE_COMBINE", "FW_LINE_STORED")


def reduction_of(kernel: LineKernel) -> Reduction:
    """Returns how a kernel that does not sort combines elements."""
    return REDUCTIONS[kernel.combination]


def _stored(kernel: LineKernel) -> str:
    dtype = kernel.dtype
    return storable(canonical("value", dtype), dtype) if dtype.is_floating else "value"
