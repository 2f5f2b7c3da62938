"""Measures coalescing of eight client processes, which run the same recurrent loop on data of their own.

First they run freely, and the figure `clients_device` is the device thread's time for an op, as the server counts it.
Then the device starts no work until every client has sent nearly all ops that its credit allows. Once the device works
again, each segment that is not a fragment should run in a launch of eight rows: the figure `clients_rows` is the number
of rows in a launch, without fragments. Clients may cut fragments at different ops, so a note tells the number with
fragments included.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from loadtests.measuring.figure import Figure
from loadtests.measuring.timing import summarise
from loadtests.measuring.workers import Fleet
from loadtests.microbenchmarks.loops import rnn_client
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.system.context import Context
from loadtests.system.service import Program, Service
from loadtests.workloads.loops import RNN_OPS

_CLIENTS = 8
_HIDDEN = 64
_WARMING_STEPS = 1500
_STEPS = 4000
_TURNS = 3
_HELD_TURNS = 3
_HELD_STEPS = 10_000  # whose 60,000 ops are nearly the credit of a session, limits.credit_ops = 65,536
_SENDING_DEADLINE_S = 20.0
_SENDING_LOOK_S = 0.05


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
    """The launches of each program after the device was released."""

    launches: tuple[_Launches, ...]

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
    with context.service() as service:
        arguments = [(service.target, 1, _HIDDEN, seed) for seed in range(_CLIENTS)]
        with Fleet(rnn_client.serve, arguments) as fleet:
            fleet.ask("check")
            free = _run_free(service, fleet)
            held = [_release_held(service, fleet) for _ in range(_HELD_TURNS)]
    return (_device_figure(free), _rows_figure(held))


def _run_free(service: Service, fleet: Fleet) -> _Running:
    service.warm_up(lambda: fleet.ask("run", _WARMING_STEPS))
    device_us, rows, client_us = [], [], []
    for _ in range(_TURNS):
        before = service.count()
        client_us += fleet.ask("run", _STEPS)
        spent = service.count().since(before)
        device_us.append(spent.device_thread_ns / 1e3 / spent.ops)
        rows.append(spent.rows / spent.submissions)
    return _Running(device_us, rows, client_us)


def _release_held(service: Service, fleet: Fleet) -> _Released:
    before = service.programs()
    with service.held():
        fleet.tell("run", _HELD_STEPS)
        _wait_until_all_is_sent(service)
    fleet.answers()
    return _Released(_launches_since(before, service.programs()))


def _wait_until_all_is_sent(service: Service) -> None:
    """Waits until all ops of each client are in flight."""
    deadline_s = time.monotonic() + _SENDING_DEADLINE_S
    while not (len(now := service.in_flight_ops()) == _CLIENTS and min(now) >= _HELD_STEPS * RNN_OPS):
        if time.monotonic() > deadline_s:
            raise TimeoutError(f"the clients did not send {_HELD_STEPS * RNN_OPS} ops each: {now} ops in flight")
        time.sleep(_SENDING_LOOK_S)


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
    return Figure(
        name="clients_rows",
        what=f"{_CLIENTS} clients, {_HELD_STEPS * RNN_OPS:,} ops of each sent when the device begins: rows a launch",
        value=min(means),
        unit="rows",
        notes=(f"of {len(means)} turns: {_listed(means)}; fragments counted too: {_listed(means_of_all)}",),
        raw={"rows": means, "rows_of_all": means_of_all},
    )


def _listed(means: Sequence[float]) -> str:
    return ", ".join(f"{mean:.2f}" for mean in means)


MANY_CLIENTS = Microbenchmark(("clients_device", "clients_rows"), _measure)
