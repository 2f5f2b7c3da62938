"""Measures how many ops a second many client processes do together, each with the recurrent loop on data of its own.

In one figure the clients record the loop inline, op by op. In the other each client sends the whole loop as one
`fori_loop`. All clients begin at the same time; the time lasts until the last one has its
result. Every client's result is compared with NumPy's before anything is timed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from loadtests.measuring.figure import Figure
from loadtests.measuring.timing import summarise
from loadtests.measuring.waits import Span
from loadtests.measuring.workers import Fleet
from loadtests.microbenchmarks.loops import rnn_client
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.system.context import Context
from loadtests.system.service import Service
from loadtests.workloads.loops import RNN_OPS

_BATCH, _HIDDEN = 1, 256
_CALLS = 3
_TURNS = 3
_WARMING_STEPS = 1_500


class _Size(NamedTuple):
    """How many clients run how many steps: `steps` in each of several calls inline, or `loop_steps` in one loop."""

    inline_clients: int
    steps: int
    loop_clients: int
    loop_steps: int


_SIZES: Mapping[str, _Size] = {"cpu": _Size(2, 2_000, 4, 2_000), "cuda": _Size(15, 20_000, 60, 100_000)}


def _measure(context: Context) -> Iterator[Figure]:
    size = _SIZES[context.backend]
    with context.service() as service:
        yield _figure("throughput", f"{size.inline_clients} clients inline", _inline(service, size))
        yield _figure("throughput_fori", f"{size.loop_clients} clients, a fori_loop each", _loops(service, size))


def _inline(service: Service, size: _Size) -> list[float]:
    """Returns the rate of all clients together in each turn, in millions of ops a second."""
    with _clients(service, size.inline_clients) as fleet:
        fleet.ask("check")
        service.warm_up(lambda: fleet.ask("run", _WARMING_STEPS))
        service.wait_until_planned()
        fleet.ask("run_calls", size.steps, 1)
        ops = size.steps * _CALLS * RNN_OPS
        return [mops_a_second(fleet.ask("run_calls", size.steps, _CALLS), ops) for _ in range(_TURNS)]


def _loops(service: Service, size: _Size) -> list[float]:
    """Returns the rate of all clients together in each turn, in millions of ops a second."""
    with _clients(service, size.loop_clients) as fleet:
        fleet.ask("check")
        service.warm_up(lambda: fleet.ask("run_loop", _WARMING_STEPS))
        service.wait_until_planned()
        ops = size.loop_steps * RNN_OPS
        return [mops_a_second(fleet.ask("run_loop", size.loop_steps), ops) for _ in range(_TURNS)]


def _clients(service: Service, clients: int) -> Fleet:
    return Fleet(rnn_client.serve, [(service.target, _BATCH, _HIDDEN, seed) for seed in range(clients)])


def mops_a_second(spans: Sequence[Span], ops: int) -> float:
    """Returns the rate of all clients in millions of ops a second, from the first begin to the last end.

    `spans` has one span for each client, in which the client did `ops` ops.
    """
    time_ns = max(span.ended_ns for span in spans) - min(span.began_ns for span in spans)
    return len(spans) * ops / time_ns * 1e3


def _figure(name: str, what: str, mops: list[float]) -> Figure:
    rate = summarise(mops)
    return Figure(
        name=name,
        what=f"{what}, RNN loop B{_BATCH} H{_HIDDEN}, all together",
        value=rate.median,
        unit="Mops/s",
        spread=rate.spread,
        raw={"mops_a_second": mops},
    )


THROUGHPUT = Microbenchmark(("throughput", "throughput_fori"), _measure)
