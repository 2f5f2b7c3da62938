"""Measures a loop of five pointwise ops on a million float32, against NumPy or torch, which users would run instead.

Each step takes the result of the step before, so none can be skipped. The client stays ahead of the server and waits
only at the end, for one element of the last result. In `pointwise` the results of the steps are dropped, so one kernel
may compute several steps and write the last result only. In `pointwise_kept` the user keeps every step's result, so
every result is written. `pointwise_fori` is another loop, of three ops, as `fori_loop`.

The library is measured op by op. A note tells the time of the fastest way to write the loop in it: in NumPy all ops
write into one array, in torch a graph of steps is replayed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import fusewire as fw
from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.timing import elapsed_ns, summarise, take_turns
from loadtests.measuring.workers import Worker
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.peers.local_peers import LOCAL_PEERS, LocalPeers
from loadtests.peers.numpy_loops import run_chain_in_place
from loadtests.peers.torch_graph import GRAPH_STEPS
from loadtests.system.context import Context, upload
from loadtests.system.remote_loop import RemoteLoop, as_fori_loop
from loadtests.workloads.loops import (
    CHAIN_OPS,
    DAMPED_OPS,
    Chain,
    Damped,
    Loop,
    check_close,
    draw_chain,
    draw_damped,
    first_element,
    result_in_numpy,
    run_chain,
    run_damped,
)

_ELEMENTS = 1_000_000
_STEPS = 256  # enough for several segments of the largest size
_PEER_STEPS = 2 * GRAPH_STEPS
_KEPT_STEPS = 32
_CHECKED_STEPS = 8
_TURNS = 5
_FORI_ELEMENTS = 1 << 20
_FORI_STEPS = {"cpu": 256, "cuda": 10_000}


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


def _measure(context: Context) -> Iterator[Figure]:
    yield from _measure_chain(context)
    yield _measure_fori(context)


def _measure_chain(context: Context) -> tuple[Figure, ...]:
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


def _measure_fori(context: Context) -> Figure:
    steps = _FORI_STEPS[context.backend]
    damped = Loop(draw_damped(_FORI_ELEMENTS, seed=7), run_damped, first_element)
    expected = result_in_numpy(damped, GRAPH_STEPS)
    op_by_op = LOCAL_PEERS[context.backend][:1]
    with context.session() as (service, session), LocalPeers(op_by_op, {"damped": damped}) as peers:
        operands = upload(session, damped.operands)
        check_close(as_fori_loop(damped, operands, GRAPH_STEPS).numpy(), expected, "three pointwise ops")
        theirs = peers.checked("damped", GRAPH_STEPS, expected)
        ways: dict[str, Callable[[], list[float]]] = {
            "fusewire": lambda: [elapsed_ns(partial(_read_fori, damped, operands, steps)) / 1e3 / steps],
            **{name: partial(_listed_us, step_ns) for name, step_ns in theirs.ways.items()},
        }
        service.warm_up(ways["fusewire"])
        service.wait_until_planned()
        take_turns(1, ways)
        times_us = take_turns(_TURNS, ways)
    return _fori_figure(steps, times_us, theirs.skipped)


def _read_fori(damped: Loop, operands: Damped, steps: int) -> None:
    damped.read(as_fori_loop(damped, operands, steps)).numpy()


def _listed_us(step_ns: Callable[[], float]) -> list[float]:
    return [step_ns() / 1e3]


def _fori_figure(steps: int, times_us: Mapping[str, list[float]], skipped: tuple[str, ...]) -> Figure:
    ours = summarise(times_us["fusewire"])
    theirs = [Peer(name, us := summarise(times).median, ours.median / us) for name, times in times_us.items()][1:]
    return Figure(
        name="pointwise_fori",
        what=f"{DAMPED_OPS} pointwise ops on 1 M float32, fori_loop of {steps:,} steps, a step",
        value=ours.median,
        unit="µs",
        peer=theirs[0] if theirs else None,
        spread=ours.spread,
        notes=(*(f"{peer.name}: {peer.value:.2f} µs" for peer in theirs[1:]), *skipped),
        raw=times_us,
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


POINTWISE = Microbenchmark(("pointwise", "pointwise_kept", "pointwise_fori"), _measure)
