"""How long a user's thread waits for a scalar, against gRPC that does no work.

`fetch_scalar` and `fetch_scalar_threads` fetch a scalar whose bytes the server has, while its device thread has nothing
to do. `fetch_scalar` is compared to an echo without any hand-off, `fetch_scalar_threads` to one with the hand-offs that
a fetch takes: from the user's thread to the I/O thread and back; and, where the device is not the processor that the
server runs on, from the server's loop to its device thread and back. `fetch_computed` is the fetch of a scalar that one
op computes from another, recorded, sent and run for it. It takes the same hand-offs, and is compared to the same echo,
which records and computes nothing.

The peers run in processes of their own, and all take turns of a few rounds. A scalar is fetched once only. The peers'
gRPC is as it comes; beside them run the same with gRPC set as Fusewire sets it, which tells our own part alone.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import count
from time import perf_counter_ns
from typing import Any, NamedTuple

import numpy as np

import fusewire as fw
from loadtests.context import Context
from loadtests.figure import Figure, Peer, Scenario, WrongResult
from loadtests.peers.bare_pair import bare_pair
from loadtests.turns import summarise, take_turns
from loadtests.workers import Worker

_ROUNDS = 25  # at once
_TURNS = 40


class _Compared(NamedTuple):
    """One figure: a way to fetch `what`, and the echo that it is compared to."""

    name: str
    way: str
    what: str
    echo: str
    against: str


def _compared(backend: str) -> tuple[_Compared, ...]:
    handing_over = "echo_to_user" if backend == "cpu" else "echo_through_threads"
    against = "an echo with its hand-offs"
    return (
        _Compared("fetch_scalar", "ready", "a scalar", "echo", "a bare echo"),
        _Compared("fetch_scalar_threads", "ready", "a scalar", handing_over, against),
        _Compared("fetch_computed", "computed", "a scalar that an op computes", handing_over, against),
    )


def _measure(context: Context) -> tuple[Figure, ...]:
    all_compared = _compared(context.backend)
    echoes = sorted({compared.echo for compared in all_compared})
    with context.session() as (service, session), bare_pair() as bare, bare_pair(is_told=True) as told:
        numbers = count(1)
        zero = session.array(np.float32(0))
        service.warm_up(lambda: _fetch_computed(zero, numbers))
        ways = {
            "ready": lambda: _fetch_scalars(session, numbers),
            "computed": lambda: _fetch_computed(zero, numbers),
            **{echo: _echoes(bare, echo) for echo in echoes},
            **{f"told_{echo}": _echoes(told, echo) for echo in echoes},
        }
        take_turns(4, ways)
        times_us = take_turns(_TURNS, ways)
    return tuple(_figure(times_us, compared) for compared in all_compared)


def _echoes(bare: Worker, echo: str) -> Callable[[], list[float]]:
    """Round trips of the peer, in µs."""
    return lambda: [time_ns / 1e3 for time_ns in bare.ask(echo, _ROUNDS)]


def _fetch_scalars(session: fw.Session, numbers: Iterator[int]) -> list[float]:
    """Round trips in µs, of scalars whose bytes the server already has."""
    values = [np.float32(number) for number, _ in zip(numbers, range(_ROUNDS), strict=False)]
    scalars = [session.array(value) for value in values]
    if scalars[-1].numpy() != values[-1]:
        raise WrongResult(f"a scalar came back as {scalars[-1].numpy()} instead of {values[-1]}")
    fetched, times_us = [], []
    for scalar in scalars[:-1]:
        began_ns = perf_counter_ns()
        fetched.append(scalar.numpy())
        times_us.append((perf_counter_ns() - began_ns) / 1e3)
    if fetched != values[:-1]:
        raise WrongResult(f"scalars came back as {fetched} instead of {values[:-1]}")
    return times_us


def _fetch_computed(zero: Any, numbers: Iterator[int]) -> list[float]:
    """Round trips in µs, of scalars that are recorded, computed and fetched."""
    times_us = []
    for number, _ in zip(numbers, range(_ROUNDS), strict=False):
        began_ns = perf_counter_ns()
        computed = (zero + float(number)).numpy()
        times_us.append((perf_counter_ns() - began_ns) / 1e3)
        if computed != number:
            raise WrongResult(f"0 + {number} came back as {computed}")
    return times_us


def _figure(times_us: dict[str, list[float]], compared: _Compared) -> Figure:
    told_echo = f"told_{compared.echo}"
    ours, theirs, told = (summarise(times_us[way]) for way in (compared.way, compared.echo, told_echo))
    return Figure(
        name=compared.name,
        what=f"fetch of {compared.what}, against {compared.against}",
        value=ours.median,
        unit="µs",
        peer=Peer(compared.against, theirs.median, ours.median / theirs.median),
        spread=ours.spread,
        notes=(
            f"{told.median:.0f} µs the peer with gRPC set as Fusewire sets it: {ours.median / told.median:.2f} ×",
            f"90 % of the peer's within {theirs.spread.high:.0f} µs",
        ),
        raw={way: times_us[way] for way in (compared.way, compared.echo, told_echo)},
    )


ROUND_TRIP = Scenario(("fetch_scalar", "fetch_scalar_threads", "fetch_computed"), _measure)
