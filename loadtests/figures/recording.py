"""What recording an op costs the user's thread, on average: with its part of cutting and sealing a segment.

Most ops are recorded and no more; one in several hundred ends a segment, which is cut and sealed in the user's thread.
The mean of all ops holds both.

The device is held, so that the server leaves the processor to the client; the client's own I/O thread works on. The
thread never waits for credit: a turn records less than there is. The least that recording can be in Python is measured
in turn with it, in a process of its own, for the same processor may run at half its speed when others share it.
"""

from __future__ import annotations

from time import perf_counter_ns, thread_time_ns
from typing import NamedTuple

import numpy as np

import fusewire as fw
from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.timing import summarise, take_turns
from loadtests.measuring.workers import Worker
from loadtests.peers import bare_recording
from loadtests.system.context import Context
from loadtests.system.scenario import Scenario
from loadtests.system.service import Service
from loadtests.workloads.loops import Floats, check_close

_OPS = 10_000  # a turn: many segments, and less than the credit of 16,384
_TURNS = 20
_STEP = np.float32(1e-4)


class _Recorded(NamedTuple):
    """One turn: µs an op by the clock, and of the thread's processor time; and the last result."""

    elapsed_us: float
    processor_us: float
    last: fw.Array


def _measure(context: Context) -> tuple[Figure, ...]:
    processor_us: list[float] = []
    with context.session() as (service, session), Worker(bare_recording.serve) as bare:
        _check(session)
        service.warm_up(lambda: _record_running(session))
        times_us = take_turns(
            _TURNS,
            {
                "fusewire": lambda: [_record_held(service, session, processor_us)],
                "bare": lambda: [bare.ask("record", _OPS)],
            },
        )
        running_us = [_record_running(session) for _ in range(_TURNS)]
    return (_figure(times_us, processor_us, running_us),)


def _record_held(service: Service, session: fw.Session, processor_us: list[float]) -> float:
    """µs an op; adds what it takes of the thread's processor time."""
    with service.held():
        recorded = _record(session)
    recorded.last.numpy()
    processor_us.append(recorded.processor_us)
    return recorded.elapsed_us


def _record_running(session: fw.Session) -> float:
    recorded = _record(session)
    recorded.last.numpy()
    return recorded.elapsed_us


def _record(session: fw.Session) -> _Recorded:
    x, step = session.array(_draw()), session.array(_STEP)
    began_ns, began_processor_ns = perf_counter_ns(), thread_time_ns()
    for _ in range(_OPS):
        x = x + step
    processor_ns, elapsed_ns = thread_time_ns() - began_processor_ns, perf_counter_ns() - began_ns
    return _Recorded(elapsed_ns / 1e3 / _OPS, processor_ns / 1e3 / _OPS, x)


def _draw() -> Floats:
    return np.random.default_rng(0).random(16, np.float32)


def _check(session: fw.Session) -> None:
    actual = _record(session).last
    expected = _draw()
    for _ in range(_OPS):
        expected += _STEP
    check_close(actual.numpy(), expected, "a chain of additions")


def _figure(times_us: dict[str, list[float]], processor_us: list[float], running_us: list[float]) -> Figure:
    ours, bare = summarise(times_us["fusewire"]), summarise(times_us["bare"])
    return Figure(
        name="record_op",
        what="recording one pointwise op, cutting and sealing included",
        value=ours.median,
        unit="µs",
        peer=Peer("bare Python", bare.median, ours.median / bare.median),
        spread=ours.spread,
        notes=(
            f"{summarise(processor_us).median:.2f} µs of the thread's processor time",
            f"with the device at work: {summarise(running_us).median:.2f} µs",
        ),
        raw={**times_us, "processor": processor_us, "running": running_us},
    )


RECORDING = Scenario(("record_op",), _measure)
