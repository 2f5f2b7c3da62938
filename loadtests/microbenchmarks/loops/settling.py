"""Measures how soon a program that is called again and again runs at its steady speed, on a fresh server.

The server has an empty cache of kernels, and its planner's processes have started.

The programs are scenarios. A call does 100 steps of a scenario, keeps their results and reads the last one. `settling`
counts the calls before the first call at the steady speed, and `settling_s` is the time that these calls take. Each is
the worst of all scenarios. The module `measuring/steady` says which speed is steady.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import islice
from time import perf_counter
from typing import Any, NamedTuple

from loadtests.measuring.errors import NotWarm
from loadtests.measuring.figure import Figure
from loadtests.measuring.steady import Steady, established, steady_from
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.scenarios import library
from loadtests.scenarios.catalogue import find_scenarios
from loadtests.scenarios.scenario import Data, Steps
from loadtests.system.context import Context
from loadtests.workloads.loops import check_close

_STEPS = {"rnn": 1, "mlp": 100, "split": 100, "blocks": 100}  # in a call; a step of `rnn` has 100 iterations
_DEADLINE_S = 15.0
_TOLERANCE = 2e-3


class Settled(NamedTuple):
    """The steady speed of a scenario, and the times of all calls."""

    scenario: str
    steady: Steady
    calls_s: list[float]


def _measure(context: Context) -> tuple[Figure, ...]:
    settled = [_settle(context, scenario, steps) for scenario, steps in _STEPS.items()]
    return figures(settled)


def _settle(context: Context, name: str, steps: int) -> Settled:
    program = find_scenarios()[name].program
    with context.started_session() as (service, session):
        xp = library.fusewire(session)
        running = program(xp, Data(0, 0))
        first, first_s = _call(running, steps)
        expected = next(program(library.numpy(), Data(0, 0)))
        check_close(first.numpy(), expected, f"the first step of {name}", _TOLERANCE)
        calls_s = [first_s]
        steady = call_until_steady(lambda: _call(running, steps)[1], calls_s, service.is_planning)
    return Settled(name, steady, calls_s)


def _call(running: Steps, steps: int) -> tuple[Any, float]:
    """Returns the result of the call's first step, and the time of the call in s."""
    began_s = perf_counter()
    results = list(islice(running, steps))
    results[-1].numpy()
    return results[0], perf_counter() - began_s


def call_until_steady(call: Callable[[], float], calls_s: list[float], is_planning: Callable[[], bool]) -> Steady:
    """Calls until the steady speed has lasted and the server plans nothing, or until the deadline.

    Appends the times of the calls to `calls_s`; `call` returns its time in s. Raises NotWarm if no call was steady.
    """
    while sum(calls_s) < _DEADLINE_S:
        calls_s.append(call())
        if established(calls_s) is not None and not is_planning():
            break
    steady = steady_from(calls_s)
    if steady is None:
        raise NotWarm(f"no steady speed in {_DEADLINE_S:.0f} s of calls")
    return steady


def figures(settled: list[Settled]) -> tuple[Figure, ...]:
    """Returns the figures: the most calls, and the longest time, of all scenarios."""
    raw = {each.scenario: each.calls_s for each in settled}
    calls, times_s = ([getattr(each.steady, field) for each in settled] for field in ("calls", "after_s"))
    notes = tuple(
        f"{name}: {steady.calls} calls in {steady.after_s:.2f} s, then {steady.call_s * 1e3:.1f} ms a call"
        for name, steady, _ in settled
    )
    return (
        Figure("settling", "calls until the steady speed, worst scenario", max(calls), "calls", notes=notes, raw=raw),
        Figure("settling_s", "the time of these calls, worst scenario", max(times_s), "s"),
    )


SETTLING = Microbenchmark(("settling", "settling_s"), _measure)
