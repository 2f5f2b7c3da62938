"""Generates the CUDA text of a persistent kernel of a pointwise body. Pure.

A value that is carried to the next iteration stays in a register of the thread that has computed it. In the text, `t`
is the number of the iteration in this launch. `e0` holds what input 0 has in memory at the point of the thread, and
`c0` what store 0 wrote in this iteration.
"""

from __future__ import annotations

from collections.abc import Sequence

from fusewire_kernels.codegen.cuda.points import product_of, write_positions
from fusewire_kernels.codegen.dialect import CUDA
from fusewire_kernels.codegen.expressions import TYPES
from fusewire_kernels.codegen.persistent.common_text import (
    PARAMETERS,
    input_address,
    output_address,
    place,
    stored_type,
)
from fusewire_kernels.codegen.statements import AnalysedKernel, analyse, argument_lines
from fusewire_kernels.codegen.templates import template
from fusewire_kernels.codegen.text import Lines
from fusewire_kernels.ir.persistent import CarriedInput, PersistentPoints
from fusewire_kernels.ops.bodies import weight

POINT_THREADS = 256
_UNROLLED_WEIGHT = 200  # of the iterations that are written one after another. Much longer code runs slower.
_MOST_UNROLLED = 16


def points_text(kernel: PersistentPoints) -> str:
    """Returns the text of a persistent kernel of a pointwise body."""
    body, lines = analyse(kernel.body), Lines()
    with lines.block(CUDA.head_of(kernel.key, POINT_THREADS, parameters=PARAMETERS)):
        lines.add(
            "const int64_t count = loop.counts[blockIdx.z];", "const int64_t *slots = fw_slots_of(loop, count, 0);"
        )
        lines.add(*argument_lines(body))
        lines.add("/* Of the first iterations nothing is stored, and nothing is read again. */")
        lines.add("const int64_t still = loop.moving | loop.each ? 0 : count - loop.tail;")
        lines.add(f"const int64_t points = {product_of(range(body.dims))};")
        lines.add("#pragma unroll 1")
        with lines.block(f"for (int64_t point = {CUDA.index}; point < points; point += {CUDA.count})"):
            write_positions(lines, range(body.dims))
            _write_iterations(lines, body, kernel.carried)
    return template("persistent.cu") + lines.text()


def _write_iterations(lines: Lines, body: AnalysedKernel, carried: Sequence[CarriedInput]) -> None:
    inputs = range(len(body.kernel.inputs))
    lines.add(*(f"{stored_type(body, number)} e{number} = {place(body, number)};" for number in inputs))
    lines.add("int64_t t = 0;")
    lines.add(f"#pragma unroll {_unrolled(body)}")
    with lines.block("for (; t < still; t++)"):
        _write_values(lines, body)
        lines.add(*_carrying(carried))
    lines.add("#pragma unroll 1")
    with lines.block("for (; t < count; t++)"):
        lines.add("slots = fw_slots_of(loop, count, t);")
        for number in sorted(set(inputs) - {each.input for each in carried}):
            with lines.block(f"if (loop.moving >> {number} & 1)"):
                lines.add(f"a{number} = {input_address(body, number, number)};")
                lines.add(f"e{number} = {place(body, number)};")
        _write_values(lines, body)
        for output in range(len(body.stored)):
            with lines.block(f"if (t >= count - loop.tail || loop.each >> {output} & 1)"):
                lines.add(f"o{output} = {output_address(body, output, output + len(inputs))};")
                lines.add(f"{body.output_place(output)} = c{output};")
        lines.add(*_carrying(carried))


def _write_values(lines: Lines, body: AnalysedKernel) -> None:
    """Writes the statements that compute the values of an iteration, and what its stores write."""
    for value in body.all_needed:
        lines.add(body.declaration(value, f"e{value}"))
    for output in range(len(body.stored)):
        stored = TYPES[body.kernel.stores[output].argument.dtype].stored
        lines.add(body.storing(output, f"const {stored} c{output}"))


def _carrying(carried: Sequence[CarriedInput]) -> list[str]:
    return [f"e{number} = c{store};" for number, store in carried]


def _unrolled(body: AnalysedKernel) -> int:
    """Returns how many iterations are written one after another."""
    nodes = [body.node(value) for value in body.all_needed]
    total = sum(1 if node.op in ("cast", "index") else weight(node.op, node.dtype) for node in nodes if node)
    return min(max(_UNROLLED_WEIGHT // max(total, 1), 1), _MOST_UNROLLED)
