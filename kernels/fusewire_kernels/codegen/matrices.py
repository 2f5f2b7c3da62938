"""Writes what texts of kernels of small matrices have in common: the algorithms for a dtype, and their calls. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from fusewire_kernels.codegen.expressions import TYPES
from fusewire_kernels.codegen.templates import template
from fusewire_kernels.codegen.text import Lines
from fusewire_kernels.ir.kernel import MatrixKernel
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.dtypes import DType

# What has more than one name, by the macro that stands for it. A number up to GREAT has a square; a greater or lesser
# one is multiplied by SCALE or its reciprocal first.
_GREAT = {dtypes.float32: ("0x1p60f", "0x1p100f", "0x1p-23f"), dtypes.float64: ("0x1p500", "0x1p800", "0x1p-52")}


def algorithms(kernel: MatrixKernel, meet: str) -> str:
    """Returns the text of all algorithms for a kernel's dtype, once in a unit. `meet` is what FW_MEET(w) stands for."""
    dtype, text_type = kernel.dtype, TYPES[kernel.dtype]
    great, scale, epsilon = _GREAT[dtype]
    macros = {
        "FW_OF(name)": f"name##_{text_type.suffix}",
        "FW_REAL": text_type.value,
        "FW_REAL_NAN": f"FW_NAN_{text_type.suffix.upper()}",
        "FW_REAL_INFINITY": f"FW_INFINITY_{text_type.suffix.upper()}",
        "FW_REAL_GREAT": great,
        "FW_REAL_SCALE": scale,
        "FW_REAL_EPSILON": epsilon,
        "FW_MEET(w)": meet,
    }
    guard = f"FW_MATRICES_{text_type.suffix.upper()}"
    return "\n".join(
        [
            f"#ifndef {guard}",
            f"#define {guard}",
            *(f"#define {name} {text}" for name, text in macros.items()),
            template("matrices.h").rstrip(),
            *(f"#undef {name.partition('(')[0]}" for name in macros),
            "#endif",
        ]
    )


def write_arguments(lines: Lines, kernel: MatrixKernel, address: str) -> None:
    """Writes what a kernel reads from its sizes and operands. `address` is the address of the operand `{0}`."""
    stored = TYPES[kernel.dtype].stored
    for position, name in enumerate(("count", "height", "width", "others", "is_upper")):
        lines.add(f"const int64_t {name} = sizes[{position}];")
    lines.add("const fw_shape shape = {(int)height, (int)width, (int)others, (int)is_upper};")
    names = names_of(kernel)
    for number, name in enumerate(names):
        constant = "const " if number < len(names) - 1 else ""
        lines.add(f"{constant}{stored} *{name} = ({constant}{stored} *){address.format(number)};")


def call(kernel: MatrixKernel) -> str:
    """Returns the statement that computes the matrix number `at` of a batch, by the lanes that `work` describes."""
    suffix, right = TYPES[kernel.dtype].suffix, "0"
    if "right" in names_of(kernel):
        right = "&right[at * height * others]"
    elements = _RESULT_ELEMENTS.get(kernel.body, "height * width")
    return f"fw_{kernel.body}_{suffix}(work, shape, &from[at * height * width], {right}, &result[at * ({elements})]);"


def work_of(dtype: DType, *fields: str) -> str:
    """Returns the statement that defines `work`.

    `fields` are the elements of the room beside the matrix, the pitch, the lane, the lanes and those across a row.
    """
    near = "near" if int(fields[0]) else "0"
    shared = ("matrix", "first", "second", near, "place", "&note")
    return f"const fw_work_{TYPES[dtype].suffix} work = {{{', '.join((*shared, *fields))}}};"


def names_of(kernel: MatrixKernel) -> Sequence[str]:
    """Returns the names of a kernel's operands, of which the last is the result."""
    return ("from", "right", "result") if len(kernel.argument_dtypes) > 2 else ("from", "result")


# The distance of the rows of a matrix in shared memory is odd, so that neighbours in a column lie in different banks.
PITCH = "(int)(height > width ? height : width) | 1"

_RESULT_ELEMENTS = {
    "solve": "height * others",
    "det": "1",
    "slogdet": "2",
    "qr": "(height + width) * others",
    "eigh": "height * (height + 1)",
    "eigvalsh": "height",
}
