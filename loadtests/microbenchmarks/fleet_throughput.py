"""Measures the throughput of fifteen client processes on one GPU. Each runs the recurrent loop on data of its own.

The peer is fifteen processes that run the loop in torch on the same GPU. One fleet is idle while the other runs. The
rate is the number of all ops divided by the time from the first process's start to the last one's result. (The sum of
the processes' own rates would be too high if they did not run at the same time.)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from multiprocessing import get_context

from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.timing import elapsed_ns, summarise, take_turns
from loadtests.measuring.workers import Fleet
from loadtests.microbenchmarks import rnn_client
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.peers.libraries import Library
from loadtests.system.context import Context
from loadtests.system.service import Count
from loadtests.workloads.loops import RNN_OPS, Loop, check_close, draw_rnn, result_in_numpy, run_rnn

_CLIENTS = 15
_HIDDEN = 256
_CHECKED_STEPS = 200
_WARMING_STEPS = 1500
_STEPS = 5000
_TURNS = 3


def _measure(context: Context) -> tuple[Figure, ...]:
    stop = get_context("spawn").Event()
    loops = [Loop(draw_rnn(1, _HIDDEN, seed), run_rnn) for seed in range(_CLIENTS)]
    with context.service() as service:
        clients = [(service.target, 1, _HIDDEN, seed, stop) for seed in range(_CLIENTS)]
        peers = [({"rnn": loop},) for loop in loops]
        with Fleet(rnn_client.serve, clients) as fleet, Fleet(context.library.serve, peers) as peer_fleet:
            fleet.ask("check")
            _check(peer_fleet, loops)
            service.warm_up(lambda: fleet.ask("run", _WARMING_STEPS))
            ways = {
                "fusewire": lambda: [_rate(lambda: fleet.ask("run", _STEPS))],
                "peer": lambda: [_rate(lambda: peer_fleet.ask("run_ns", "rnn", _STEPS))],
            }
            take_turns(1, ways)
            before = service.count()
            rates = take_turns(_TURNS, ways)
            spent = service.count().since(before)
    return (_figure(context.library, rates, spent),)


def _check(peer_fleet: Fleet, loops: Sequence[Loop]) -> None:
    states = peer_fleet.ask("result", "rnn", _CHECKED_STEPS)
    for state, loop in zip(states, loops, strict=True):
        check_close(state, result_in_numpy(loop, _CHECKED_STEPS), "the recurrent loop of a peer")


def _rate(run: Callable[[], object]) -> float:
    """The rate of all processes together, in Mops/s."""
    return _CLIENTS * _STEPS * RNN_OPS * 1e3 / elapsed_ns(run)


def _figure(library: Library, rates: dict[str, list[float]], spent: Count) -> Figure:
    ours, theirs = summarise(rates["fusewire"]), summarise(rates["peer"])
    return Figure(
        name="fleet",
        what=f"{_CLIENTS} clients, RNN loop B1 H{_HIDDEN}, all together",
        value=ours.median,
        unit="Mops/s",
        peer=Peer(f"{_CLIENTS} processes of {library.name}", theirs.median, ours.median / theirs.median),
        spread=ours.spread,
        notes=(
            f"{spent.rows / spent.submissions:.1f} rows a launch",
            f"device thread {spent.device_thread_ns / 1e3 / spent.ops:.2f} µs an op",
        ),
        raw=rates,
    )


FLEET = Microbenchmark(("fleet",), _measure)
