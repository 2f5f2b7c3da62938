"""Defines how the plan of a program is shown: its launches, what became of each op, its kernels. Plain data."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import islice

from fusewire_kernels.fusion.reasons import sentences_of
from fusewire_kernels.plan.plan import Plan
from fusewire_protos.programs.program import Program
from fusewire_protos.programs.records import OpRecord
from fusewire_server.figures import Described

MOST_DRAWN = 300  # ops of a program whose operands are told, so that a page can draw them


@dataclass(frozen=True)
class GroupView(Described):
    """Ops of a program that are fused into one kernel."""

    kernel: str
    """Name of the kernel."""
    sizes: tuple[int, ...]
    """Sizes that the launch passes to the kernel."""
    instances: int
    """Number of equal groups in the launch."""
    values: tuple[tuple[int, ...], ...] = ()
    """For each of these groups, the op of each value that the kernel's text numbers (v0, v1 …); -1 for what is read."""


@dataclass(frozen=True, slots=True)
class LineView(Described):
    """A line of a kernel's text that computes a value."""

    line: int
    """Number of the line, from 1 on."""
    value: int
    """Number of the value. `values` of a launch has its op."""


@dataclass(frozen=True)
class SourceView(Described):
    """The generated text of a kernel."""

    kernel: str
    """Name of the kernel."""
    text: str
    """The generated text."""
    lines: tuple[LineView, ...] = ()
    """The lines that compute values, or read them."""


@dataclass(frozen=True, slots=True)
class OpView(Described):
    """What an op of a program became."""

    name: str
    """Name of the op."""
    form: str
    """`kernels` if groups compute it. `view`: it shows elements of another value where they are. `assembly`: a buffer
    without elements, or one whose parts are read where they are. `constant`: the plan holds it. `dead`: no result that
    is wanted depends on it.
    """
    groups: tuple[int, ...]
    """The groups that compute it. Groups are numbered through all launches, in order."""


@dataclass(frozen=True, slots=True)
class UnfusedView(Described):
    """Two ops that are not fused: one reads from memory what the other computes."""

    consumer: int
    """Index of the op that reads."""
    producer: int
    """Index of the op that is read. It is the same op if that is computed in several steps."""
    reason: str
    """Code of the reason; `reasons` has its sentence."""


@dataclass(frozen=True, slots=True)
class SeparateView(Described):
    """Two launches that read one input, of which the later does not wait for the earlier."""

    launch: int
    """Index of the later launch."""
    other: int
    """Index of the earlier launch."""
    input: int
    """Number of the input."""
    reason: str
    """Code of the reason why they are not one launch; `reasons` has its sentence."""


@dataclass(frozen=True)
class Omitted(Described):
    """Counts what is left out of an answer, because the answer would be too long."""

    groups: int = 0
    """Number of launches left out."""
    ops: int = 0
    """Number of ops left out."""
    unfused: int = 0
    """Number of pairs that are not fused left out."""
    sources: int = 0
    """Number of kernels left out."""


@dataclass(frozen=True)
class CompiledView(Described):
    """A plan as people see it: its launches in order, what became of each op, why ops were not fused, its kernels."""

    groups: tuple[GroupView, ...]
    """The launches, in order."""
    ops: tuple[OpView, ...]
    """The ops of the program, in order."""
    unfused: tuple[UnfusedView, ...]
    """The ops that are not fused though one reads the other. Each pair has one reason."""
    separate: tuple[SeparateView, ...]
    """The launches that are not one though they read one input."""
    reasons: Mapping[str, str]
    """The sentences of the reasons that occur here, by code."""
    updated: tuple[int, ...]
    """Numbers of the inputs that the iterations of a loop change in place."""
    persistent: tuple[str, ...]
    """The form of each op if one launch runs many iterations of a loop. Empty if there is no such kernel."""
    why_launched: str
    """Why a loop has no such kernel, so that each iteration is launched. Empty if it has, or if it is no loop."""
    sources: tuple[SourceView, ...]
    """The kernels."""
    arena_bytes: int
    """Memory in bytes that a row needs for intermediate values."""
    reads: tuple[tuple[int, ...], ...] = ()
    """For each op the ops whose results it takes. Empty for a program of more than 300 ops."""
    omitted: Omitted = Omitted()
    """What is left out here."""


def compiled_view(plan: Plan, program: Program) -> CompiledView:
    """Returns the plan of a program as people see it.

    Called once for each loaded plan, because snapshots share the result.
    """
    records = plan.records
    of_records: dict[tuple[str, OpRecord], OpView] = {}
    pairs = [*zip(program.op_names, records.ops, strict=True)]
    values = iter(records.values)
    return CompiledView(
        groups=tuple(
            GroupView(
                plan.kernels[launch.kernel].key,
                launch.sizes,
                len(launch.instances),
                tuple(islice(values, len(launch.instances))),
            )
            for launch in plan.launches
        ),
        ops=tuple([of_records.setdefault(pair, OpView(pair[0], *pair[1])) for pair in pairs]),
        unfused=tuple([UnfusedView(*each) for each in records.unfused]),
        separate=tuple([SeparateView(*each) for each in records.separate]),
        reasons=sentences_of(records),
        updated=records.updated,
        persistent=tuple([each.form for each in records.persistent]),
        why_launched=records.why_launched,
        sources=tuple(SourceView(kernel.key, kernel.text) for kernel in plan.kernels),
        arena_bytes=plan.arena_bytes,
        reads=_reads(program) if program.op_count <= MOST_DRAWN else (),
    )


def _reads(program: Program) -> tuple[tuple[int, ...], ...]:
    """Returns for each op of a program the ops whose results it takes, each once."""
    first = program.first_result
    return tuple([tuple(sorted({each - first for each in taken if each >= first})) for taken in program.operands])
