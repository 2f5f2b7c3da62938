"""What recording an op costs the user's thread: dtype rule, handle and finaliser; and with its part of a segment.

Most ops are recorded and no more; one in a thousand ends a segment, which is cut and sealed in the user's thread too.
The median op is the first figure, the mean of all ops the second.

The device is held, so that the server leaves the processor to the client; the client's own I/O thread works on. The
thread never waits for credit: a turn records less than there is. The least that recording can be in Python is measured
in turn with it, for the same processor may run at half its speed when others share it.
"""

from __future__ import annotations

from itertools import pairwise
from statistics import median
from time import perf_counter_ns, thread_time_ns
from typing import NamedTuple

import numpy as np

import fusewire as fw
from loadtests.context import Context
from loadtests.figure import Figure, Peer, Scenario
from loadtests.peers.bare_recording import record_bare
from loadtests.programs import Floats, check_close
from loadtests.service import Service
from loadtests.turns import summarise

_OPS = 10_000  # a turn: many segments, and less than the credit of 16,384
_BLOCK_OPS = 100  # for one op is as short as looking at the clock
_TURNS = 20
_STEP = np.float32(1e-4)


class _Recorded(NamedTuple):
    """One turn: µs an op in its median block, by the clock, and of the thread's processor time; and the last result."""

    median_us: float
    elapsed_us: float
    processor_us: float
    last: fw.Array


_Turn = tuple[_Recorded, float]  # and of the bare peer's, µs an op


def _measure(context: Context) -> tuple[Figure, ...]:
    with context.session() as (service, session):
        _check(session)
        service.warm_up(lambda: _record_and_wait(session))
        turns = [(_record_held(service, session), record_bare(_OPS)) for _ in range(_TURNS)]
        running = [_record_and_wait(session) for _ in range(_TURNS)]
    return (
        _figure("record_op", "recording one pointwise op", turns, [held.median_us for held, _ in turns]),
        _figure(
            "record_op_sealed",
            "recording one pointwise op, cutting and sealing included",
            turns,
            [held.elapsed_us for held, _ in turns],
            f"{summarise([held.processor_us for held, _ in turns]).median:.2f} µs of the thread's processor time",
            f"with the device at work: {summarise([turn.elapsed_us for turn in running]).median:.2f} µs",
        ),
    )


def _figure(name: str, what: str, turns: list[_Turn], measured_us: list[float], *notes: str) -> Figure:
    bare_us = [bare for _, bare in turns]
    summary, bare = summarise(measured_us), summarise(bare_us).median
    return Figure(
        name=name,
        what=what,
        value=summary.median,
        unit="µs",
        peer=Peer("bare Python", bare, summary.median / bare),
        spread=summary.spread,
        notes=notes,
        raw={"fusewire": measured_us, "bare": bare_us},
    )


def _record_held(service: Service, session: fw.Session) -> _Recorded:
    with service.held():
        recorded = _record(session)
    recorded.last.numpy()
    return recorded


def _record_and_wait(session: fw.Session) -> _Recorded:
    recorded = _record(session)
    recorded.last.numpy()
    return recorded


def _record(session: fw.Session) -> _Recorded:
    x, step = session.array(_draw()), session.array(_STEP)
    times_ns = [perf_counter_ns()]
    began_processor_ns = thread_time_ns()
    for _ in range(_OPS // _BLOCK_OPS):
        for _ in range(_BLOCK_OPS):
            x = x + step
        times_ns.append(perf_counter_ns())
    processor_ns, elapsed_ns = thread_time_ns() - began_processor_ns, times_ns[-1] - times_ns[0]
    median_ns = median(end - start for start, end in pairwise(times_ns))
    return _Recorded(median_ns / 1e3 / _BLOCK_OPS, elapsed_ns / 1e3 / _OPS, processor_ns / 1e3 / _OPS, x)


def _draw() -> Floats:
    return np.random.default_rng(0).random(16, np.float32)


def _check(session: fw.Session) -> None:
    actual = _record(session).last
    expected = _draw()
    for _ in range(_OPS):
        expected += _STEP
    check_close(actual.numpy(), expected, "a chain of additions")


RECORDING = Scenario(("record_op", "record_op_sealed"), _measure)
