"""Records what became of each op of a program, why values are not computed together, and why launches are apart. Pure.

Groups are numbered in the order of the launches' instances, as a plan has them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from fusewire_kernels.fusion.fusion import Fusion, inlined_as
from fusewire_kernels.fusion.groups import Group, Member
from fusewire_kernels.fusion.horizontal import GroupedLaunch
from fusewire_kernels.fusion.lowering import Instance
from fusewire_kernels.fusion.reasons import Reason
from fusewire_kernels.graph.graph import ASSEMBLY, CONSTANT, GATHER, PRODUCT, WHOLE, Graph, Value
from fusewire_protos.ops.op import Category
from fusewire_protos.programs.program import Program
from fusewire_protos.programs.records import NO_OP, OpForm, OpRecord, Records, Separate, Unfused

_OF_ONE_KERNEL = (0,)
_OF_BUFFERS = (PRODUCT, *WHOLE)


def records_of(program: Program, fusion: Fusion, instances: list[Instance], launches: list[GroupedLaunch]) -> Records:
    """Returns the records of a design, without those of a loop."""
    in_order = [group for launch in launches for group in launch.groups]
    origins = [value.origin for value in fusion.graph.values]
    return Records(
        _ops(program, fusion, origins, in_order),
        tuple(_unfused(fusion, origins)),
        tuple(_separate(fusion, instances, launches, len(program.inputs))),
        values=tuple([_ops_of_values(origins, instances[group]) for group in in_order]),
    )


def records_of_one_kernel(program: Program, fusion: Fusion) -> tuple[OpRecord, ...]:
    """Returns the records of the ops if one kernel computes all groups of a design."""
    one = OpRecord(OpForm.KERNELS, _OF_ONE_KERNEL)
    origins = [value.origin for value in fusion.graph.values]
    records = _ops(program, fusion, origins, range(len(fusion.groups)))
    return tuple([one if each.groups else each for each in records])


# ---- ops ----


def _ops(program: Program, fusion: Fusion, origins: list[int], in_order: Sequence[int]) -> tuple[OpRecord, ...]:
    groups_of: list[tuple[int, ...]] = [()] * program.op_count
    for number, group in enumerate(in_order):
        members, inlined = fusion.groups[group].members, fusion.groups[group].inlined
        for op in {origins[value] for value, _ in members} | {origins[value] for value, _ in inlined}:
            groups_of[op] += (number,)
    of_kernels = {groups: OpRecord(OpForm.KERNELS, groups) for groups in {*groups_of} if groups}
    return tuple(
        [
            of_kernels[groups] if groups else _WITHOUT_KERNEL[_form_without_kernel(program, fusion.graph, index)]
            for index, groups in enumerate(groups_of)
        ]
    )


def _ops_of_values(origins: list[int], instance: Instance) -> tuple[int, ...]:
    """Returns the op of each value of a kernel's text, by its number; NO_OP for what the kernel reads."""
    numbers = instance.lowered.values
    if not numbers:
        return ()
    ops = [NO_OP] * (max(numbers) + 1)
    for number, computed in zip(numbers, instance.computed, strict=True):
        ops[number] = origins[computed]
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


def _unfused(fusion: Fusion, origins: list[int]) -> Iterator[Unfused]:
    """Yields each pair of ops of which one reads from memory what another group computes of the other, once."""
    known = set()
    for value, producer, group in _reads_across_groups(fusion):
        pair = (origins[value], origins[producer])
        if pair not in known:
            known.add(pair)
            yield Unfused(*pair, fusion.reasons[value, group].code)


def _reads_across_groups(fusion: Fusion) -> Iterator[tuple[int, int, int]]:
    """Yields each value that reads one of another group, that one, and the index of its group."""
    values, group_of, writers = fusion.graph.values, fusion.group_of, fusion.writers
    for index, group in enumerate(fusion.groups):
        for member in group.members:
            number = member[0]
            for position, operand in enumerate(values[number].operands):
                base = operand[0]
                own = group_of[base]
                if own == index or (own is None and base not in writers):
                    continue
                if group.inlined and _is_inlined(values, group, member, position):
                    continue
                for producer in writers.get(base) or (base,):
                    other = group_of[producer]
                    if other is not None and other != index:
                        yield number, producer, other


def _is_inlined(values: tuple[Value, ...], group: Group, member: Member, position: int) -> bool:
    """Returns whether a group computes an operand of a member again. What a value reads as a buffer is in memory."""
    value = values[member.value]
    if value.form in _OF_BUFFERS or (value.form is GATHER and position == 0):
        return False
    return inlined_as(values, group, value.operands[position], member.placement) is not None


# ---- launches ----


def _separate(
    fusion: Fusion, instances: list[Instance], launches: list[GroupedLaunch], inputs: int
) -> Iterator[Separate]:
    """Yields each launch that reads an input as an earlier launch does, for which it does not wait.

    It is the first launch that reads one of its inputs.
    """
    first_of: dict[int, int] = {}
    for number, launch in enumerate(launches):
        operands = [value for group in launch.groups for value, _ in instances[group].operands]
        of_inputs = sorted({value for value in operands if value < inputs})  # inputs are the first values of a graph
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
