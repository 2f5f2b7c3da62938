"""Measures loops that the server has never seen: the first call, the calls after it, and when the plan is in use.

Each loop has a body of its own, drawn at random: a matrix product and pointwise ops.

- Short loops run five iterations, recorded inline, on a server that has run each of these ops before, alone.
  `never_seen_5` is the time of a loop's first call, until the client has the result. `plan_in_use` is the time from the
  begin of the first call until the server runs the loop by its plan. The loop is called again at once, and again when
  its plan is in use; `never_seen_later` is the worst later call ÷ the first call of its loop.
- Long loops run 10,000 iterations of a body of six ops as `fori_loop`, each on a fresh server with an empty cache of
  kernels, whose planner's processes have started. `never_seen_10000` is the time of the first call.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from time import perf_counter
from typing import NamedTuple

import fusewire as fw
from loadtests.measuring.figure import Figure
from loadtests.measuring.timing import summarise
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.system.context import FUSEWIRE, Context, upload
from loadtests.system.remote_loop import as_fori_loop
from loadtests.system.service import Service
from loadtests.workloads.loops import Floats, Loop, check_close, result_in_numpy
from loadtests.workloads.new_loops import POINTWISE, Cell, new_loop

_WIDTH = 256
_SHORT_LOOPS = 10
_SHORT_STEPS = 5
_SHORT_OPS = range(5, 11)
_AGAIN = 2  # calls at once after the first, and as many by the plan
_LONG_LOOPS = 3
_LONG_STEPS = 10_000
_LONG_OPS = 6


class Called(NamedTuple):
    """A short loop: the times of its calls in order, and the time until its plan was in use, None if it has none."""

    calls_ms: Sequence[float]
    plan_in_use_s: float | None

    @property
    def worst_later(self) -> float:
        """The longest later call ÷ the first call."""
        return max(self.calls_ms[1:]) / self.calls_ms[0]


def _measure(context: Context) -> Iterator[Figure]:
    seed = secrets.randbits(32)  # other loops in every run
    draw = random.Random(seed)  # noqa: S311 - a load test's own choice
    with context.session() as (service, session):
        _warm_ops(service, session, seed)
        short = [new_loop([cell], _WIDTH, seed) for cell in draw_cells(draw, _SHORT_LOOPS, _SHORT_OPS)]
        called = [_call_short(service, session, loop) for loop in short]
    yield _first_figure(called)
    yield _later_figure(called)
    yield _plan_figure(called)
    long = [new_loop([cell], _WIDTH, seed) for cell in draw_cells(draw, _LONG_LOOPS, range(_LONG_OPS, _LONG_OPS + 1))]
    yield _long_figure([_call_long(context, loop) for loop in long])


def draw_cells(draw: random.Random, loops: int, ops: range) -> list[Cell]:
    """Returns the bodies of so many loops, all different: a matrix product, and pointwise ops that end with a tanh.

    `ops` holds the possible numbers of ops of a body.
    """
    cells: dict[Cell, None] = {}
    while len(cells) < loops:
        cells[(*draw.choices(range(POINTWISE), k=draw.choice(ops) - 2), POINTWISE - 1)] = None
    return list(cells)


def _warm_ops(service: Service, session: fw.Session, seed: int) -> None:
    """Runs every op alone that a body may have, so that the server has its kernel."""
    for number in range(POINTWISE):
        loop = new_loop([(number,)], _WIDTH, seed)
        operands = upload(session, loop.operands)
        (operands.x @ operands.weights).numpy()
        loop.run(operands, range(1), FUSEWIRE).numpy()
    service.wait_until_planned()


def _call_short(service: Service, session: fw.Session, loop: Loop) -> Called:
    operands = _uploaded(session, loop)
    expected = result_in_numpy(loop, _SHORT_STEPS)
    known = service.programs().keys()

    def call_ms() -> float:
        return _timed_s(lambda: loop.run(operands, range(_SHORT_STEPS), FUSEWIRE), expected) * 1e3

    began_s = perf_counter()
    calls_ms = [call_ms() for _ in range(1 + _AGAIN)]
    has_plan = service.wait_for_plans_beside(known)
    plan_in_use_s = perf_counter() - began_s if has_plan else None
    calls_ms += [call_ms() for _ in range(_AGAIN)]
    return Called(calls_ms, plan_in_use_s)


def _call_long(context: Context, loop: Loop) -> float:
    """Returns the time of the first call in s."""
    with context.started_session() as (_, session):
        operands = _uploaded(session, loop)
        return _timed_s(lambda: as_fori_loop(loop, operands, _LONG_STEPS), result_in_numpy(loop, _LONG_STEPS))


def _uploaded(session: fw.Session, loop: Loop) -> tuple[fw.Array, ...]:
    """Returns the operands once the server has them."""
    operands: tuple[fw.Array, ...] = upload(session, loop.operands)
    for operand in operands:
        operand.numpy()
    return operands


def _timed_s(run: Callable[[], fw.Array], expected: Floats) -> float:
    """Returns the time of a call until the client has the result. Raises WrongResult if it is not as expected."""
    began_s = perf_counter()
    result: Floats = run().numpy()
    call_s = perf_counter() - began_s
    check_close(result, expected, "a new loop")
    return call_s


def _first_figure(called: Sequence[Called]) -> Figure:
    firsts_ms = [each.calls_ms[0] for each in called]
    return _timed_figure(
        "never_seen_5", f"a never-seen loop of {_SHORT_STEPS} iterations, its ops seen: first call", "ms", firsts_ms
    )


def _later_figure(called: Sequence[Called]) -> Figure:
    ratios = [each.worst_later for each in called]
    raw: Mapping[str, Sequence[float]] = {f"loop {number}": each.calls_ms for number, each in enumerate(called)}
    return Figure(
        name="never_seen_later",
        what="the same, its worst later call ÷ its first call",
        value=max(ratios),
        unit="",
        notes=(f"median of {len(ratios)} loops {summarise(ratios).median:.2f}",),
        raw=raw,
    )


def _plan_figure(called: Sequence[Called]) -> Figure:
    times_s = [each.plan_in_use_s for each in called if each.plan_in_use_s is not None]
    return _timed_figure("plan_in_use", "the same, from its first call until its plan is in use", "s", times_s)


def _long_figure(times_s: Sequence[float]) -> Figure:
    what = f"a never-seen loop of {_LONG_STEPS:,} iterations of {_LONG_OPS} ops, no kernel seen: first call"
    return _timed_figure("never_seen_10000", what, "s", times_s)


def _timed_figure(name: str, what: str, unit: str, times: Sequence[float]) -> Figure:
    summary = summarise(times)
    return Figure(
        name=name,
        what=what,
        value=summary.median,
        unit=unit,
        spread=summary.spread,
        notes=(f"worst of {len(times)} loops {max(times):.2f} {unit}",),
        raw={unit: times},
    )


NEVER_SEEN = Microbenchmark(("never_seen_5", "never_seen_later", "plan_in_use", "never_seen_10000"), _measure)
