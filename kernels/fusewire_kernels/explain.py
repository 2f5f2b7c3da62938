"""Explains a plan in lines of text.

The lines tell which ops each launch computes, why ops were not fused, and why launches are separate.
"""

from __future__ import annotations

from fusewire_kernels.fusion.fusion import Fusion
from fusewire_kernels.fusion.groups import Group
from fusewire_kernels.fusion.horizontal import GroupedLaunch
from fusewire_kernels.graph.graph import PRODUCT, Graph
from fusewire_kernels.memory.lifetimes import Lifetime
from fusewire_protos.programs.program import Program

_MOST_LINES = 400


def explain(
    program: Program, fusion: Fusion, launches: list[GroupedLaunch], lifetimes: dict[int, Lifetime]
) -> tuple[str, ...]:
    """Returns three lists of lines, one behind another.

    The first list has a line for each launch. The second list has a line for each kind of refusal, which is a decision
    not to fuse two ops. The third list has a line for each launch that shares an input with an earlier launch and does
    not wait for that launch. An op is called by its name and its index in the program, as in "add #3". The first and
    the third list show at most `_MOST_LINES` items each.
    """
    names = [f"{op.name} #{index}" for index, (op, _, _) in enumerate(program.ops)]
    ops_of = [_ops_of_group(names, fusion.graph, group) for group in fusion.groups]
    lines = [f"launch {number}: {_describe(launch, ops_of)}" for number, launch in enumerate(launches)]
    if len(lines) > _MOST_LINES:
        lines = [*lines[:_MOST_LINES], f"… and {len(lines) - _MOST_LINES} launches more"]
    return (
        *lines,
        *_refusals(program, names, fusion),
        *_separate(fusion, launches, lifetimes, len(program.inputs))[:_MOST_LINES],
    )


def _ops_of_group(names: list[str], graph: Graph, group: Group) -> str:
    """Returns the names of the ops that a group computes. Each name occurs once."""
    members = [*sorted(group.inlined), *group.members] if group.inlined else group.members
    values = graph.values
    return " + ".join(dict.fromkeys([names[values[number].origin] for number, _ in members]))


def _describe(launch: GroupedLaunch, ops_of: list[str]) -> str:
    if len(launch.groups) == 1:
        return ops_of[launch.groups[0]]
    return f"{len(launch.groups)} × ({'; '.join([ops_of[group] for group in launch.groups])})"


def _refusals(program: Program, names: list[str], fusion: Fusion) -> list[str]:
    """Returns one line for each kind of refusal. A line names the two ops of the kind's first refusal.

    Two refusals are of one kind if the ops have the same names and the reason is the same.
    """
    examples: dict[tuple[str, str, str], tuple[str, str]] = {}
    times: dict[tuple[str, str, str], int] = {}
    values = fusion.graph.values
    for value, producer, reason in fusion.refusals:
        if fusion.group_of[value] == fusion.group_of[producer] or values[value].form is PRODUCT:
            continue
        ops = (values[value].origin, values[producer].origin)
        kind = (program.ops[ops[0]].op.name, program.ops[ops[1]].op.name, reason)
        examples.setdefault(kind, (names[ops[0]], names[ops[1]]))
        times[kind] = times.get(kind, 0) + 1
    return [
        f"{consumer} not fused with {producer}: {kind[2]}" + (f" ({times[kind]} times)" if times[kind] > 1 else "")
        for kind, (consumer, producer) in examples.items()
    ]


def _separate(fusion: Fusion, launches: list[GroupedLaunch], lifetimes: dict[int, Lifetime], inputs: int) -> list[str]:
    """Returns a line for each launch that shares an input with an earlier launch.

    The line names the first such earlier launch and the reason why the two launches are separate. A launch that waits
    for that first launch gets no line.
    """
    shared: dict[int, tuple[int, int]] = {}  # by launch: the first launch that shares an input with it, and the input
    for value in range(inputs):  # inputs are the first values of a graph
        reads = lifetimes[value].reads if value in lifetimes else []
        for launch, _ in reads:
            first = (reads[0].launch, value)
            if first < shared.get(launch, (launch, 0)):
                shared[launch] = first
    lines = []
    for launch, (other, value) in sorted(shared.items()):
        if not _waits(fusion, launches[launch], launches[other]):
            number = fusion.graph.values[value].number
            reason = _difference(launches[launch], launches[other])
            lines.append(f"launch {launch} separate from launch {other}, which reads input {number} too: {reason}")
    return lines


def _waits(fusion: Fusion, launch: GroupedLaunch, other: GroupedLaunch) -> bool:
    """Returns whether `launch` waits for `other`, directly or indirectly."""
    groups = fusion.groups
    ancestors = bits = 0
    for group in launch.groups:
        ancestors |= groups[group].ancestors
    for group in other.groups:
        bits |= 1 << groups[group].number
    return ancestors & bits != 0


def _difference(launch: GroupedLaunch, other: GroupedLaunch) -> str:
    if launch.lowered.kernel.key != other.lowered.kernel.key:
        return "only groups of one kernel become one launch"
    if launch.lowered.sizes != other.lowered.sizes:
        return "only groups of the same sizes become one launch"
    return "it waits for launches in between"
