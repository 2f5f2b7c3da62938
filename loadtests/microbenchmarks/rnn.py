"""Measures the recurrent loop of one client, against NumPy or torch, which its user would run instead.

The library runs in a process of its own. On the GPU a note tells the time of a replayed torch graph, which users write
for speed if all shapes are fixed.
"""

from __future__ import annotations

from functools import partial
from time import process_time_ns
from typing import NamedTuple

from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.timing import summarise, take_turns
from loadtests.measuring.workers import Worker
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.peers.libraries import Library
from loadtests.peers.torch_loops import GRAPH_STEPS
from loadtests.system.context import Context
from loadtests.system.remote_loop import RemoteLoop
from loadtests.system.service import Count, Service
from loadtests.workloads.loops import RNN_OPS, Loop, check_close, draw_rnn, result_in_numpy, run_rnn

_STEPS = 3000
_CHECKED_STEPS = 200
_TURNS = 25


class _Shape(NamedTuple):
    batch: int
    hidden: int

    @property
    def name(self) -> str:
        return f"rnn_b{self.batch}_h{self.hidden}"


class _Measured(NamedTuple):
    """Each turn's times of an op in µs, by library, and this process's processor time; and the server's counts."""

    times_us: dict[str, list[float]]
    processor_us: list[float]
    spent: Count


def _measure(context: Context, shape: _Shape) -> tuple[Figure, ...]:
    loop = Loop(draw_rnn(*shape, seed=11), run_rnn)
    library = context.library
    with context.session() as (service, session), library.running({"rnn": loop}) as peer:
        remote = RemoteLoop(session, loop)
        _check(loop, remote, peer, library)
        service.warm_up(lambda: remote.run_ns(_STEPS))
        measured = _take_turns(service, remote, peer, library)
    return (_figure(shape, library, measured),)


def _check(loop: Loop, remote: RemoteLoop, peer: Worker, library: Library) -> None:
    expected = result_in_numpy(loop, _CHECKED_STEPS)
    check_close(remote.result(_CHECKED_STEPS), expected, "the recurrent loop")
    check_close(peer.ask("result", "rnn", _CHECKED_STEPS), expected, f"the recurrent loop in {library.name}")
    if library.has_graphs:
        check_close(peer.ask("replayed", "rnn", _CHECKED_STEPS), expected, "the recurrent loop as a graph")


def _take_turns(service: Service, remote: RemoteLoop, peer: Worker, library: Library) -> _Measured:
    processor_us: list[float] = []
    ways = {
        "fusewire": lambda: [_us_an_op(_run_timed(remote, processor_us))],
        "peer": lambda: [_us_an_op(peer.ask("run_ns", "rnn", _STEPS))],
    }
    if library.has_graphs:
        ways["graph"] = lambda: [_us_an_op(peer.ask("replay_ns", "rnn", _STEPS))]
    before = service.count()
    times_us = take_turns(_TURNS, ways)
    return _Measured(times_us, processor_us, service.count().since(before))


def _run_timed(remote: RemoteLoop, processor_us: list[float]) -> int:
    """Returns the time of the loop in ns. Appends this process's processor time, in µs an op, to `processor_us`."""
    began_ns = process_time_ns()
    time_ns = remote.run_ns(_STEPS)
    processor_us.append(_us_an_op(process_time_ns() - began_ns))
    return time_ns


def _us_an_op(time_ns: int) -> float:
    return time_ns / 1e3 / (_STEPS * RNN_OPS)


def _figure(shape: _Shape, library: Library, measured: _Measured) -> Figure:
    times_us, processor_us, spent = measured
    ours, theirs = summarise(times_us["fusewire"]), summarise(times_us["peer"])
    notes = [
        f"{summarise(processor_us).median:.2f} µs of the client's processor time",
        f"device thread {spent.device_thread_ns / 1e3 / spent.ops:.2f} µs an op",
    ]
    if "graph" in times_us:
        notes.append(f"a graph of {GRAPH_STEPS} steps in torch: {summarise(times_us['graph']).median:.2f} µs")
    return Figure(
        name=shape.name,
        what=f"RNN loop B{shape.batch} H{shape.hidden}, one client, an op",
        value=ours.median,
        unit="µs",
        peer=Peer(library.name, theirs.median, ours.median / theirs.median),
        spread=ours.spread,
        notes=tuple(notes),
        raw={**times_us, "processor": processor_us},
    )


def _microbenchmark(batch: int, hidden: int) -> Microbenchmark:
    shape = _Shape(batch, hidden)
    return Microbenchmark((shape.name,), partial(_measure, shape=shape))


RNN_B1_H256 = _microbenchmark(1, 256)
RNN_B64_H256 = _microbenchmark(64, 256)
RNN_B64_H1024 = _microbenchmark(64, 1024)
