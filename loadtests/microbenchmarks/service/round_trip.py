"""Measures how long a user's thread waits for a scalar, against a gRPC echo with the same settings.

`fetch_stored` fetches a scalar that the server has, while the device thread is idle; `fetch_stored_local` does so by a
local call. `fetch_computed` records one op on
a stored scalar and fetches its result, so it includes recording, sending and running the op. The echo goes from one
event loop to another, and does nothing else.

The echo runs in processes of its own. The two fetches and the echo alternate in turns of 25 round trips. Each scalar is
fetched once only.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from time import perf_counter_ns
from typing import Any

import numpy as np

import fusewire as fw
from loadtests.measuring.errors import WrongResult
from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.timing import summarise, take_turns
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.peers.bare_pair import bare_pair
from loadtests.system.context import Context

_ROUNDS = 25  # round trips in a turn
_TURNS = 40


def _measure(context: Context) -> tuple[Figure, ...]:
    with (
        context.session() as (service, session),
        fw.connect(service.target) as local,
        bare_pair() as bare,
    ):
        numbers = count(1)
        zero = session.array(np.float32(0))
        service.warm_up(lambda: _fetch_computed(zero, numbers))
        ways = {
            "stored": lambda: _fetch_stored(session, numbers),
            "stored, local": lambda: _fetch_stored(local, numbers),
            "computed": lambda: _fetch_computed(zero, numbers),
            "echo": lambda: [time_ns / 1e3 for time_ns in bare.ask("echo", _ROUNDS)],
        }
        take_turns(4, ways)
        times_us = take_turns(_TURNS, ways)
    return (
        _figure("fetch_stored", "fetch of a stored scalar", times_us["stored"], times_us["echo"]),
        _figure("fetch_stored_local", "such a fetch by a local call", times_us["stored, local"], times_us["echo"]),
        _figure("fetch_computed", "fetch of a scalar that an op computes", times_us["computed"], times_us["echo"]),
    )


def _fetch_stored(session: fw.Session, numbers: Iterator[int]) -> list[float]:
    """Returns the times of fetching scalars that the server has, in µs."""
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
    """Returns the times of recording, computing and fetching scalars, in µs."""
    times_us = []
    for number, _ in zip(numbers, range(_ROUNDS), strict=False):
        began_ns = perf_counter_ns()
        computed = (zero + float(number)).numpy()
        times_us.append((perf_counter_ns() - began_ns) / 1e3)
        if computed != number:
            raise WrongResult(f"0 + {number} came back as {computed}")
    return times_us


def _figure(name: str, what: str, ours_us: list[float], echo_us: list[float]) -> Figure:
    ours, echo = summarise(ours_us), summarise(echo_us)
    return Figure(
        name=name,
        what=what,
        value=ours.median,
        unit="µs",
        peer=Peer("an echo with our gRPC settings", echo.median, ours.median / echo.median),
        spread=ours.spread,
        notes=(f"8 of 10 echoes within {echo.spread.low:.0f} … {echo.spread.high:.0f} µs",),
        raw={"fusewire": ours_us, "echo": echo_us},
    )


ROUND_TRIP = Microbenchmark(("fetch_stored", "fetch_stored_local", "fetch_computed"), _measure)
