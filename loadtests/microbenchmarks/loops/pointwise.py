"""Measures a loop of five pointwise ops on a million float32, against NumPy or torch, which users would run instead.

Each step takes the result of the step before, so none can be skipped. The client stays ahead of the server and waits
only at the end, for one element of the last result. In `pointwise` the results of the steps are dropped, so one kernel
may compute several steps and write the last result only. In `pointwise_kept` the user keeps every step's result, so
every result is written.

The library is measured op by op. A note tells the time of the fastest way to write the loop in it: in NumPy all ops
write into one array, in torch a graph of steps is replayed.
"""

from __future__ import annotations

from typing import NamedTuple

import fusewire as fw
from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.timing import elapsed_ns, summarise, take_turns
from loadtests.measuring.workers import Worker
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.peers.numpy_loops import run_chain_in_place
from loadtests.peers.pytorch.graph import GRAPH_STEPS
from loadtests.system.context import Context
from loadtests.system.remote_loop import RemoteLoop
from loadtests.workloads.loops import (
    CHAIN_OPS,
    Chain,
    Loop,
    check_close,
    draw_chain,
    first_element,
    result_in_numpy,
    run_chain,
)

_ELEMENTS = 1_000_000
_STEPS = 256  # enough for several segments of the largest size
_PEER_STEPS = 2 * GRAPH_STEPS
_KEPT_STEPS = 32
_CHECKED_STEPS = 8
_TURNS = 5


class _Fastest(NamedTuple):
    """The fastest way to write the loop in a library: the command of its process, and the loop's name there."""

    what: str
    command: str
    loop: str


class _Theirs(NamedTuple):
    """The peer's times of a step, first op by op, then with the loop written in the fastest way."""

    name: str
    times_ms: list[float]
    fastest: str
    fastest_ms: list[float]


def _measure(context: Context) -> tuple[Figure, ...]:
    library = context.library
    chain = Loop(draw_chain(_ELEMENTS, seed=7), run_chain, first_element)
    loops = {"chain": chain}
    fastest = _Fastest(f"a graph of {GRAPH_STEPS} steps in torch", "replay_ns", "chain")
    if not library.has_graphs:
        loops["in_place"] = chain._replace(run=run_chain_in_place)
        fastest = _Fastest(f"{library.name} writing over one array", "run_ns", "in_place")
    with context.session() as (service, session), library.running(loops) as peer:
        remote = RemoteLoop(session, chain)
        _check(chain, remote, peer, loops)
        service.warm_up(lambda: remote.run_ns(_STEPS))
        service.warm_up(lambda: _run_keeping_all(remote.operands))
        ways = {
            "fusewire": lambda: [_ms_a_step(_STEPS, remote.run_ns(_STEPS))],
            "fusewire_keeping_all": lambda: [_ms_a_step(_KEPT_STEPS, _keeping_all_ns(remote))],
            "peer": lambda: [_ms_a_step(_PEER_STEPS, peer.ask("run_ns", "chain", _PEER_STEPS))],
            "fastest_peer": lambda: [_ms_a_step(_PEER_STEPS, peer.ask(fastest.command, fastest.loop, _PEER_STEPS))],
        }
        take_turns(1, ways)
        times_ms = take_turns(_TURNS, ways)
    theirs = _Theirs(library.name, times_ms["peer"], fastest.what, times_ms["fastest_peer"])
    return (
        _figure("pointwise", "a kernel may compute several steps", times_ms["fusewire"], theirs),
        _figure("pointwise_kept", "every step written out", times_ms["fusewire_keeping_all"], theirs),
    )


def _keeping_all_ns(remote: RemoteLoop) -> int:
    return elapsed_ns(lambda: _run_keeping_all(remote.operands))


def _run_keeping_all(chain: Chain) -> None:
    """Runs the loop and keeps every step's result, so that each must be written."""
    x, b, z = chain
    kept = []
    for _ in range(_KEPT_STEPS):
        kept.append(x)
        x = fw.relu(fw.tanh(fw.sigmoid((x + b) * z)))
    x[0].numpy()


def _check(chain: Loop, remote: RemoteLoop, peer: Worker, loops: dict[str, Loop]) -> None:
    expected = result_in_numpy(chain, _CHECKED_STEPS)
    check_close(remote.result(_CHECKED_STEPS), expected, "five pointwise ops")
    for name in loops:
        check_close(peer.ask("result", name, _CHECKED_STEPS), expected, f"the peer's loop {name}")


def _ms_a_step(steps: int, time_ns: int) -> float:
    return time_ns / 1e6 / steps


def _figure(name: str, what: str, ours_ms: list[float], theirs: _Theirs) -> Figure:
    ours, peer, fastest = (summarise(each) for each in (ours_ms, theirs.times_ms, theirs.fastest_ms))
    return Figure(
        name=name,
        what=f"{CHAIN_OPS} pointwise ops on 1 M float32, steady, {what}",
        value=ours.median,
        unit="ms",
        peer=Peer(theirs.name, peer.median, peer.median / ours.median),
        spread=ours.spread,
        notes=(f"{theirs.fastest}: {fastest.median:.3f} ms",),
        raw={"fusewire": ours_ms, "peer": theirs.times_ms, "fastest_peer": theirs.fastest_ms},
    )


POINTWISE = Microbenchmark(("pointwise", "pointwise_kept"), _measure)
