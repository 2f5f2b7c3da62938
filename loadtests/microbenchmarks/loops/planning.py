"""Measures planning a new segment of 600 ops, and how planning slows down another session.

There are two clients. The first sends loops that the server has never seen, each with a body of 600 ops. The other one,
the neighbour, runs a known loop and fetches the result of every step. Its steps while a new loop is sent, planned and
taken into use are compared to its steps while the first client is idle. One figure is a percentile of all steps. The
other is computed by the module `measuring/waits`, which weights each step with its length, so that a single standstill
shows.

The time of a new loop includes recording it and fetching its result. From 0.6 s on, the server is asked four times a
second whether the plan is in use. A note tells the neighbour's steps while the same loop is sent again, which needs no
planning. The loop's result is compared to NumPy's after the new loop and before it is sent again. Neither time includes
this comparison, because it takes a core from the neighbour.

If the machine stands still several times while a loop is recorded, the loop may be cut into fragments only, which have
no plans. Such a loop is left out, with the idle time before it, and another loop takes its place.
"""

from __future__ import annotations

import random
import secrets
import time
from collections.abc import Container, Sequence
from multiprocessing import get_context
from typing import NamedTuple

import fusewire as fw
from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.timing import percentile, summarise
from loadtests.measuring.waits import Span, steps_within, waits_us
from loadtests.measuring.workers import Worker
from loadtests.microbenchmarks.loops import rnn_client
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.system.context import FUSEWIRE, Context, upload
from loadtests.system.service import Program, Service
from loadtests.workloads.loops import Floats, Loop, check_close, result_in_numpy
from loadtests.workloads.new_loops import POINTWISE, new_loop

_BODY_OPS = 600
_CELL_OPS = 6
_KINDS = 4  # kinds of cells in a body
_WIDTH = 32
_REPEATS = 5  # of a new body, so that the client finds the loop
_LOOPS = 20
_MOST_LEFT_OUT = 5
_WARMING_STEPS = 300
_REST_S = 0.6
_ASKED_EVERY_S = 0.25
_PLANNING_DEADLINE_S = 20.0
_PERCENT = 99


class _Planned(NamedTuple):
    """The program of a new loop, and the time from sending the loop until its plan was in use."""

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
            known = service.programs().keys()  # read before the idle time, as the request takes the server's time
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
    """Waits until all new programs of at least 600 ops run in their plans; returns the first one of them.

    Returns None if the loop was cut into fragments only. Raises TimeoutError, which tells the states of the programs.
    """
    new: list[Program] = []
    deadline_s = time.monotonic() + _PLANNING_DEADLINE_S
    time.sleep(_REST_S)  # planning mostly takes as long, and asking earlier would take the server's time
    while time.monotonic() < deadline_s:
        ended_ns = time.monotonic_ns()
        new = [one for digest, one in service.programs().items() if digest not in known]
        bodies = [program for program in new if _is_body(program)]
        if new and not bodies:  # the loop's result is here, so no more programs of it will come
            return None
        if bodies and all(program.tier > 0 for program in bodies):
            return _Planned(bodies[0], Span(began_ns, ended_ns))
        time.sleep(_ASKED_EVERY_S)
    came = ", ".join(f"{program.ops} ops{' (fragment)' * program.is_fragment} {program.state}" for program in new)
    raise TimeoutError(f"a new loop was not planned within {_PLANNING_DEADLINE_S} s; what came: {came or 'nothing'}")


def _is_body(program: Program) -> bool:
    """Returns whether the program will get a plan at once. A fragment runs op by op until it has been used often."""
    return program.ops >= _BODY_OPS and not program.is_fragment


def _repeat_loop(session: fw.Session, seed: int) -> Span:
    """Sends again a loop that has its plan. Waits until 0.6 s have passed, the time that a new loop mostly takes."""
    began_ns = time.monotonic_ns()
    _send_loop(session, seed)
    time.sleep(max(_REST_S - (time.monotonic_ns() - began_ns) / 1e9, 0))
    return Span(began_ns, time.monotonic_ns())


def _send_loop(session: fw.Session, seed: int) -> Floats:
    """Runs the loop of this seed; returns its result."""
    loop = _draw_loop(seed)
    result: Floats = loop.run(upload(session, loop.operands), range(_REPEATS), FUSEWIRE).numpy()
    return result


def _check_loop(actual: Floats, seed: int) -> None:
    check_close(actual, result_in_numpy(_draw_loop(seed), _REPEATS), "a new loop")


def _draw_loop(seed: int) -> Loop:
    """Returns a loop with a body of 100 cells of four kinds. Each cell is a matrix product and five pointwise ops."""
    draw = random.Random(seed)  # noqa: S311 - a load test's own choice
    kinds = [(*draw.choices(range(POINTWISE), k=_CELL_OPS - 2), POINTWISE - 1) for _ in range(_KINDS)]
    return new_loop(draw.choices(kinds, k=_BODY_OPS // _CELL_OPS), _WIDTH, seed)


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


PLANNING = Microbenchmark(("planning", "planning_neighbour", "planning_neighbour_waits"), _measure)
