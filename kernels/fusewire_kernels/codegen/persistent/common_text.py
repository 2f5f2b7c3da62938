"""What the texts of all persistent kernels have in common: parameters and the places of operands. Pure."""

from __future__ import annotations

from fusewire_kernels.codegen.expressions import TYPES
from fusewire_kernels.codegen.statements import AnalysedKernel
from fusewire_kernels.ir.kernel import ArgumentKind, LoopKernel

PARAMETERS = "const int64_t *sizes, const fw_operand *operands, const __grid_constant__ fw_loop loop"


def stored_type(body: AnalysedKernel, number: int) -> str:
    return TYPES[body.kernel.inputs[number].dtype].stored


def place(body: AnalysedKernel, number: int) -> str:
    """Returns the element of an input at the current position."""
    return f"*a{number}" if is_scalar(body.kernel, number) else body.input_place(number)


def is_scalar(kernel: LoopKernel, number: int) -> bool:
    return kernel.inputs[number].kind is ArgumentKind.SCALAR


def input_address(body: AnalysedKernel, number: int, operand: int, slots: str = "slots") -> str:
    """Returns the pointer to the input that an iteration's slots name for an operand."""
    stored = stored_type(body, number)
    if is_scalar(body.kernel, number):
        return f"(const {stored} *)({slots} + operands[{operand}].column)"
    return f"(const {stored} *)({address(operand, slots)})"


def output_address(body: AnalysedKernel, output: int, operand: int) -> str:
    """Returns the pointer to the output that an iteration's slots name for an operand."""
    stored = TYPES[body.kernel.stores[output].argument.dtype].stored
    return f"({stored} *)({address(operand, 'slots')})"


def address(operand: int, slots: str) -> str:
    return f"{slots}[operands[{operand}].column] + operands[{operand}].byte_offset"
