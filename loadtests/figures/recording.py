"""What recording an op costs the user's thread: dtype rule, handle, finaliser, and its part of cutting and sealing.

The device is held, so that the server leaves the processor to the client; the client's own I/O thread works on. The
thread never waits for credit: a turn records less than there is.
"""

from __future__ import annotations

from collections.abc import Sequence
from time import perf_counter_ns, thread_time_ns
from typing import NamedTuple

import numpy as np

import fusewire as fw
from loadtests.context import Context
from loadtests.figure import Figure, Scenario, at_most
from loadtests.programs import Floats, check_close
from loadtests.service import Service
from loadtests.turns import summarise

_OPS = 500  # timed at once
_PIECES = 6  # a turn
_TURNS = 20
_STEP = np.float32(1e-3)


class _Costs(NamedTuple):
    """Of pieces of a recorded chain, in µs an op: by the clock, and of the thread's own processor time."""

    elapsed_us: list[float]
    processor_us: list[float]


class _Recorded(NamedTuple):
    costs: _Costs
    last: fw.Array


def _measure(context: Context) -> tuple[Figure, ...]:
    with context.session() as (service, session):
        _check(session)
        service.warm_up(lambda: _record_and_wait(session))
        held = _joined([_record_held(service, session) for _ in range(_TURNS)])
        running = _joined([_record_and_wait(session) for _ in range(_TURNS)])
    summary = summarise(held.elapsed_us)
    running_us, processor_us = summarise(running.elapsed_us).median, summarise(held.processor_us).median
    return (
        Figure(
            name="record_op",
            what="recording one pointwise op",
            value=summary.median,
            unit="µs",
            limit=at_most(1.3),
            spread=summary.spread,
            notes=(f"{processor_us:.2f} µs of processor time; with the device at work {running_us:.2f} µs",),
            raw={"held": held.elapsed_us, "held_processor": held.processor_us, "running": running.elapsed_us},
        ),
    )


def _record_held(service: Service, session: fw.Session) -> _Costs:
    with service.held():
        recorded = _record(session)
    recorded.last.numpy()
    return recorded.costs


def _record_and_wait(session: fw.Session) -> _Costs:
    recorded = _record(session)
    recorded.last.numpy()
    return recorded.costs


def _record(session: fw.Session) -> _Recorded:
    x, step = session.array(_draw()), session.array(_STEP)
    costs = _Costs([], [])
    for _ in range(_PIECES):
        began_ns, began_processor_ns = perf_counter_ns(), thread_time_ns()
        for _ in range(_OPS):
            x = x + step
        costs.processor_us.append((thread_time_ns() - began_processor_ns) / 1e3 / _OPS)
        costs.elapsed_us.append((perf_counter_ns() - began_ns) / 1e3 / _OPS)
    return _Recorded(costs, x)


def _joined(turns: Sequence[_Costs]) -> _Costs:
    return _Costs([us for turn in turns for us in turn.elapsed_us], [us for turn in turns for us in turn.processor_us])


def _draw() -> Floats:
    return np.random.default_rng(0).random(16, np.float32)


def _check(session: fw.Session) -> None:
    actual = _record(session).last
    expected = _draw()
    for _ in range(_OPS * _PIECES):
        expected += _STEP
    check_close(actual.numpy(), expected, "a chain of additions")


RECORDING = Scenario(("record_op",), _measure)
