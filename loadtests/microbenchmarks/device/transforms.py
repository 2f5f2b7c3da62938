"""Measures one large Fourier transform, against NumPy's on a processor and CuPy's on a GPU.

Both record or call the transform of complex64 numbers that are on the device, and wait for one element of it. So
Fusewire's time has a round trip in it, which is measured beside it by a read of one op.
"""

from __future__ import annotations

from itertools import count
from typing import Any

import numpy as np

import fusewire as fw
from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.timing import elapsed_ns, summarise, take_turns
from loadtests.measuring.workers import Worker
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.peers import transforms
from loadtests.system.context import Context
from loadtests.workloads.loops import check_close
from loadtests.workloads.transforms import POINTS, element_in, numbers

_TURNS = 15


def _measure(context: Context) -> tuple[Figure, ...]:
    return (measured(context, POINTS, _TURNS),)


def measured(context: Context, points: int, turns: int) -> Figure:
    """Returns the figure of a transform of so many points. Raises WrongResult if it differs from the peer's."""
    library, module = transforms.LIBRARIES[context.backend]
    with context.session() as (_, session), Worker(transforms.serve, module, points) as peer:
        given = session.array(numbers(points))
        found = fw.fft.fft(given)[:8].numpy()
        expected = np.asarray(peer.ask("result"))
        check_close(found.view(np.float32), expected.astype(np.complex64).view(np.float32), "fft", 1e-2)
        zero, numbered = session.array(np.float32(0)), count(1)
        ways = {
            "fusewire": lambda: [elapsed_ns(lambda: element_in(fw, given)) / 1e6],
            library: lambda: [peer.ask("run_ns") / 1e6],
            "round trip": lambda: [elapsed_ns(lambda: _read_one(zero, next(numbered))) / 1e6],
        }
        take_turns(2, ways)
        times_ms = take_turns(turns, ways)
    return _figure(points, library, times_ms)


def _read_one(zero: Any, number: int) -> None:
    (zero + float(number)).numpy()


def _figure(points: int, library: str, times_ms: dict[str, list[float]]) -> Figure:
    ours, theirs, round_trip = [summarise(times_ms[name]) for name in ("fusewire", library, "round trip")]
    return Figure(
        name="fft",
        what=f"an fft of {points:,} complex64 numbers, until one element is read",
        value=ours.median,
        unit="ms",
        peer=Peer(library, theirs.median, ours.median / theirs.median),
        spread=ours.spread,
        notes=(f"a round trip for one op takes {round_trip.median:.2f} ms",),
        raw=times_ms,
    )


TRANSFORMS = Microbenchmark(("fft",), _measure)
