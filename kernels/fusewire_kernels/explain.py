"""A plan in words: which ops each launch computes, and why ops that are neighbours were not fused."""

from __future__ import annotations

from fusewire_kernels.fuse import Fusion
from fusewire_kernels.graph import Form
from fusewire_kernels.schedule import Batch
from fusewire_protos.program import Program

_MOST_LINES = 400


def explain(program: Program, fusion: Fusion, batches: list[Batch]) -> tuple[str, ...]:
    """One line a launch, then one line for each kind of refusal. Ops are named as "name #index in the program"."""
    ops_of = [_ops_of_group(program, fusion, index) for index in range(len(fusion.groups))]
    lines = [f"launch {number}: {_describe(batch, ops_of)}" for number, batch in enumerate(batches)]
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… and {len(lines) - _MOST_LINES} launches more"]
    return (*lines, *_refusals(program, fusion))


def _ops_of_group(program: Program, fusion: Fusion, index: int) -> str:
    values = fusion.graph.values
    numbers = [number for number, _ in (*sorted(fusion.groups[index].inlined), *fusion.groups[index].members)]
    return " + ".join([_op_name(program, origin) for origin in dict.fromkeys([values[n].origin for n in numbers])])


def _describe(batch: Batch, ops_of: list[str]) -> str:
    if len(batch.groups) == 1:
        return ops_of[batch.groups[0]]
    return f"{len(batch.groups)} × ({'; '.join([ops_of[group] for group in batch.groups])})"


def _op_name(program: Program, index: int) -> str:
    return f"{program.ops[index].op.name} #{index}"


def _refusals(program: Program, fusion: Fusion) -> list[str]:
    """Refusals of the same ops for the same reason are one line, with the first as its example."""
    examples: dict[tuple[str, str, str], tuple[str, str]] = {}
    times: dict[tuple[str, str, str], int] = {}
    values = fusion.graph.values
    for value, producer, reason in fusion.refusals:
        if fusion.group_of[value] == fusion.group_of[producer] or values[value].form is Form.PRODUCT:
            continue
        ops = (values[value].origin, values[producer].origin)
        kind = (program.ops[ops[0]].op.name, program.ops[ops[1]].op.name, reason)
        examples.setdefault(kind, (_op_name(program, ops[0]), _op_name(program, ops[1])))
        times[kind] = times.get(kind, 0) + 1
    return [
        f"{consumer} not fused with {producer}: {kind[2]}" + (f" ({times[kind]} times)" if times[kind] > 1 else "")
        for kind, (consumer, producer) in examples.items()
    ]
