"""How long a user's thread waits for a scalar that is there, against gRPC that does no work.

The peers run in processes of their own, and all take turns of a few rounds. A scalar is fetched once only. The peers'
gRPC is as it comes; beside them run the same with gRPC set as Fusewire sets it, which tells our own part alone.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count
from time import perf_counter_ns

import numpy as np

import fusewire as fw
from loadtests.context import Context
from loadtests.figure import Figure, Limit, Peer, Scenario, Subject, WrongResult, at_most
from loadtests.peers.bare_pair import bare_pair
from loadtests.turns import summarise, take_turns

_ROUNDS = 25  # at once
_TURNS = 40


def _measure(context: Context) -> tuple[Figure, ...]:
    with context.session() as (_, session), bare_pair() as bare, bare_pair(is_told=True) as told:
        numbers = count(1)
        ways = {
            "fusewire": lambda: _fetch_scalars(session, numbers),
            "echo": lambda: _in_us(bare.ask("echo", _ROUNDS)),
            "echo_through_threads": lambda: _in_us(bare.ask("echo_through_threads", _ROUNDS)),
            "told_echo": lambda: _in_us(told.ask("echo", _ROUNDS)),
            "told_echo_through_threads": lambda: _in_us(told.ask("echo_through_threads", _ROUNDS)),
        }
        take_turns(4, ways)
        times_us = take_turns(_TURNS, ways)
    return (
        _figure(times_us, "fetch_scalar", "a bare echo", "echo", at_most(2.5, Subject.RATIO)),
        _figure(
            times_us,
            "fetch_scalar_threads",
            "an echo with its hand-offs",
            "echo_through_threads",
            at_most(1.3, Subject.RATIO),
        ),
    )


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


def _in_us(times_ns: list[int]) -> list[float]:
    return [time_ns / 1e3 for time_ns in times_ns]


def _figure(times_us: dict[str, list[float]], name: str, against: str, peer: str, limit: Limit) -> Figure:
    told_peer = f"told_{peer}"
    ours, theirs, told = (summarise(times_us[way]) for way in ("fusewire", peer, told_peer))
    return Figure(
        name=name,
        what=f"fetch of a scalar, against {against}",
        value=ours.median,
        unit="µs",
        limit=limit,
        peer=Peer(against, theirs.median, ours.median / theirs.median),
        spread=ours.spread,
        notes=(
            f"{told.median:.0f} µs the peer with gRPC set as Fusewire sets it: {ours.median / told.median:.2f} ×",
            f"90 % of the peer's within {theirs.spread.high:.0f} µs",
        ),
        raw={way: times_us[way] for way in ("fusewire", peer, told_peer)},
    )


ROUND_TRIP = Scenario(("fetch_scalar", "fetch_scalar_threads"), _measure)
