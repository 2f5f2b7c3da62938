"""Generates a kernel of lines as a C function, for one instance of one row. Pure.

Lines are computed one after another, but segments of lines that lie side by side together. To sort, a line needs memory
for two positions of each of its elements.
"""

from __future__ import annotations

from fusewire_kernels.codegen.dialect import C
from fusewire_kernels.codegen.expressions import TYPES
from fusewire_kernels.codegen.lines import definitions, names, reduction_of
from fusewire_kernels.codegen.templates import template
from fusewire_kernels.codegen.text import Lines
from fusewire_kernels.ir.kernel import LineKernel


def line_text(kernel: LineKernel) -> str:
    """Returns the C function of a kernel of lines, after the functions that it calls."""
    lines = Lines()
    lines.add(f"#ifndef FW_SCAN\n{template('lines.c')}#endif")
    lines.add(*definitions(kernel))
    lines.add(_function_of_lines(kernel))
    with lines.block(C.head_of(kernel.key)):
        lines.add("const int64_t before = sizes[0], length = sizes[1], behind = sizes[2];")
        for number, (name, dtype) in enumerate(zip(_arguments(kernel), kernel.argument_dtypes, strict=True)):
            constant = "const " if name in ("from", "place") else ""
            address = f"slots[operands[{number}].column] + operands[{number}].byte_offset"
            stored = TYPES[dtype].stored
            lines.add(f"{constant}{stored} *{name} = ({constant}{stored} *)({address});")
        if kernel.reduces_segments:
            _write_segments(lines, kernel)
        else:
            _write_lines(lines, kernel)
    lines.add(*(f"#undef {name}" for name in names(kernel)))
    return lines.text()


def _function_of_lines(kernel: LineKernel) -> str:
    text_type = TYPES[kernel.operand_dtype]
    given = f"{_own(kernel)}, {text_type.value}, {text_type.stored}"
    if kernel.sorts:
        return f"FW_ARGSORT({given}, FW_LINE_PRECEDES, FW_LINE_LOADED)"
    if kernel.reduces_segments:
        nothing = reduction_of(kernel).of_nothing
        return f"FW_SEGMENTS({given}, FW_LINE_COMBINE, FW_LINE_LOADED, FW_LINE_STORED, {nothing})"
    return f"FW_SCAN({given}, FW_LINE_COMBINE, FW_LINE_LOADED, FW_LINE_STORED)"


def _write_segments(lines: Lines, kernel: LineKernel) -> None:
    lines.add("const int64_t segments = sizes[4];")
    with lines.block("for (int64_t outer = 0; outer < before; outer++)"):
        lines.add("const int64_t at = outer * length * behind, to_at = outer * segments * behind;")
        lines.add(f"{_own(kernel)}(length, behind, segments, from + at, place, to + to_at);")


def _write_lines(lines: Lines, kernel: LineKernel) -> None:
    with lines.block("for (int64_t line = 0; line < before * behind; line++)"):
        lines.add("const int64_t at = line / behind * length * behind + line % behind;")
        memory = ", memory" if kernel.has_scratch else ""
        lines.add(f"{_own(kernel)}(length, behind, from + at, to + at{memory});")


def _arguments(kernel: LineKernel) -> tuple[str, ...]:
    if kernel.reduces_segments:
        return ("from", "place", "to")
    return ("from", "to", "memory") if kernel.has_scratch else ("from", "to")


def _own(kernel: LineKernel) -> str:
    return f"{kernel.key}_line"
