"""Measures the device time of array functions against CuPy's: scans, sorts, sums, random numbers, many equations.

A call's device time is the time in which the device ran submissions, as the server counts it, divided by the calls of
several runs of a program, so that a device that begins its work counts little. The calls of a program have different
operands, and all results of a sample are kept, so that none is left out. On a processor NumPy is the peer, and only
equations are measured: there are many small systems of them.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterator
from multiprocessing.connection import Connection
from typing import Any

import fusewire as fw
from loadtests.measuring.errors import NotWarm
from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.workers import Worker
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.peers import cupy_functions, numpy_functions
from loadtests.system.context import Context
from loadtests.system.service import Service
from loadtests.workloads.array_functions import CALLS, EQUATIONS, Call
from loadtests.workloads.loops import check_close

_SAMPLES = 7
_RUNS = 5  # of the program in a sample
_NAMES = dict(zip(CALLS, ("device_cumsum", "device_sort", "device_add_at", "device_normal"), strict=True))
_EQUATIONS = "solve_1000x16"
_PEERS: dict[str, tuple[str, Callable[[Connection], None]]] = {
    "cpu": ("NumPy", numpy_functions.serve),
    "cuda": ("CuPy", cupy_functions.serve),
}


def _measure(context: Context) -> Iterator[Figure]:
    yield from _measured(context, *CALLS.values())


def _measure_equations(context: Context) -> Iterator[Figure]:
    yield from _measured(context, EQUATIONS)


def _measured(context: Context, *calls: Call) -> Iterator[Figure]:
    library, serve = _PEERS[context.backend]
    with context.session() as (service, session), Worker(serve) as peer:
        for call in calls:
            _check(call, peer.ask("result", call.name), f"{call.name} in {library}")
            yield figure(call.name, device_us(service, session, call), peer.ask("device_us", call.name), library)


def device_us(service: Service, session: fw.Session, call: Call) -> float:
    """Returns the device time of a call in µs. Raises WrongResult if its result differs from NumPy's."""
    operands = [tuple([session.array(each) for each in call.operands(number)]) for number in range(call.together)]
    body = fw.function(lambda *given: tuple([call.ours(fw, each) for each in given]))
    known = frozenset(service.programs())
    _check(call, body(*operands)[0].numpy(), call.name)
    if not service.wait_for_plans_beside(known):
        raise NotWarm(f"{call.name} got no plan")
    _call_us(service, body, operands)
    return statistics.median(_call_us(service, body, operands) for _ in range(_SAMPLES))


def _check(call: Call, result: Any, what: str) -> None:
    check_close(call.seen(result), call.expected(call.operands(0)), what, call.tolerance)


def _call_us(service: Service, body: Any, operands: list[Any]) -> float:
    before = service.count()
    results = [body(*operands) for _ in range(_RUNS)]
    (results[-1][-1].reshape(-1)[:1]).numpy()
    return service.count().since(before).device_ns / 1e3 / (_RUNS * len(operands))


def figure(name: str, ours_us: float, theirs_us: float, library: str = "CuPy") -> Figure:
    return Figure(
        name=_NAMES.get(name, _EQUATIONS),
        what=f"device time: {name}",
        value=ours_us,
        unit="µs",
        peer=Peer(library, theirs_us, ours_us / theirs_us),
        raw={name: (ours_us, theirs_us)},
    )


ARRAY_FUNCTIONS = Microbenchmark(tuple(_NAMES.values()), _measure)
MANY_EQUATIONS = Microbenchmark((_EQUATIONS,), _measure_equations)
