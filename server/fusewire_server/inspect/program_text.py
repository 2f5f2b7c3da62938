"""Writes a program and its plan as text for people."""

from __future__ import annotations

from collections.abc import Iterator

from fusewire_server.inspect.snapshot import CompiledView, ProgramDetail


def program_text(detail: ProgramDetail) -> str:
    """Returns the lines: counts, launches, which ops were fused and why others were not, and the generated kernels."""
    return "\n".join(_lines(detail)) + "\n"


def _lines(detail: ProgramDetail) -> Iterator[str]:
    program = detail.program
    kind = "fragment" if program.is_fragment else "program"
    yield f"{kind} {program.digest}: {program.ops} ops, tier {program.tier}, {program.state}"
    yield f"{program.hits} segments, {program.rows} rows in {program.submissions} submissions"
    yield f"a row takes about {program.row_ns / 1e3:.1f} µs on the device"
    yield f"planned in {program.planning_ns / 1e6:.1f} ms, compiled in {program.compiling_ns / 1e6:.1f} ms"
    if program.refusal:
        yield f"no plan: {program.refusal}"
    if detail.compiled is not None:
        yield from _compiled_lines(detail.compiled)


def _compiled_lines(compiled: CompiledView) -> Iterator[str]:
    yield ""
    yield f"{len(compiled.groups)} launches, {compiled.arena_bytes} bytes of intermediate values for each row:"
    for group in compiled.groups:
        yield f"  {group.kernel} × {group.instances}, sizes {list(group.sizes)}"
    yield ""
    yield from compiled.explanation
    for source in compiled.sources:
        yield ""
        yield f"---- {source.kernel} ----"
        yield source.text.rstrip("\n")
