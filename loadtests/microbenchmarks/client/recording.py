"""Measures the mean time that recording an op takes in the user's thread, including cutting, sealing and deaths.

Most ops are only recorded. One in several thousand ends a segment, which the user's thread then cuts and seals. The
mean over all ops includes both; the figures named `alone` are the time of an op that is only recorded. The loop has six
ops, all of them operators or functions of one array. The figures named `stencil` are the mean over another loop, most
of whose ops are slices, concatenations and functions of several operands. `record_call` is the time of views,
reductions, creations and assignments that were recorded before and end no segment, beside that of `x + y`.

The device starts no work, so that the server does not use the processor. The client's own I/O thread works. A turn
records less than the credit allows, so the user's thread never waits. The peer is `bare_recording`, the least work with
which Python can record an op. It runs in a process of its own, in turns with Fusewire, because a shared processor may
run at half its speed at times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.timing import summarise, take_turns
from loadtests.measuring.workers import Worker
from loadtests.microbenchmarks.client import recording_client
from loadtests.microbenchmarks.client.recording_client import ADDITION, FIRST_STEPS, Recorded
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.peers import bare_recording
from loadtests.system.context import Context
from loadtests.system.service import Service

_BARE_OPS = 10_000
_TURNS = 20


def _measure(context: Context) -> tuple[Figure, ...]:
    recorded: list[Recorded] = []
    with (
        context.service() as service,
        Worker(recording_client.serve, service.target) as client,
        Worker(bare_recording.serve) as bare,
    ):
        client.ask("check")
        service.warm_up(lambda: _record_running(client).mean)
        times_us = take_turns(
            _TURNS,
            {
                "fusewire": lambda: [_record_held(service, client, recorded)],
                "bare": lambda: [bare.ask("record", _BARE_OPS)],
            },
        )
        running = [_record_running(client) for _ in range(_TURNS)]
        stencil_us = [_record_stencil_held(service, client) for _ in range(_TURNS)]
        calls_us = [_record_calls_held(service, client) for _ in range(_TURNS)]
    return (*_figures(recorded, times_us["bare"], running), _stencil_figure(stencil_us), _call_figure(calls_us))


def _record_held(service: Service, client: Worker, recorded: list[Recorded]) -> float:
    """Returns the elapsed time of an op in µs. Appends all times of the turn to `recorded`."""
    with service.held():
        turn: Recorded = client.ask("record")
    client.ask("read")
    recorded.append(turn)
    return turn.mean


def _record_stencil_held(service: Service, client: Worker) -> float:
    with service.held():
        mean_us: float = client.ask("record_stencil")
    client.ask("read")
    return mean_us


def _record_calls_held(service: Service, client: Worker) -> dict[str, float]:
    with service.held():
        calls_us: dict[str, float] = client.ask("record_calls")
    client.ask("read")
    return calls_us


def _record_running(client: Worker) -> Recorded:
    turn: Recorded = client.ask("record")
    client.ask("read")
    return turn


def _figures(recorded: Sequence[Recorded], bare_us: list[float], running: Sequence[Recorded]) -> tuple[Figure, ...]:
    means_us, alone_us = [turn.mean for turn in recorded], [turn.alone for turn in recorded]
    running_us, processor_us = [turn.mean for turn in running], [turn.processor for turn in recorded]
    first_us = [turn.first for turn in recorded]
    mean, alone, bare = summarise(means_us), summarise(alone_us), summarise(bare_us)
    return (
        Figure(
            name="record_op",
            what="recording an op, cutting, sealing and deaths included",
            value=mean.median,
            unit="µs",
            peer=Peer("bare Python", bare.median, mean.median / bare.median),
            spread=mean.spread,
            notes=(
                f"{summarise(processor_us).median:.2f} µs of the thread's processor time",
                f"with the device at work: {summarise(running_us).median:.2f} µs",
                f"the first {FIRST_STEPS:,} steps, whose segments are short: {summarise(first_us).median:.2f} µs",
            ),
            raw={
                "fusewire": means_us,
                "bare": bare_us,
                "processor": processor_us,
                "running": running_us,
                "first": first_us,
            },
        ),
        Figure(
            name="record_op_alone",
            what="recording an op that ends no segment",
            value=alone.median,
            unit="µs",
            spread=alone.spread,
            raw={"fusewire": alone_us},
        ),
    )


def _stencil_figure(times_us: list[float]) -> Figure:
    mean = summarise(times_us)
    return Figure(
        name="record_op_stencil",
        what="the same of a loop of slices, concatenations and choices",
        value=mean.median,
        unit="µs",
        spread=mean.spread,
        raw={"fusewire": times_us},
    )


def _call_figure(turns_us: Sequence[Mapping[str, float]]) -> Figure:
    """Returns the figure of the call that takes longest. Its notes tell the others."""
    raw = {call: [turn_us[call] for turn_us in turns_us] for call in turns_us[0]}
    times = {call: summarise(times_us) for call, times_us in raw.items()}
    addition = times.pop(ADDITION)
    longest = max(times, key=lambda call: times[call].median)
    return Figure(
        name="record_call",
        what=f"recording a call that was recorded before: {longest}, which takes longest",
        value=times[longest].median,
        unit="µs",
        peer=Peer(ADDITION, addition.median, times[longest].median / addition.median),
        spread=times[longest].spread,
        notes=tuple(f"{call}: {time.median:.3f} µs" for call, time in times.items()),
        raw=raw,
    )


RECORDING = Microbenchmark(("record_op", "record_op_alone", "record_op_stencil", "record_call"), _measure)
