"""Measures the recurrent loop of one client, beside every way in which its user would run it on this machine.

The loop is recorded inline, op by op, and it is recorded once, as `fori_loop`. The client and the local libraries have
processes of their own. One after another they run the loop, so that each is alone while it is timed. Notes tell the
time of every local library, and whether Fusewire is ahead of them all.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.timing import summarise, take_turns
from loadtests.measuring.workers import Worker
from loadtests.microbenchmarks.loops import rnn_client
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.peers.local_peers import LOCAL_PEERS, LocalPeers
from loadtests.system.context import Context
from loadtests.system.service import Service
from loadtests.workloads.loops import RNN_OPS, Loop, draw_rnn, result_in_numpy, run_rnn

_SEED = 11
_STEPS = 10_000
_CHECKED_STEPS = 200
_TURNS = 7


class _Shape(NamedTuple):
    batch: int
    hidden: int

    @property
    def name(self) -> str:
        return f"b{self.batch}_h{self.hidden}"


class _Ours(NamedTuple):
    """A way to run the loop on Fusewire: the beginning of its figure's name, and what is said of it."""

    figure: str
    what: str


_INLINE = _Ours("rnn", "inline")
_LOOP = _Ours("rnn_fori", "as fori_loop")
_WAYS = (_INLINE, _LOOP)


class _Measured(NamedTuple):
    """Times of an op in µs: of each way on Fusewire by its figure, of the device alone, and of the local libraries."""

    ours_us: Mapping[str, list[float]]
    device_us: Mapping[str, float]
    theirs_us: Mapping[str, list[float]]
    skipped: tuple[str, ...]


def _measure(context: Context, shapes: tuple[_Shape, ...]) -> Iterator[Figure]:
    loops = {shape.name: Loop(draw_rnn(*shape, seed=_SEED), run_rnn) for shape in shapes}
    with LocalPeers(LOCAL_PEERS[context.backend], loops) as peers, context.service() as service:
        for shape in shapes:
            measured = _measure_shape(service, peers, shape, loops[shape.name])
            yield from (_figure(shape, ours, measured) for ours in _WAYS)


def _measure_shape(service: Service, peers: LocalPeers, shape: _Shape, loop: Loop) -> _Measured:
    theirs = peers.checked(shape.name, _CHECKED_STEPS, result_in_numpy(loop, _CHECKED_STEPS))
    with Worker(rnn_client.serve, service.target, *shape, _SEED) as client:
        ours: dict[str, Callable[[], float]] = {
            _INLINE.figure: lambda: client.ask("run", _STEPS),
            _LOOP.figure: lambda: client.ask("run_loop", _STEPS).length_ns / 1e3 / (_STEPS * RNN_OPS),
        }
        client.ask("check")
        for run in ours.values():
            service.warm_up(run)
        service.wait_until_planned()
        device_us = {name: _device_us(service, run) for name, run in ours.items()}
        ways = {name: partial(_listed, run) for name, run in ours.items()}
        ways |= {name: partial(_us_an_op, step_ns) for name, step_ns in theirs.ways.items()}
        times_us = take_turns(_TURNS, ways)
    return _Measured(
        {name: times_us[name] for name in ours},
        device_us,
        {name: times_us[name] for name in theirs.ways},
        theirs.skipped,
    )


def _device_us(service: Service, run: Callable[[], float]) -> float:
    """Returns the time that the device takes for an op, as the server counts it, in µs."""
    before = service.count()
    run()
    spent = service.count().since(before)
    return spent.device_ns / 1e3 / spent.ops


def _listed(run: Callable[[], float]) -> list[float]:
    return [run()]


def _us_an_op(step_ns: Callable[[], float]) -> list[float]:
    return [step_ns() / 1e3 / RNN_OPS]


def _figure(shape: _Shape, ours: _Ours, measured: _Measured) -> Figure:
    times_us = measured.ours_us[ours.figure]
    value = summarise(times_us)
    local_us = {name: summarise(times).median for name, times in measured.theirs_us.items()}
    return Figure(
        name=f"{ours.figure}_{shape.name}",
        what=f"RNN loop B{shape.batch} H{shape.hidden}, one client {ours.what}, an op",
        value=value.median,
        unit="µs",
        peer=_peer(value.median, local_us),
        spread=value.spread,
        notes=(
            f"{measured.device_us[ours.figure]:.2f} µs of it on the device",
            *_standing(value.median, local_us),
            *measured.skipped,
        ),
        raw={"fusewire": times_us, **measured.theirs_us},
    )


def _peer(ours_us: float, local_us: Mapping[str, float]) -> Peer | None:
    """Returns the library that runs the loop op by op, which comes first. Returns None if it was skipped."""
    first = next(iter(local_us.items()), None)
    return None if first is None else Peer(first[0], first[1], ours_us / first[1])


def _standing(ours_us: float, local_us: Mapping[str, float]) -> Iterator[str]:
    """Yields the times of several local ways, and whether Fusewire is ahead of them all."""
    if len(local_us) < 2:
        return
    yield ", ".join(f"{name} {time_us:.2f} µs" for name, time_us in local_us.items())
    faster = [name for name, time_us in local_us.items() if time_us < ours_us]
    yield f"behind {', '.join(faster)}" if faster else f"ahead of all {len(local_us)} local ways"


def _microbenchmark(*shapes: _Shape) -> Microbenchmark:
    names = tuple(f"{ours.figure}_{shape.name}" for shape in shapes for ours in _WAYS)
    return Microbenchmark(names, partial(_measure, shapes=shapes))


RNN_SMALL = _microbenchmark(_Shape(1, 256))
RNN = _microbenchmark(_Shape(1, 256), _Shape(64, 256), _Shape(64, 1024))
