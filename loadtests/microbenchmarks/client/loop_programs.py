"""Counts the programs that a loop becomes, recorded inline with any number of steps, in sessions of their own.

`loop_programs` is the number of programs that are no fragments, of all numbers of steps together. `loop_fragments` is
the number of bodies that were sent in fragments: all their ops ÷ the ops of a step, at the worst number of steps.

A loop is found once it covers 64 ops. A shorter one that is read at once is a single fragment, so it is not counted.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import fusewire as fw
from loadtests.measuring.figure import Figure
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.system.context import FUSEWIRE, Context, upload
from loadtests.system.service import Program, Service
from loadtests.workloads.loops import NUMPY, RNN_OPS, Rnn, check_close, draw_rnn, run_rnn

_STEPS = (11, 17, 100, 1000, 10_000)


class Sent(NamedTuple):
    """What a loop of so many steps was sent as: the digests of programs, and the ops in fragments."""

    steps: int
    programs: frozenset[str]
    fragment_ops: int


def _measure(context: Context) -> tuple[Figure, ...]:
    operands = draw_rnn(batch=1, hidden=64, seed=17)
    with context.service() as service:
        return figures([_run(service, operands, steps) for steps in _STEPS])


def _run(service: Service, operands: Rnn, steps: int) -> Sent:
    before = service.programs()
    with fw.connect(service.target, local=False) as session:
        result = run_rnn(upload(session, operands), range(steps), FUSEWIRE).numpy()
        programs = frozenset(session.stats.programs)
    check_close(result, run_rnn(operands, range(steps), NUMPY), f"the recurrent loop of {steps} steps")
    return Sent(steps, programs, fragment_ops(before, service.programs()))


def fragment_ops(before: Mapping[str, Program], after: Mapping[str, Program]) -> int:
    """Returns how many ops came in fragments between two readings of a server's programs."""
    fragments = [program for program in after.values() if program.is_fragment]
    hits = {digest: program.hits for digest, program in before.items()}
    return sum(program.ops * (program.hits - hits.get(program.digest, 0)) for program in fragments)


def figures(sent: Sequence[Sent]) -> tuple[Figure, ...]:
    """Returns the figures. `sent` holds what the same loop was sent as with several numbers of steps."""
    steps = f"{sent[0].steps:,} to {sent[-1].steps:,} steps"
    worst = max(sent, key=lambda each: each.fragment_ops)
    return (
        Figure(
            name="loop_programs",
            what=f"programs of an inline loop of {steps}",
            value=len(frozenset[str]().union(*[each.programs for each in sent])),
            unit="programs",
        ),
        Figure(
            name="loop_fragments",
            what="the same: bodies that came in fragments, at most",
            value=worst.fragment_ops / RNN_OPS,
            unit="bodies",
            notes=(f"of {worst.steps:,} steps",),
            raw={"fragment ops": [each.fragment_ops for each in sent], "steps": [each.steps for each in sent]},
        ),
    )


LOOP_PROGRAMS = Microbenchmark(("loop_programs", "loop_fragments"), _measure)
