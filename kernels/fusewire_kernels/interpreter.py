"""Tier 0: a program run op by op on arrays, so that no program waits for its plan.

Exact ops and views are the array library's, whose bits are ours; composite ops are expanded as a plan expands them;
every other op goes to the device's one-op kernels, or to its twin where nothing can be compiled.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from fusewire_kernels.conversions import scalar
from fusewire_kernels.expand import expand
from fusewire_kernels.reference import twin
from fusewire_protos.catalogue import Attributes, Category, Op
from fusewire_protos.program import Program, ProgramOp
from fusewire_protos.shapes import Spec

# (op, operand specs, attributes, operand arrays in C order) → the result in C order.
RunInexact = Callable[[Op, Sequence[Spec], Attributes, Sequence[Any]], Any]

_RunPrimitive = Callable[[ProgramOp, tuple[Spec, ...], Sequence[Any], Sequence[int]], Any]


def run(
    program: Program,
    library: Any,
    inputs: Sequence[Any],
    scalars: Sequence[int | float],
    starts: Sequence[int],
    run_inexact: RunInexact | None,
    *,
    is_library_exact: bool = True,
) -> list[Any]:
    """The live results in order, each in C order; one may share memory with an input or with another.

    `library` is NumPy or has its interface, `inputs` are its arrays in C order. Bindings fit the program: the caller
    has checked them. `run_inexact` None stands for a device without a compiler; `is_library_exact` is the device's.
    """

    def run_primitive(op: ProgramOp, specs: tuple[Spec, ...], operands: Sequence[Any], starts: Sequence[int]) -> Any:
        if run_inexact is None or not needs_kernel(op.op, is_library_exact=is_library_exact):
            return twin(op.op)(library, operands, op.attributes, starts)
        return run_inexact(op.op, specs, op.attributes, [_dense(library, operand) for operand in operands])

    return _run(program, library, inputs, scalars, starts, run_primitive)


def needs_kernel(op: Op, *, is_library_exact: bool) -> bool:
    """Whether the array library may get other bits for a primitive op than our kernels.

    One that is not exact (CuPy flushes denormals to zero) is trusted to move elements, and no further.
    """
    if op.category in _MOVING:
        return False
    return not (op.is_exact and is_library_exact)


_MOVING = (Category.VIEW, Category.MOVE, Category.CREATE)


def _run(
    program: Program,
    library: Any,
    inputs: Sequence[Any],
    scalars: Sequence[int | float],
    starts: Sequence[int],
    run_primitive: _RunPrimitive,
) -> list[Any]:
    values = [*inputs]
    values += [scalar(library, value, dtype) for value, dtype in zip(scalars, program.scalars, strict=True)]
    remaining = iter(starts)
    for op, dying in zip(program.ops, _dying(program), strict=True):
        own_starts = [next(remaining) for _ in range(op.op.starts(op.attributes))]
        specs = tuple(program.specs[operand] for operand in op.operands)
        operands = [values[operand] for operand in op.operands]
        values.append(_run_op(op, library, specs, operands, own_starts, run_primitive))
        for number in dying:
            values[number] = None
    return [_dense(library, values[program.first_result + index]) for index in program.live]


def _run_op(
    op: ProgramOp,
    library: Any,
    specs: tuple[Spec, ...],
    operands: Sequence[Any],
    starts: Sequence[int],
    run_primitive: _RunPrimitive,
) -> Any:
    if op.op.category is not Category.COMPOSITE:
        return run_primitive(op, specs, operands, starts)
    expansion = expand(op.op, specs, op.attributes)
    return _run(expansion.program, library, operands, expansion.constants, (), run_primitive)[0]


def _dying(program: Program) -> list[list[int]]:
    """For each op, the operand numbers that nothing needs after it: an unused result dies at its own op."""
    last_use = {program.first_result + index: index for index in range(len(program.ops))}
    for index, op in enumerate(program.ops):
        last_use.update((operand, index) for operand in op.operands)
    kept = {program.first_result + index for index in program.live}
    dying: list[list[int]] = [[] for _ in program.ops]
    for number, index in last_use.items():
        if number not in kept:
            dying[index].append(number)
    return dying


def _dense(library: Any, array: Any) -> Any:
    return library.asarray(array, order="C")
