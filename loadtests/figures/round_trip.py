"""How long a user's thread waits for a scalar that is there, against gRPC that does no work.

The peers run in processes of their own, and all three take turns of a few rounds. A scalar is fetched once only.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from time import perf_counter_ns

import numpy as np

import fusewire as fw
from loadtests.context import Context
from loadtests.figure import Figure, Limit, Peer, Scenario, Subject, WrongResult, at_most
from loadtests.peers import bare_client, bare_server
from loadtests.turns import Summary, summarise, take_turns
from loadtests.workers import Worker

_ROUNDS = 25  # at once
_TURNS = 40


def _measure(context: Context) -> tuple[Figure, ...]:
    with context.session() as (_, session), _bare_client() as peer:
        numbers = count(1)
        ways = {
            "fusewire": lambda: _fetch_scalars(session, numbers),
            "echo": lambda: _in_us(peer.ask("echo", _ROUNDS)),
            "echo_through_threads": lambda: _in_us(peer.ask("echo_through_threads", _ROUNDS)),
        }
        take_turns(4, ways)
        times_us = take_turns(_TURNS, ways)
    summaries = {name: summarise(measured) for name, measured in times_us.items()}
    return (
        _figure(summaries, "fetch_scalar", "a bare echo", "echo", at_most(2.5, Subject.RATIO), times_us),
        _figure(
            summaries,
            "fetch_scalar_threads",
            "an echo with its hand-offs",
            "echo_through_threads",
            at_most(1.3, Subject.RATIO),
            times_us,
        ),
    )


@contextmanager
def _bare_client() -> Iterator[Worker]:
    with Worker(bare_server.serve, 0) as server, Worker(bare_client.serve, server.answer(), 0) as client:
        yield client


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


def _figure(
    summaries: dict[str, Summary], name: str, against: str, peer: str, limit: Limit, raw: dict[str, list[float]]
) -> Figure:
    ours, theirs = summaries["fusewire"], summaries[peer]
    return Figure(
        name=name,
        what=f"fetch of a scalar, against {against}",
        value=ours.median,
        unit="µs",
        limit=limit,
        peer=Peer(against, theirs.median, ours.median / theirs.median),
        spread=ours.spread,
        notes=(f"90 % of the peer's within {theirs.spread.high:.0f} µs",),
        raw={"fusewire": raw["fusewire"], peer: raw[peer]},
    )


ROUND_TRIP = Scenario(("fetch_scalar", "fetch_scalar_threads"), _measure)
