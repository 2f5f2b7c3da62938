"""What planning a new segment of 600 ops costs in the planner's process, and what another session feels of it.

Two clients: one sends loops that the server has never seen, each with a body of 600 ops; the other runs a known
loop and fetches the result of every step. Its steps from when a new loop begins to be sent until its plan is in use
are compared to those before, when the first client rests: all steps alike, and as `waits` says, weighed by how long
they last and for each new loop apart, which sees a standstill that is one step among hundreds. To record the new loop
and to fetch its result are part of that time, and where it takes more than 0.6 s so is asking the server four times a
second whether the plan is there. What the first client takes by itself is told in a note: its loop is sent again, which
needs no planning any more. That the new loop's result is NumPy's is checked before that: such work is the bench's own,
and would take a core from the neighbour.

A loop that is recorded while the machine stands still several times may be cut into fragments alone, which have no
plans. Such a loop is left out, with the rest before it, and another takes its place.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Container, Sequence
from multiprocessing import get_context
from typing import Any, NamedTuple

import numpy as np

import fusewire as fw
from loadtests.context import FUSEWIRE, Context, upload
from loadtests.figure import Figure, Peer, Scenario
from loadtests.figures import rnn_client
from loadtests.programs import NUMPY, Floats, Function, Functions, check_close
from loadtests.service import Program, Service
from loadtests.turns import percentile, summarise
from loadtests.waits import Span, steps_within, waits_us
from loadtests.workers import Worker

_BODY_OPS = 600
_CELL_OPS = 6
_KINDS = 4  # of cells in a body
_ACTS = 6  # pointwise ops to choose from; the last keeps values small
_WIDTH = 32
_REPEATS = 5  # of a new body: a loop is known by its repetition
_LOOPS = 20
_MOST_LEFT_OUT = 5
_WARMING_STEPS = 300
_REST_S = 0.6
_ASKED_EVERY_S = 0.25
_PLANNING_DEADLINE_S = 20.0
_PERCENT = 99


class _Operands(NamedTuple):
    """Of a new loop, of NumPy or of Fusewire."""

    x: Any  # (1, width) float32
    weights: Any  # (width, width) float32
    b: Any  # (width,) float32
    z: Any  # (width,) float32


class _Cells(NamedTuple):
    """A new loop's body: the pointwise ops of each kind of cell, and which kind each cell is of."""

    kinds: tuple[tuple[int, ...], ...]
    cells: tuple[int, ...]


class _Planned(NamedTuple):
    """A new loop: what became its program, and from when it was sent until its plan was in use."""

    program: Program
    span: Span


def _measure(context: Context) -> tuple[Figure, ...]:
    stop = get_context("spawn").Event()
    with context.session() as (service, session), Worker(rnn_client.serve, service.target, 1, 64, 1, stop) as other:
        first_seed = secrets.randbits(32)  # other loops in every run
        _check_loop(_send_loop(session, first_seed), first_seed)
        service.warm_up(lambda: other.ask("run", _WARMING_STEPS))
        other.tell("step_until_stopped")
        rests, planned, repeated, left_out = [], [], [], 0
        seeds = range(first_seed + 1, first_seed + 1 + _LOOPS + _MOST_LEFT_OUT)
        for seed in seeds:
            known = service.programs().keys()  # asked before the rest: it keeps the server from others
            rest, new = _rest(), _plan_new_loop(service, session, seed, known)
            if new is None:
                left_out += 1
                continue
            rests.append(rest)
            planned.append(new)
            repeated.append(_repeat_loop(session, seed))
            if len(planned) == _LOOPS:
                break
        else:
            raise TimeoutError(f"{left_out} of {len(seeds)} new loops were cut into fragments alone")
        stop.set()
        steps = [Span(*step) for step in other.answer()]
    planning = [each.span for each in planned]
    return (
        _planning_figure(planned, left_out),
        _steps_figure(steps, rests, planning),
        _waits_figure(steps, rests, planning, repeated),
    )


def _rest() -> Span:
    began_ns = time.monotonic_ns()
    time.sleep(_REST_S)
    return Span(began_ns, time.monotonic_ns())


def _plan_new_loop(service: Service, session: fw.Session, seed: int, known: Container[str]) -> _Planned | None:
    began_ns = time.monotonic_ns()
    actual = _send_loop(session, seed)
    planned = _wait_for_plan(service, known, began_ns)
    _check_loop(actual, seed)
    return planned


def _wait_for_plan(service: Service, known: Container[str], began_ns: int) -> _Planned | None:
    """The program of a new loop, once it and all of its length that came with it run in their plans.

    None if there is none. Raises TimeoutError, which says what has become of the programs that came.
    """
    new: list[Program] = []
    deadline_s = time.monotonic() + _PLANNING_DEADLINE_S
    time.sleep(_REST_S)  # as long as it mostly takes: asking costs the server time that no planning costs
    while time.monotonic() < deadline_s:
        ended_ns = time.monotonic_ns()
        new = [one for digest, one in service.published_programs().items() if digest not in known]
        bodies = [program for program in new if _is_body(program)]
        if new and not bodies:  # nothing more of the loop will come: its result is here
            return None
        if bodies and all(program.tier > 0 for program in bodies):
            return _Planned(bodies[0], Span(began_ns, ended_ns))
        time.sleep(_ASKED_EVERY_S)
    came = ", ".join(f"{program.ops} ops{' (fragment)' * program.is_fragment} {program.state}" for program in new)
    raise TimeoutError(f"a new loop was not planned within {_PLANNING_DEADLINE_S} s; what came: {came or 'nothing'}")


def _is_body(program: Program) -> bool:
    """Whether it will have a plan: a fragment, which a pause may have cut, runs op by op until it has come often."""
    return program.ops >= _BODY_OPS and not program.is_fragment


def _repeat_loop(session: fw.Session, seed: int) -> Span:
    """Sends a loop that has its plan, and rests until the time is as long as others' mostly are."""
    began_ns = time.monotonic_ns()
    _send_loop(session, seed)
    time.sleep(max(_REST_S - (time.monotonic_ns() - began_ns) / 1e9, 0))
    return Span(began_ns, time.monotonic_ns())


def _send_loop(session: fw.Session, seed: int) -> Floats:
    """The result of a loop that no other seed gives."""
    result: Floats = _run_loop(upload(session, _draw_operands(seed)), FUSEWIRE, seed).numpy()
    return result


def _check_loop(actual: Floats, seed: int) -> None:
    check_close(actual, _run_loop(_draw_operands(seed), NUMPY, seed), "a new loop")


def _draw_operands(seed: int) -> _Operands:
    random_numbers = np.random.default_rng(seed)

    def draw(*shape: int) -> Floats:
        return random_numbers.uniform(-1, 1, shape).astype(np.float32)

    weights = draw(_WIDTH, _WIDTH) / np.float32(np.sqrt(_WIDTH))
    return _Operands(draw(1, _WIDTH), weights, draw(_WIDTH), draw(_WIDTH))


def _run_loop(operands: _Operands, functions: Functions, seed: int) -> Any:
    """A body of 100 cells, several times. Each cell is a product and five pointwise ops of one of a few kinds."""
    x, weights, b, z = operands
    kinds, cells = _draw_cells(seed)
    acts: tuple[Function, ...] = (
        lambda x: x + b,
        lambda x: x * z,
        lambda x: x - z,
        lambda x: -x,
        functions.sigmoid,
        functions.tanh,
    )
    for _ in range(_REPEATS):
        for cell in cells:
            x = x @ weights
            for act in kinds[cell]:
                x = acts[act](x)
    return x


def _draw_cells(seed: int) -> _Cells:
    draw = random.Random(seed)  # noqa: S311 - a load test's own choice
    kinds = tuple((*draw.choices(range(_ACTS), k=_CELL_OPS - 2), _ACTS - 1) for _ in range(_KINDS))
    return _Cells(kinds, tuple(draw.choices(range(_KINDS), k=_BODY_OPS // _CELL_OPS)))


def _planning_figure(planned: Sequence[_Planned], left_out: int) -> Figure:
    costs_us = [each.program.planning_ns / 1e3 / each.program.ops for each in planned]
    compiling_ms = [each.program.compiling_ns / 1e6 for each in planned]
    summary = summarise(costs_us)
    return Figure(
        name="planning",
        what="planning a new 600-op segment, an op",
        value=summary.median,
        unit="µs",
        spread=summary.spread,
        notes=(
            f"compiling its kernels: {summarise(compiling_ms).median:.0f} ms",
            *((f"{left_out} loops were cut into fragments alone, and left out",) if left_out else ()),
        ),
        raw={"planning_us": costs_us, "compiling_ms": compiling_ms},
    )


def _steps_figure(steps: Sequence[Span], rests: Sequence[Span], planning: Sequence[Span]) -> Figure:
    quiet_us, busy_us = (_step_times_us(steps, spans) for spans in (rests, planning))
    quiet, busy = (percentile(each, _PERCENT) for each in (quiet_us, busy_us))
    return Figure(
        name="planning_neighbour",
        what="p99 of another session's steps meanwhile",
        value=busy,
        unit="µs",
        peer=Peer("before", quiet, busy / quiet),
        notes=(
            f"longest {max(busy_us):,.0f} µs, before {max(quiet_us):,.0f} µs",
            f"median {summarise(busy_us).median:.0f} µs, before {summarise(quiet_us).median:.0f} µs",
            f"{len(busy_us)} steps in {_in_s(planning):.1f} s, before {len(quiet_us)} in {_in_s(rests):.1f} s",
        ),
        raw={"steps_before_us": quiet_us, "steps_meanwhile_us": busy_us},
    )


def _waits_figure(
    steps: Sequence[Span], rests: Sequence[Span], planning: Sequence[Span], repeated: Sequence[Span]
) -> Figure:
    waited_us = [waits_us(steps, spans, _PERCENT) for spans in (rests, planning, repeated)]
    quiet, busy, known = (summarise(each) for each in waited_us)
    return Figure(
        name="planning_neighbour_waits",
        what="p99 of the step under way at any moment meanwhile",
        value=busy.median,
        unit="µs",
        peer=Peer("before", quiet.median, busy.median / quiet.median),
        spread=busy.spread,
        notes=(f"{known.median:,.0f} µs while the same loops are sent again and run in their plans",),
        raw=dict(zip(("before_us", "meanwhile_us", "sent_again_us"), waited_us, strict=True)),
    )


def _step_times_us(steps: Sequence[Span], spans: Sequence[Span]) -> list[float]:
    return [step.length_ns / 1e3 for span in spans for step in steps_within(steps, span)]


def _in_s(spans: Sequence[Span]) -> float:
    return sum(span.length_ns for span in spans) / 1e9


PLANNING = Scenario(("planning", "planning_neighbour", "planning_neighbour_waits"), _measure)
