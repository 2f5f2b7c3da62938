"""Bounds how much of a program's plan is told, and writes a program as text for people."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from fusewire_kernels.codegen.line_map import line_map
from fusewire_protos.programs.record_text import record_lines
from fusewire_protos.programs.records import OpForm, OpRecord, Records, Separate, Unfused
from fusewire_server.inspect.snapshots.plan_views import CompiledView, LineView, Omitted, SourceView
from fusewire_server.inspect.snapshots.program_view import ProgramDetail, ProgramView

MOST_SOURCE_CHARACTERS = 1 << 20
MOST_LINES = 10_000  # launches, ops, and pairs of ops


def bounded(detail: ProgramDetail) -> ProgramDetail:
    """Returns a program without what goes beyond the bounds, and with the line maps of its kernels.

    `omitted` of its plan counts what is left out.
    """
    plan = detail.compiled
    if plan is None:
        return detail
    groups, ops, sources = plan.groups[:MOST_LINES], plan.ops[:MOST_LINES], tuple(_first_sources(plan.sources))
    unfused = tuple([each for each in plan.unfused if max(each.consumer, each.producer) < MOST_LINES][:MOST_LINES])
    omitted = Omitted(
        groups=len(plan.groups) - len(groups),
        ops=len(plan.ops) - len(ops),
        unfused=len(plan.unfused) - len(unfused),
        sources=len(plan.sources) - len(sources),
    )
    cut = replace(plan, groups=groups, ops=ops, unfused=unfused, sources=sources, omitted=omitted)
    return replace(detail, compiled=cut)


def program_text(detail: ProgramDetail) -> str:
    """Returns the lines: counts, launches, which ops were fused and why others were not, and the generated kernels."""
    return "\n".join(_lines(detail)) + "\n"


def _first_sources(sources: Sequence[SourceView]) -> Iterator[SourceView]:
    """Yields the first kernels whose texts together stay within the bound."""
    characters = 0
    for source in sources:
        characters += len(source.text)
        if characters > MOST_SOURCE_CHARACTERS:
            return
        yield replace(source, lines=tuple([LineView(*each) for each in line_map(source.text)]))


def _lines(detail: ProgramDetail) -> Iterator[str]:
    program = detail.program
    kind = "fragment" if program.is_fragment else "program"
    yield f"{kind} {program.digest}: {program.ops} ops, tier {program.tier} ({program.form}), {program.state}"
    yield f"{program.hits} segments, {program.rows} rows in {program.submissions} submissions"
    if program.row_ns:
        yield f"a row takes about {program.row_ns / 1e3:.1f} µs on the device"
    else:
        yield "how long a row takes is not known: none has run at this tier"
    if program.planning_ns:
        yield f"planned in {program.planning_ns / 1e6:.1f} ms, compiled in {program.compiling_ns / 1e6:.1f} ms"
    yield from [f"the same ops in {each.digest}, where {each.difference}" for each in detail.alike]
    if program.refusal:
        yield f"no plan: {program.refusal}"
    if detail.compiled is not None:
        yield from _launching_lines(program)
        yield from _compiled_lines(detail.compiled)


def _launching_lines(program: ProgramView) -> Iterator[str]:
    counts = program.launching
    graphs = f"{counts.graphs} captured graphs, of {counts.captured} so far"
    yield f"{graphs}; {counts.persistent_launches} persistent launches"
    if program.why_no_graph:
        yield f"no captured graph: {program.why_no_graph}"
    if program.why_not_persistent:
        yield f"not by the persistent kernel: {program.why_not_persistent}"


def _compiled_lines(compiled: CompiledView) -> Iterator[str]:
    yield ""
    yield f"{len(compiled.groups)} launches, {compiled.arena_bytes} bytes of intermediate values for each row:"
    for group in compiled.groups:
        yield f"  {group.kernel} × {group.instances}, sizes {list(group.sizes)}"
    yield ""
    instances = [group.instances for group in compiled.groups]
    yield from record_lines([op.name for op in compiled.ops], instances, _records(compiled), compiled.reasons)
    for source in compiled.sources:
        yield ""
        yield f"---- {source.kernel} ----"
        yield source.text.rstrip("\n")
    yield from _omitted_lines(compiled.omitted)


def _records(compiled: CompiledView) -> Records:
    """Returns the records that a plan is shown by."""
    return Records(
        tuple([OpRecord(OpForm(op.form), op.groups) for op in compiled.ops]),
        tuple([Unfused(each.consumer, each.producer, each.reason) for each in compiled.unfused]),
        tuple([Separate(each.launch, each.other, each.input, each.reason) for each in compiled.separate]),
        compiled.updated,
        tuple([OpRecord(OpForm(form)) for form in compiled.persistent]),
        compiled.why_launched,
    )


def _omitted_lines(omitted: Omitted) -> Iterator[str]:
    if any((omitted.groups, omitted.ops, omitted.unfused, omitted.sources)):
        yield ""
        yield (
            f"left out, because the answer would be too long: {omitted.groups} launches, {omitted.ops} ops, "
            f"{omitted.unfused} pairs of ops, {omitted.sources} kernels"
        )
