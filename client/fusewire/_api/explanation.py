"""An explanation of work: ops, the groups and launches that compute them, the lines that recorded them, and hints."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, pairwise

from fusewire_protos.programs.explained import ExplainedProgram
from fusewire_protos.programs.record_text import record_lines
from fusewire_protos.programs.records import ops_of_groups

_MOST_OPS_SHOWN = 100  # of a program, in its text
_SHOWN_DIGITS = 12  # of a digest


@dataclass(frozen=True)
class ExplainedOp:
    """An op of a program, or one that is unsent.

    `form` is "kernels" if groups compute it, "view", "assembly", "constant" or "dead" if there is nothing to compute,
    "op_by_op" if its program has no plan, and "unsent". `groups` and `launches` are those that compute it. `line` is
    the line of your code that recorded it, such as "loop.py:12"; empty if it is not known.
    """

    name: str
    form: str
    groups: tuple[int, ...] = ()
    launches: tuple[int, ...] = ()
    line: str = ""


@dataclass(frozen=True)
class Unfused:
    """Two ops of a program, by index, of which `consumer` reads from memory what `producer` computes, and why."""

    consumer: int
    producer: int
    reason: str


@dataclass(frozen=True)
class ProgramExplanation:
    """How a program runs.

    `form` says how it has run: by "launches", "graphs" of these, a "persistent" kernel, or op by op ("ops"); `state` is
    that of its plan. `groups` are the ops that each group computes, `launches` the groups of each launch, and `kernels`
    the names of the launches' kernels. `unfused` has each pair of ops that are not computed together, with one reason.
    `made` is the index of the op that made the array that was asked for, and None if none was. `row_s` is the estimated
    device time of a row; None if it is not known. Of a program of more than 1,024 ops, the first are told.
    """

    explained: ExplainedProgram
    ops: tuple[ExplainedOp, ...]
    groups: tuple[tuple[int, ...], ...]
    launches: tuple[tuple[int, ...], ...]
    unfused: tuple[Unfused, ...]
    made: int | None = None

    @property
    def digest(self) -> str:
        return self.explained.digest

    @property
    def op_count(self) -> int:
        return self.explained.op_count

    @property
    def state(self) -> str:
        return self.explained.state

    @property
    def form(self) -> str:
        return self.explained.form

    @property
    def refusal(self) -> str:
        return self.explained.refusal

    @property
    def kernels(self) -> tuple[str, ...]:
        return tuple([each.kernel for each in self.explained.launches])

    @property
    def row_s(self) -> float | None:
        return self.explained.row_ns / 1e9 if self.explained.row_ns else None

    def __str__(self) -> str:
        return "\n".join(self._lines())

    def _lines(self) -> Iterator[str]:
        explained = self.explained
        kind = "fragment" if explained.is_fragment else "program"
        yield f"{kind} {explained.digest[:_SHOWN_DIGITS]}: {explained.op_count} ops, {self._how()}"
        if self.made is not None:
            yield f"  op #{self.made} made the array"
        reasons = {
            "no plan": explained.refusal,
            "no captured graph": explained.why_no_graph,
            "not by the persistent kernel": explained.why_not_persistent,
        }
        yield from [f"  {lacking}: {why}" for lacking, why in reasons.items() if why]
        yield from self._op_lines()
        if explained.launches:
            instances = [each.instances for each in explained.launches]
            for line in record_lines(explained.names, instances, explained.records, dict(explained.reasons)):
                yield f"  {line}"

    def _op_lines(self) -> Iterator[str]:
        for index, op in enumerate(self.ops[:_MOST_OPS_SHOWN]):
            where = f"launch {', '.join(map(str, op.launches))}" if op.launches else op.form.replace("_", " ")
            yield f"  #{index:<4} {op.name:<20} {where:<16} {op.line}".rstrip()
        if self.op_count > _MOST_OPS_SHOWN:
            yield f"  … and {self.op_count - _MOST_OPS_SHOWN} ops more"

    def _how(self) -> str:
        explained = self.explained
        how = f"plan {explained.state}, runs op by op" if explained.form == "ops" else f"runs by {explained.form}"
        row = f", about {explained.row_ns / 1e3:.1f} µs a row" if explained.row_ns else ""
        return how + row


def program_explanation(explained: ExplainedProgram, lines: Sequence[str], made: int | None) -> ProgramExplanation:
    """Returns the explanation of a program, whose ops were recorded at these lines."""
    ends = [*accumulate([launch.instances for launch in explained.launches], initial=0)]
    launch_of = [launch for launch, (first, end) in enumerate(pairwise(ends)) for _ in range(first, end)]
    ops = []
    for name, record, line in zip(explained.names, explained.records.ops, lines, strict=True):
        launches = dict.fromkeys([launch_of[group] for group in record.groups if group < len(launch_of)])
        ops.append(ExplainedOp(name, str(record.form), record.groups, tuple(launches), line))
    sentences = dict(explained.reasons)
    return ProgramExplanation(
        explained,
        tuple(ops),
        tuple([tuple(of_group) for of_group in ops_of_groups(explained.records.ops, ends[-1])]),
        tuple([tuple(range(first, end)) for first, end in pairwise(ends)]),
        tuple([Unfused(each.consumer, each.producer, sentences[each.reason]) for each in explained.records.unfused]),
        made,
    )


@dataclass(frozen=True)
class Explanation:
    """What `explain` returns; its text is for people.

    `unsent_ops` counts the ops that are not sent yet, and `unsent` are the last of them, at most 100. `notes` say what
    could not be explained, and `hints` what may make the work faster, each from what was measured.
    """

    programs: tuple[ProgramExplanation, ...] = ()
    unsent_ops: int = 0
    unsent: tuple[ExplainedOp, ...] = ()
    notes: tuple[str, ...] = ()
    hints: tuple[str, ...] = ()

    def __str__(self) -> str:
        return "\n".join(self._lines())

    __repr__ = __str__

    def _lines(self) -> Iterator[str]:
        yield from map(str, self.programs)
        if self.unsent_ops:
            yield f"unsent: {self.unsent_ops} ops, which the server does not know yet"
            left_out = self.unsent_ops - len(self.unsent)
            if left_out:
                yield f"  … {left_out} ops"
            for op in self.unsent:
                yield f"  {op.name:<20} {op.line}".rstrip()
        yield from self.notes
        yield from [f"hint: {hint}" for hint in self.hints]
