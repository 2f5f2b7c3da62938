"""Measures the first call of a loop that the server has never seen, and the time until its steady speed.

Each loop has a body of 5 to 10 ops: a matrix product and pointwise ops. The servers' caches of kernels are empty at the
start. The first call of a loop begins when the server has the loop's operands and has planned all earlier loops.
`cold_5` is the time of the first call of a loop of 5 steps, until the client has the result. `cold_1000` is that time
for a loop of 1,000 steps. A loop of 1,000 steps is then called again and again, and `cold_steady` is the total time of
its calls before the steady speed is reached.

The peer, NumPy or torch, runs the same loops in a process of its own, in the same order, while the server is idle.
"""

from __future__ import annotations

import random
import secrets
from collections.abc import Mapping, Sequence
from itertools import islice
from time import perf_counter
from typing import NamedTuple

import fusewire as fw
from loadtests.measuring.errors import NotWarm
from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.steady import Steady, established
from loadtests.measuring.timing import summarise
from loadtests.measuring.workers import Worker
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.peers.libraries import Library
from loadtests.system.context import Context
from loadtests.system.remote_loop import RemoteLoop
from loadtests.system.service import Service
from loadtests.workloads.loops import Floats, Loop, check_close, result_in_numpy
from loadtests.workloads.new_loops import POINTWISE, Cell, new_loop

_SERVERS = 2
_SHORT_LOOPS = 5  # on each server
_LONG_LOOPS = 3
_SHORT_STEPS = 5
_LONG_STEPS = 1000
_WIDTH = 256
_LEAST_OPS = 5
_MOST_OPS = 10
_LOOKED_EVERY_S = 0.5
_STEADY_DEADLINE_S = 40.0


class _First(NamedTuple):
    """The time of a loop's first call, on Fusewire and on its peer."""

    ours_ms: float
    theirs_ms: float


class _Seen(NamedTuple):
    """The measurements of the loops of all servers, in order."""

    short: list[_First]
    long: list[_First]
    steady: list[Steady]


def _measure(context: Context) -> tuple[Figure, ...]:
    loops = _draw_loops(_SERVERS * (_SHORT_LOOPS + _LONG_LOOPS), secrets.randbits(32))  # other loops in every run
    names = iter(loops)
    seen = _Seen([], [], [])
    with context.library.running(loops) as peer:
        for _ in range(_SERVERS):
            with context.session() as (service, session):
                starter = _Starter(service, session, peer, loops)
                seen.short.extend(starter.first(name) for name in islice(names, _SHORT_LOOPS))
                for name in islice(names, _LONG_LOOPS):
                    first, steady = starter.first_and_steady(name)
                    seen.long.append(first)
                    seen.steady.append(steady)
    return _figures(context.library, seen)


def _draw_loops(loops: int, seed: int) -> dict[str, Loop]:
    """Returns loops by name. No two loops have the same body."""
    draw = random.Random(seed)  # noqa: S311 - a load test's own choice
    cells: dict[Cell, None] = {}
    while len(cells) < loops:
        pointwise_ops = draw.randint(_LEAST_OPS, _MOST_OPS) - 1
        cell = (*draw.choices(range(POINTWISE), k=pointwise_ops - 1), POINTWISE - 1)
        cells[cell] = None
    return {f"loop {number}": new_loop([cell], _WIDTH, seed + number) for number, cell in enumerate(cells)}


class _Starter:
    """Starts loops on a server, and then, while the server is idle, on the peer."""

    def __init__(self, service: Service, session: fw.Session, peer: Worker, loops: Mapping[str, Loop]) -> None:
        self._service = service
        self._session = session
        self._peer = peer
        self._loops = loops

    def first(self, name: str) -> _First:
        """Measures the first call of a short loop."""
        return self._compared(name, _SHORT_STEPS, _Called(self._session, self._loops[name], _SHORT_STEPS).call())

    def first_and_steady(self, name: str) -> tuple[_First, Steady]:
        """Measures the first call of a long loop, and then the time until its steady speed."""
        called = _Called(self._session, self._loops[name], _LONG_STEPS)
        calls_s = [called.call()]
        steady = _call_until_steady(self._service, called, calls_s)
        return self._compared(name, _LONG_STEPS, calls_s[0]), steady

    def _compared(self, name: str, steps: int, first_s: float) -> _First:
        self._service.wait_until_planned()
        theirs_ms = self._peer.ask("run_ns", name, steps) / 1e6
        expected = result_in_numpy(self._loops[name], steps)
        check_close(self._peer.ask("result", name, steps), expected, "a new loop of the peer")
        return _First(first_s * 1e3, theirs_ms)


class _Called:
    """A loop on Fusewire. All of its calls start from the same operands and so have the same result."""

    def __init__(self, session: fw.Session, loop: Loop, steps: int) -> None:
        self._remote = RemoteLoop(session, loop)
        self._steps = steps
        self._expected: Floats = result_in_numpy(loop, steps)

    def call(self) -> float:
        """Calls the loop and checks its result; returns the time in s."""
        began_s = perf_counter()
        result = self._remote.result(self._steps)
        call_s = perf_counter() - began_s
        check_close(result, self._expected, "a new loop")
        return call_s


def _call_until_steady(service: Service, called: _Called, calls_s: list[float]) -> Steady:
    """Calls the loop until it is steady, and appends the times to `calls_s`. Raises NotWarm if the deadline passes.

    No speed counts as steady while the server is still planning.
    """
    while sum(calls_s) < _STEADY_DEADLINE_S:
        looks_at_s = sum(calls_s) + _LOOKED_EVERY_S
        while sum(calls_s) < looks_at_s:
            calls_s.append(called.call())
        steady = established(calls_s)
        if steady is not None and not service.is_planning():
            return steady
    raise NotWarm(f"after {_STEADY_DEADLINE_S:.0f} s of calls of a new loop no steady speed had lasted")


def _figures(library: Library, seen: _Seen) -> tuple[Figure, ...]:
    return (
        _first_figure("cold_5", f"a never-seen loop of {_SHORT_STEPS} steps", library, seen.short),
        _first_figure("cold_1000", f"a never-seen loop of {_LONG_STEPS:,} steps", library, seen.long),
        _steady_figure(seen.steady),
    )


def _first_figure(name: str, what: str, library: Library, firsts: Sequence[_First]) -> Figure:
    ours_ms, theirs_ms = (list(times) for times in zip(*firsts, strict=True))
    ours, theirs = summarise(ours_ms), summarise(theirs_ms)
    return Figure(
        name=name,
        what=f"{what}, its first call",
        value=ours.median,
        unit="ms",
        peer=Peer(library.name, theirs.median, ours.median / theirs.median),
        spread=ours.spread,
        notes=(f"worst of {len(firsts)} loops {max(ours_ms):,.1f} ms, of {library.name} {max(theirs_ms):,.1f} ms",),
        raw={"fusewire": ours_ms, "peer": theirs_ms},
    )


def _steady_figure(steady: Sequence[Steady]) -> Figure:
    after_s = [each.after_s for each in steady]
    steps = [each.calls * _LONG_STEPS for each in steady]
    step_us = [each.call_s / _LONG_STEPS * 1e6 for each in steady]
    summary = summarise(after_s)
    return Figure(
        name="cold_steady",
        what="a never-seen loop, until its steady speed",
        value=summary.median,
        unit="s",
        spread=summary.spread,
        notes=(
            f"after {summarise(steps).median:,.0f} steps",
            f"worst of {len(steady)} loops {max(after_s):.1f} s, and {max(steps):,} steps",
            f"{summarise(step_us).median:.1f} µs a step at the steady speed",
        ),
        raw={"seconds": after_s, "steps": steps, "step_us": step_us},
    )


COLD_START = Microbenchmark(("cold_5", "cold_1000", "cold_steady"), _measure)
