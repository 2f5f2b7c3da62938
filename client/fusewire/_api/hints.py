"""Hints on what may make a session's work faster. Each follows from what was counted, and says the counts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from fusewire._stream.sender import Trigger
from fusewire_protos.programs.explained import ExplainedProgram

LEAST_READS = 16  # that cut a segment
LEAST_ALIKE = 8  # programs of the same ops
_NAMES_SHOWN = 4


def hints_of(cuts: Mapping[str, int], programs: Sequence[ExplainedProgram]) -> Iterator[str]:
    """Yields the hints. `cuts` are the segments that were cut, by the value of the `Trigger`."""
    yield from _on_reads(cuts)
    yield from _on_alike(programs)


def _on_reads(cuts: Mapping[str, int]) -> Iterator[str]:
    reads, segments = cuts[Trigger.DEMAND.value], sum(cuts.values())
    if reads >= LEAST_READS and 2 * reads >= segments:
        yield (
            f"{reads} of {segments} segments were sent because a value was read: each `float()` costs a round trip; "
            "read every 100 steps, or keep the arrays and read them at the end"
        )


def _on_alike(programs: Sequence[ExplainedProgram]) -> Iterator[str]:
    alike: dict[tuple[str, ...], list[ExplainedProgram]] = {}
    for program in programs:
        alike.setdefault(program.names, []).append(program)
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
