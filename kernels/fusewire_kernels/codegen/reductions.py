"""What the texts of kernels say of a reduction: its name, its types, its result, and its functions. Pure.

The catalogue says what a reduction starts from and how it combines; the prelude makes functions of that by macros. The
text of a kernel has those that it uses, because a compiler takes as long for the functions of all reductions as for a
small kernel.
"""

from __future__ import annotations

from collections.abc import Iterable

from fusewire_kernels.codegen.expressions import TYPES, expression, literal, rounded
from fusewire_kernels.codegen.statements import AnalysedKernel
from fusewire_kernels.ir.kernel import Node
from fusewire_kernels.ops.bodies import body_of
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import REDUCTIONS
from fusewire_protos.ops.dtypes import DType
from fusewire_protos.ops.reductions import Reduction


def reduction_definitions(bodies: Iterable[AnalysedKernel]) -> list[str]:
    """Returns the lines that define the functions of the reductions in these bodies.

    Several kernels of one source may have the lines of the same reduction; the first one defines it.
    """
    nodes = [body.node(value) for body in bodies for value in body.all_needed if body.is_reduction(value)]
    by_name = {reduction_name(node): node for node in nodes if node is not None}
    lines = []
    for name, node in sorted(by_name.items()):
        lines += [f"#ifndef FW_HAS_{name}", f"#define FW_HAS_{name}", _definition(name, node), "#endif"]
    return lines


def reduction_name(node: Node) -> str:
    """Returns the name of a reduction in the text: `sum_f32`."""
    return f"{node.detail}_{TYPES[node.operand_dtype].compute_suffix}"


def is_positional(node: Node) -> bool:
    """Returns whether a reduction gives a position. Such a reduction keeps a position beside each partial value."""
    return _reduction(node).position_of is not None


def accumulator_type(node: Node) -> str:
    return TYPES[node.operand_dtype].value


def combined(reduction: Reduction, dtype: DType) -> str:
    """Returns the expression of what two partial results `a` and `b` of elements of `dtype` become."""
    accumulator = dtype.accumulator
    return expression(reduction.combine, accumulator, accumulator, ("a", "b"))


def result_of_reduction(node: Node, values: str, positions: str) -> str:
    """Returns the expression of a finished reduction. `values` and `positions` are expressions of its final state."""
    if is_positional(node):
        return positions
    return values if body_of(_reduction(node).combine).only_selects else rounded(values, node.dtype)


def _definition(name: str, node: Node) -> str:
    """Returns the line that makes the functions of a reduction: macro, name, type, identity, and how two become one."""
    reduction, accumulator = _reduction(node), node.operand_dtype.accumulator
    given = f"{name}, {accumulator_type(node)}, {literal(reduction.identity_in(accumulator), accumulator)}"
    if not is_positional(node):
        return f"FW_PLAIN_REDUCTION({given}, {combined(reduction, accumulator)})"
    is_better = expression(reduction.combine, accumulator, dtypes.bool_, ("b", "a"))
    return f"FW_POSITIONAL_REDUCTION({given}, {is_better})"


def _reduction(node: Node) -> Reduction:
    return REDUCTIONS[str(node.detail)]
