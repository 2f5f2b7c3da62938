"""Hints on what may make a session's work faster. Each follows from what was counted, and says the counts."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeVar

from fusewire._stream.sender import Trigger
from fusewire_protos.programs.explained import ExplainedProgram

LEAST_READS = 16  # that cut a segment
LEAST_ALIKE = 8  # programs of the same ops
LEAST_PAUSES = 64  # segments that were cut because recording paused
FEW_OPS = 16  # of a segment
LEAST_FRAGMENTS = 64
LEAST_REPEATS = 16  # uploads of the bytes of the one before
_NAMES_SHOWN = 4
_SHOWN_DIGITS = 12  # of a digest

_K = TypeVar("_K")


class Counted(NamedTuple):
    """What a session has counted so far.

    `cuts` are the segments by the value of the `Trigger` that cut them, `fragments` those of them that are no whole
    bodies of loops, of `fragment_programs` distinct programs. `uploads` are those that travelled in frames, and
    `repeats` those of them that brought the bytes of the one before of the same shape and dtype.
    """

    cuts: Mapping[str, int]
    ops: int = 0
    fragments: int = 0
    fragment_programs: int = 0
    uploads: int = 0
    repeats: int = 0


def hints_of(counted: Counted, programs: Sequence[ExplainedProgram]) -> Iterator[str]:
    """Yields the hints."""
    yield from _on_reads(counted.cuts)
    yield from _on_pauses(counted)
    yield from _on_uploads(counted)
    alike = [*_on_alike(programs)]
    yield from alike or _on_fragments(counted)  # shapes that change are why no loop was found
    yield from _on_reasons(programs)


def _on_reads(cuts: Mapping[str, int]) -> Iterator[str]:
    reads, segments = cuts[Trigger.DEMAND.value], sum(cuts.values())
    if reads >= LEAST_READS and 2 * reads >= segments:
        yield (
            f"{reads} of {segments} segments were sent because a value was read: each `float()` costs a round trip; "
            "read every 100 steps, or keep the arrays and read them at the end"
        )


def _on_pauses(counted: Counted) -> Iterator[str]:
    pauses, segments = counted.cuts[Trigger.AGE.value], sum(counted.cuts.values())
    if pauses >= LEAST_PAUSES and 2 * pauses >= segments and counted.ops < FEW_OPS * segments:
        yield (
            f"{pauses} of {segments} segments were sent because recording paused for a millisecond, with "
            f"{counted.ops / segments:.1f} ops each: the program waits or computes between its ops; record the ops of "
            "a step together, and wait after them"
        )


def _on_fragments(counted: Counted) -> Iterator[str]:
    segments, distinct = sum(counted.cuts.values()), counted.fragment_programs
    if counted.fragments >= LEAST_FRAGMENTS and 2 * counted.fragments >= segments and 2 * distinct > counted.fragments:
        yield (
            f"{counted.fragments} of {segments} segments are no whole body of a loop, and {distinct} of them differ "
            "from all before: no loop was found, because ops, shapes or attributes change from step to step; keep them "
            "the same, or record the step once by `fw.function` or `fw.fori_loop`"
        )


def _on_uploads(counted: Counted) -> Iterator[str]:
    if counted.repeats >= LEAST_REPEATS and 2 * counted.repeats >= counted.uploads:
        yield (
            f"{counted.repeats} of {counted.uploads} small uploads brought the bytes of the one before: upload such a "
            "value once by `session.array`, and use the array again"
        )


def _on_alike(programs: Sequence[ExplainedProgram]) -> Iterator[str]:
    alike = _grouped(programs, lambda program: program.names)
    for names, group in alike.items():
        if len(group) >= LEAST_ALIKE:
            shown = ", ".join(names[:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
            planned_s = sum([each.planning_ns + each.compiling_ns for each in group]) / 1e9
            took = f", which took {planned_s:.1f} s to make" if planned_s else ""
            yield (
                f"{len(group)} programs have the same {len(names)} ops ({shown}) and differ in shapes, attributes or "
                f"what is kept: {len(group)} shapes, {len(group)} plans{took}; pad to few shapes, and pass what "
                "changes as a value"
            )


def _on_reasons(programs: Sequence[ExplainedProgram]) -> Iterator[str]:
    """Tells why programs run op by op, and why iterations of loops are launched one by one."""
    for refusal, group in _grouped(programs, lambda program: program.refusal).items():
        if refusal:
            yield f"the program {_shown(group)} runs op by op, without a plan: {refusal}"
    for why, group in _grouped(programs, lambda program: program.records.why_launched).items():
        if why:
            yield f"each iteration of the loop {_shown(group)} is launched by itself: {why}"


def _shown(group: Sequence[ExplainedProgram]) -> str:
    more = f" (and of {len(group) - 1} more)" if len(group) > 1 else ""
    return group[0].digest[:_SHOWN_DIGITS] + more


def _grouped(
    programs: Sequence[ExplainedProgram], key: Callable[[ExplainedProgram], _K]
) -> dict[_K, list[ExplainedProgram]]:
    groups: dict[_K, list[ExplainedProgram]] = {}
    for program in programs:
        groups.setdefault(key(program), []).append(program)
    return groups
