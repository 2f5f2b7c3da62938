"""What the texts of kernels say of a reduction: its name, its types, its result, and its functions. Pure.

The prelude has the functions of all reductions as macros. The text of a kernel defines those that it uses, because a
compiler takes as long for the functions of all reductions as for a small kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

from fusewire_kernels.codegen.bodies import TYPES
from fusewire_kernels.codegen.kernel import Node
from fusewire_kernels.codegen.statements import AnalysedKernel


def reduction_definitions(bodies: Iterable[AnalysedKernel]) -> list[str]:
    """Returns the lines that define the functions of the reductions in these bodies.

    Several kernels of one source may have the lines of the same reduction; the first one defines it.
    """
    nodes = [body.node(value) for body in bodies for value in body.all_needed if body.is_reduction(value)]
    by_name = {reduction_name(node): node for node in nodes if node is not None}
    lines = []
    for name, node in sorted(by_name.items()):
        macro = "FW_POSITIONAL_REDUCTION" if is_positional(node) else "FW_PLAIN_REDUCTION"
        lines += [f"#ifndef FW_HAS_{name}", f"#define FW_HAS_{name}"]
        lines += [f"{macro}({name}, {accumulator_type(node)})", "#endif"]
    return lines


def reduction_name(node: Node) -> str:
    """Returns the prelude's name for a reduction: `sum_f32`."""
    return f"{node.detail}_{TYPES[node.operand_dtype].compute_suffix}"


def is_positional(node: Node) -> bool:
    """Returns whether a reduction gives a position. Such a reduction keeps a position beside each partial value."""
    return node.detail in ("argmin", "argmax")


def accumulator_type(node: Node) -> str:
    return TYPES[node.operand_dtype].value


def result_of_reduction(node: Node, values: str, positions: str) -> str:
    """Returns the expression of a finished reduction. `values` and `positions` are expressions of its final state."""
    if is_positional(node):
        return positions
    is_arithmetic = node.detail in ("sum", "prod")
    return f"fw_round_{TYPES[node.dtype].suffix}({values})" if is_arithmetic and node.dtype.is_half else values
