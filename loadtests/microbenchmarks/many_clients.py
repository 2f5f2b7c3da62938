"""Measures coalescing of eight client processes, which run the same recurrent loop on data of their own.

First they run freely, and the figure `clients_device` is the device thread's time for an op, as the server counts it.
Then the device starts no work until every client has used up its credit. Once the device works again, each segment that
is not a fragment should run in a launch of eight rows: the figure `clients_rows` is the number of rows in a launch,
without fragments. Clients may cut fragments at different ops, so a note tells the number with fragments included.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from multiprocessing import get_context
from multiprocessing.synchronize import Event
from typing import NamedTuple

from loadtests.measuring.figure import Figure
from loadtests.measuring.timing import summarise
from loadtests.measuring.workers import Fleet
from loadtests.microbenchmarks import rnn_client
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.system.context import Context
from loadtests.system.service import Program, Service

_CLIENTS = 8
_HIDDEN = 64
_WARMING_STEPS = 1500
_STEPS = 4000
_TURNS = 3
_HELD_TURNS = 3
_CREDIT_DEADLINE_S = 20.0
_CREDIT_LOOK_S = 0.2  # a client that has credit sends within this time, even if it waits for a processor


class _Clients(NamedTuple):
    fleet: Fleet
    stop: Event


class _Running(NamedTuple):
    """Measurements while the clients ran freely."""

    device_us: list[float]  # the device thread's time for an op, in each turn
    rows: list[float]  # the number of rows in a submission, in each turn
    client_us: list[float]  # a client's time for an op, in each turn and for each client


class _Launches(NamedTuple):
    """The launches of one program, and the rows in them."""

    rows: int
    submissions: int
    is_fragment: bool


class _Released(NamedTuple):
    """The launches of each program after the device was released, and how often each trigger had cut a segment."""

    launches: tuple[_Launches, ...]
    cuts: Counter[str]

    @property
    def rows_a_launch(self) -> float:
        """The mean number of rows in a launch of a program that is not a fragment."""
        return _rows_a_launch([each for each in self.launches if not each.is_fragment])

    @property
    def rows_a_launch_of_all(self) -> float:
        return _rows_a_launch(self.launches)


def _rows_a_launch(launches: Sequence[_Launches]) -> float:
    return sum(each.rows for each in launches) / sum(each.submissions for each in launches)


def _measure(context: Context) -> tuple[Figure, ...]:
    with context.service() as service, _clients(service, _CLIENTS, _HIDDEN) as clients:
        clients.fleet.ask("check")
        free = _run_free(service, clients)
        held = [_release_held(service, clients) for _ in range(_HELD_TURNS)]
    return (_device_figure(free), _rows_figure(held))


@contextmanager
def _clients(service: Service, clients: int, hidden: int) -> Iterator[_Clients]:
    stop = get_context("spawn").Event()
    arguments = [(service.target, 1, hidden, seed, stop) for seed in range(clients)]
    with Fleet(rnn_client.serve, arguments) as fleet:
        yield _Clients(fleet, stop)


def _run_free(service: Service, clients: _Clients) -> _Running:
    service.warm_up(lambda: clients.fleet.ask("run", _WARMING_STEPS))
    device_us, rows, client_us = [], [], []
    for _ in range(_TURNS):
        before = service.count()
        client_us += clients.fleet.ask("run", _STEPS)
        spent = service.count().since(before)
        device_us.append(spent.device_thread_ns / 1e3 / spent.ops)
        rows.append(spent.rows / spent.submissions)
    return _Running(device_us, rows, client_us)


def _release_held(service: Service, clients: _Clients) -> _Released:
    before = service.programs()
    clients.stop.clear()
    with service.held():
        clients.fleet.tell("run_until_stopped")
        _wait_for_credit_to_end(service)
        clients.stop.set()  # a client that waits for credit goes on until it next looks at the event
    cuts: Counter[str] = sum(clients.fleet.answers(), Counter())
    return _Released(_launches_since(before, service.programs()), cuts)


def _wait_for_credit_to_end(service: Service) -> None:
    """Waits until all clients have work in flight and none of them sends more."""
    deadline_s = time.monotonic() + _CREDIT_DEADLINE_S
    before: tuple[int, ...] = ()
    while time.monotonic() < deadline_s:
        now = service.in_flight_ops()
        if len(now) == _CLIENTS and all(now) and now == before:
            return
        before = now
        time.sleep(_CREDIT_LOOK_S)
    raise TimeoutError(f"the clients did not use up their credit: {before} ops in flight")


def _launches_since(before: Mapping[str, Program], after: Mapping[str, Program]) -> tuple[_Launches, ...]:
    """Returns the launches between two readings, for each program that was launched."""
    launches = []
    for digest, program in after.items():
        known = before.get(digest, program._replace(rows=0, submissions=0))
        rows, submissions = program.rows - known.rows, program.submissions - known.submissions
        if submissions:
            launches.append(_Launches(rows, submissions, program.is_fragment))
    return tuple(launches)


def _device_figure(free: _Running) -> Figure:
    device, client = summarise(free.device_us), summarise(free.client_us)
    return Figure(
        name="clients_device",
        what=f"{_CLIENTS} clients, RNN loop B1 H{_HIDDEN}: device thread, an op",
        value=device.median,
        unit="µs",
        spread=device.spread,
        notes=(f"running free: {summarise(free.rows).median:.1f} rows a launch, a client's op {client.median:.1f} µs",),
        raw={"device_us": free.device_us, "rows": free.rows, "client_us": free.client_us},
    )


def _rows_figure(held: list[_Released]) -> Figure:
    means = [released.rows_a_launch for released in held]
    means_of_all = [released.rows_a_launch_of_all for released in held]
    cuts: Counter[str] = sum((released.cuts for released in held), Counter())
    shown = ", ".join(f"{count} by {trigger}" for trigger, count in cuts.most_common())
    return Figure(
        name="clients_rows",
        what=f"{_CLIENTS} clients at credit before the device gate opens: rows a launch",
        value=min(means),
        unit="rows",
        notes=(
            f"of {len(means)} turns: {_listed(means)}; fragments counted too: {_listed(means_of_all)}",
            f"the clients' segments were cut {shown}",
        ),
        raw={"rows": means, "rows_of_all": means_of_all},
    )


def _listed(means: Sequence[float]) -> str:
    return ", ".join(f"{mean:.2f}" for mean in means)


MANY_CLIENTS = Microbenchmark(("clients_device", "clients_rows"), _measure)
