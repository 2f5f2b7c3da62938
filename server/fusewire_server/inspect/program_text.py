"""Writes a program and its plan as text for people, and bounds how much of a plan is told. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import TypeVar

from fusewire_server.inspect.snapshot import CompiledView, Omitted, ProgramDetail, ProgramView

T = TypeVar("T")

MOST_SOURCE_CHARACTERS = 1 << 20
MOST_LINES = 10_000  # groups, and lines of the explanation


def bounded(detail: ProgramDetail) -> ProgramDetail:
    """Returns a program without what goes beyond the bounds. `omitted` counts what is left out."""
    plan = detail.compiled
    if plan is None:
        return detail
    sources = tuple(_within(plan.sources, (len(source.text) for source in plan.sources)))
    groups, explanation = plan.groups[:MOST_LINES], plan.explanation[:MOST_LINES]
    omitted = Omitted(
        groups=len(plan.groups) - len(groups),
        explanation=len(plan.explanation) - len(explanation),
        sources=len(plan.sources) - len(sources),
    )
    return replace(
        detail, compiled=replace(plan, groups=groups, explanation=explanation, sources=sources, omitted=omitted)
    )


def program_text(detail: ProgramDetail) -> str:
    """Returns a program as lines of text: its use, its launches, why ops were fused or not, and its kernels."""
    return "\n".join(_lines(detail)) + "\n"


def _within(items: Iterable[T], sizes: Iterable[int]) -> Iterator[T]:
    """Yields the first items whose sizes together stay within the bound."""
    total = 0
    for item, size in zip(items, sizes, strict=True):
        total += size
        if total > MOST_SOURCE_CHARACTERS:
            return
        yield item


def _lines(detail: ProgramDetail) -> Iterator[str]:
    yield from _use(detail.program)
    plan = detail.compiled
    if plan is None:
        yield "plan        none: the program runs op by op"
        return
    yield f"arena       {plan.arena_bytes:,} bytes"
    yield ""
    yield f"launches ({len(plan.groups):,})"
    for group in plan.groups:
        yield f"  {group.kernel}  sizes {list(group.sizes)}  instances {group.instances:,}"
    yield ""
    yield "explanation"
    yield from (f"  {line}" for line in plan.explanation)
    for source in plan.sources:
        yield ""
        yield f"kernel {source.kernel}"
        yield source.text.rstrip("\n")
    yield from _left_out(plan)


def _use(program: ProgramView) -> Iterator[str]:
    kind = "fragment" if program.is_fragment else "program"
    yield f"{kind:<11} {program.digest}"
    yield f"ops         {program.ops:,}"
    yield f"state       {program.state}, tier {program.tier}"
    yield f"use         {program.hits:,} hits, {program.rows:,} rows in {program.submissions:,} submissions"
    yield f"row         {program.row_ns / 1e3:,.1f} us of device time"
    yield f"planning    {program.planning_ns / 1e6:,.1f} ms, compiling {program.compiling_ns / 1e6:,.1f} ms"
    if program.refusal:
        yield f"refused     {program.refusal}"


def _left_out(plan: CompiledView) -> Iterator[str]:
    left_out = {"launches": plan.omitted.groups, "lines": plan.omitted.explanation, "kernels": plan.omitted.sources}
    told = ", ".join(f"{count:,} {name}" for name, count in left_out.items() if count)
    if told:
        yield ""
        yield f"left out, because the answer would be too long: {told}"
