"""Measures the mean time that recording an op takes in the user's thread, including cutting and sealing segments.

Most ops are only recorded. One in several hundred ends a segment, which the user's thread then cuts and seals. The mean
over all ops includes both.

The device starts no work, so that the server does not use the processor. The client's own I/O thread works. A turn
records less than the credit allows, so the user's thread never waits. The peer is `bare_recording`, the least work with
which Python can record an op. It runs in a process of its own, in turns with Fusewire, because a shared processor may
run at half its speed at times.
"""

from __future__ import annotations

from time import perf_counter_ns, thread_time_ns
from typing import NamedTuple

import numpy as np

import fusewire as fw
from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.timing import summarise, take_turns
from loadtests.measuring.workers import Worker
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.peers import bare_recording
from loadtests.system.context import Context
from loadtests.system.service import Service
from loadtests.workloads.loops import Floats, check_close

_OPS = 10_000  # in a turn; they make many segments, and are fewer than the credit of 16,384 ops
_TURNS = 20
_INCREMENT = np.float32(1e-4)


class _Recorded(NamedTuple):
    """The outcome of one turn: the elapsed time and the processor time of an op, both in µs, and the last result."""

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
    """Returns the elapsed time of an op in µs. Appends the processor time of an op to `processor_us`."""
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
    x, increment = session.array(_draw()), session.array(_INCREMENT)
    began_ns, began_processor_ns = perf_counter_ns(), thread_time_ns()
    for _ in range(_OPS):
        x = x + increment
    processor_ns, elapsed_ns = thread_time_ns() - began_processor_ns, perf_counter_ns() - began_ns
    return _Recorded(elapsed_ns / 1e3 / _OPS, processor_ns / 1e3 / _OPS, x)


def _draw() -> Floats:
    return np.random.default_rng(0).random(16, np.float32)


def _check(session: fw.Session) -> None:
    actual = _record(session).last
    expected = _draw()
    for _ in range(_OPS):
        expected += _INCREMENT
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


RECORDING = Microbenchmark(("record_op",), _measure)
