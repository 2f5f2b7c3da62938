"""Records what became of each op of a program, why values are not computed together, and why launches are apart. Pure.

Groups are numbered in the order of the launches' instances, as a plan has them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from fusewire_kernels.fusion.fusion import Fusion, inlined_as
from fusewire_kernels.fusion.horizontal import GroupedLaunch
from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.fusion.reasons import Reason
from fusewire_kernels.graph.graph import ASSEMBLY, CONSTANT, GATHER, PRODUCT, WHOLE, Graph
from fusewire_protos.ops.op import Category
from fusewire_protos.programs.program import Program
from fusewire_protos.programs.records import NO_OP, OpForm, OpRecord, Records, Separate, Unfused

_OF_ONE_KERNEL = (0,)
_OF_BUFFERS = (PRODUCT, *WHOLE)


def records_of(program: Program, fusion: Fusion, instances: list[Instance], launches: list[GroupedLaunch]) -> Records:
    """Returns the records of a design, without those of a loop."""
    in_order = [group for launch in launches for group in launch.groups]
    return Records(
        _ops(program, fusion, in_order),
        tuple(_unfused(fusion)),
        tuple(_separate(fusion, instances, launches, len(program.inputs))),
        values=tuple([_ops_of_values(fusion.graph, instances[group]) for group in in_order]),
    )


def records_of_one_kernel(program: Program, fusion: Fusion) -> tuple[OpRecord, ...]:
    """Returns the records of the ops if one kernel computes all groups of a design."""
    one = OpRecord(OpForm.KERNELS, _OF_ONE_KERNEL)
    return tuple([one if each.groups else each for each in _ops(program, fusion, range(len(fusion.groups)))])


# ---- ops ----


def _ops(program: Program, fusion: Fusion, in_order: Sequence[int]) -> tuple[OpRecord, ...]:
    groups_of: dict[int, list[int]] = {}
    for number, group in enumerate(in_order):
        for op in _ops_of(fusion, group):
            groups_of.setdefault(op, []).append(number)
    of_kernels: dict[tuple[int, ...], OpRecord] = {}
    found = []
    for index in range(program.op_count):
        groups = tuple(groups_of.get(index, ()))
        if groups:
            found.append(of_kernels.setdefault(groups, OpRecord(OpForm.KERNELS, groups)))
        else:
            found.append(_WITHOUT_KERNEL[_form_without_kernel(program, fusion.graph, index)])
    return tuple(found)


def _ops_of(fusion: Fusion, group: int) -> Iterable[int]:
    """Returns the ops that a group computes, each once."""
    values, (members, inlined) = fusion.graph.values, (fusion.groups[group].members, fusion.groups[group].inlined)
    return dict.fromkeys([values[number].origin for number, _ in (*members, *inlined)])


def _ops_of_values(graph: Graph, instance: Instance) -> tuple[int, ...]:
    """Returns the op of each value of a kernel's text, by its number; NO_OP for what the kernel reads."""
    numbers = instance.lowered.values
    ops = [NO_OP] * (max(numbers, default=-1) + 1)
    for number, computed in zip(numbers, instance.computed, strict=True):
        ops[number] = graph.values[computed].origin
    return tuple(ops)


def _form_without_kernel(program: Program, graph: Graph, index: int) -> OpForm:
    """Returns what an op is that no group computes."""
    number = graph.results[index]
    if number is None:
        return OpForm.DEAD
    form = graph.values[number].form
    if form is CONSTANT:
        return OpForm.CONSTANT
    if program.signatures[index].op.category is Category.VIEW:
        return OpForm.VIEW
    if form is ASSEMBLY:
        return OpForm.ASSEMBLY
    return OpForm.VIEW if graph.is_needed[number] else OpForm.DEAD


_WITHOUT_KERNEL: dict[OpForm, OpRecord] = {form: OpRecord(form) for form in OpForm}

# ---- edges ----


def _unfused(fusion: Fusion) -> Iterator[Unfused]:
    """Yields each pair of ops of which one reads from memory what another group computes of the other, once."""
    values, known = fusion.graph.values, set()
    for value, producer, group in _reads_across_groups(fusion):
        pair = (values[value].origin, values[producer].origin)
        if pair not in known:
            known.add(pair)
            yield Unfused(*pair, fusion.reasons[value, group].code)


def _reads_across_groups(fusion: Fusion) -> Iterator[tuple[int, int, int]]:
    """Yields each value that reads one of another group, that one, and the index of its group."""
    values, group_of, writers = fusion.graph.values, fusion.group_of, fusion.writers
    for index, group in enumerate(fusion.groups):
        for number, placement in group.members:
            value = values[number]
            of_memory = len(value.operands) if value.form in _OF_BUFFERS else value.form is GATHER  # the first operands
            for position, operand in enumerate(value.operands):
                base, own = operand.value, group_of[operand.value]
                if own == index or (own is None and base not in writers):
                    continue
                if position >= of_memory and inlined_as(values, group, operand, placement) is not None:
                    continue
                for producer in writers.get(base) or (base,):
                    other = group_of[producer]
                    if other is not None and other != index:
                        yield number, producer, other


# ---- launches ----


def _separate(
    fusion: Fusion, instances: list[Instance], launches: list[GroupedLaunch], inputs: int
) -> Iterator[Separate]:
    """Yields each launch that reads an input as an earlier launch does, for which it does not wait.

    It is the first launch that reads one of its inputs.
    """
    first_of: dict[int, int] = {}
    for number, launch in enumerate(launches):
        read = {operand.value for group in launch.groups for operand in instances[group].read()}
        of_inputs = sorted([value for value in read if value < inputs])  # inputs are the first values of a graph
        shared = [(first_of[value], value) for value in of_inputs if value in first_of]
        for value in of_inputs:
            first_of.setdefault(value, number)
        if shared:
            other, value = min(shared)
            if not _waits(fusion, launch, launches[other]):
                reason = _difference(launch, launches[other])
                yield Separate(number, other, fusion.graph.values[value].number, reason.code)


def _waits(fusion: Fusion, launch: GroupedLaunch, other: GroupedLaunch) -> bool:
    """Returns whether `launch` waits for `other`, directly or indirectly."""
    groups = fusion.groups
    ancestors = bits = 0
    for group in launch.groups:
        ancestors |= groups[group].ancestors
    for group in other.groups:
        bits |= 1 << groups[group].number
    return ancestors & bits != 0


def _difference(launch: GroupedLaunch, other: GroupedLaunch) -> Reason:
    if launch.lowered.kernel.key != other.lowered.kernel.key:
        return Reason.OTHER_KERNEL
    return Reason.OTHER_SIZES if launch.lowered.sizes != other.lowered.sizes else Reason.WAITS_BETWEEN
