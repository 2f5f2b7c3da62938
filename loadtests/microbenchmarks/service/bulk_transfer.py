"""Measures uploads and downloads of large arrays, against a bare gRPC stream with the same bytes and message size.

The time of an upload ends when one element of the array has been fetched, because the device then has all bytes. A
download fetches an array that the device holds, and its time ends when the caller has the array. The bare stream has
Fusewire's gRPC settings and copies nothing: its messages are made in advance, and received bytes are dropped.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

import fusewire as fw
from loadtests.measuring.errors import WrongResult
from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.timing import elapsed_ns, summarise, take_turns
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.peers.bare_pair import bare_pair
from loadtests.system.context import Context
from loadtests.workloads.loops import Floats

_BYTES = 64 << 20
_CHUNK_BYTES = 1 << 20  # of one message; the server's default
_TURNS = 6


def _measure(context: Context) -> tuple[Figure, ...]:
    data = np.random.default_rng(5).standard_normal(_BYTES // 4, np.float32)
    with context.session() as (_, session), bare_pair(_BYTES, _CHUNK_BYTES) as peer:
        array = session.array(data)
        ways = {
            "upload": lambda: [_rate(_upload_ns(session, data))],
            "bare_upload": lambda: [_rate(peer.ask("upload"))],
            "download": lambda: [_rate(_download_ns(array, data))],
            "bare_download": lambda: [_rate(peer.ask("download"))],
        }
        take_turns(2, ways)
        rates = take_turns(_TURNS, ways)
    return tuple(_figure(direction, rates) for direction in ("upload", "download"))


def _upload_ns(session: fw.Session, data: Floats) -> int:
    last: list[object] = []

    def upload() -> None:
        last.append(session.array(data)[-1].numpy())

    time_ns = elapsed_ns(upload)
    if last != [data[-1]]:
        raise WrongResult(f"the last element of an upload came back as {last} instead of {data[-1]}")
    return time_ns


def _download_ns(array: fw.Array, data: Floats) -> int:
    fetched: list[Floats] = []
    time_ns = elapsed_ns(lambda: fetched.append(array.numpy()))
    if not np.array_equal(fetched[0], data):
        raise WrongResult("64 MiB came back changed")
    return time_ns


def _rate(time_ns: int) -> float:
    return _BYTES / time_ns


def _figure(direction: str, rates: Mapping[str, Sequence[float]]) -> Figure:
    bare = f"bare_{direction}"
    ours, theirs = summarise(rates[direction]), summarise(rates[bare])
    return Figure(
        name=direction,
        what=f"{direction} of 64 MiB",
        value=ours.median,
        unit="GB/s",
        peer=Peer("a bare stream", theirs.median, ours.median / theirs.median),
        spread=ours.spread,
        raw={direction: rates[direction], bare: rates[bare]},
    )


BULK_TRANSFER = Microbenchmark(("upload", "download"), _measure)
