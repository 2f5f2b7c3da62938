"""Measures loops as `fori_loop`, beside the ways in which users would run them on this machine.

`pointwise_fori` is a loop of three pointwise ops on a million float32. On a GPU only torch runs beside it, op by op and
as a replayed graph. The steps of `gated_fori` and `normed_fori` have parts that wait for one another: products whose
operands other products compute, and a sum. All local libraries run beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.timing import elapsed_ns, summarise, take_turns
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.peers.local_peers import LOCAL_PEERS, Checked, LocalPeers
from loadtests.peers.pytorch.graph import GRAPH_STEPS
from loadtests.system.context import Context, upload
from loadtests.system.remote_loop import as_fori_loop
from loadtests.system.service import Service
from loadtests.workloads.loops import (
    DAMPED_OPS,
    Loop,
    check_close,
    draw_damped,
    first_element,
    result_in_numpy,
    run_damped,
)
from loadtests.workloads.staged import GATED_OPS, NORMED_OPS, draw_gated, draw_normed, run_gated, run_normed

_SEED = 7
_ELEMENTS = 1 << 20
_HIDDEN = 256
_TURNS = 5


class _Measured(NamedTuple):
    """A figure: its loop, what is said of it, and how many steps a call has, by backend."""

    what: str
    loop: Loop
    steps: Mapping[str, int]


def _measure_pointwise(context: Context) -> Iterator[Figure]:
    loop = Loop(draw_damped(_ELEMENTS, _SEED), run_damped, first_element)
    what = f"{DAMPED_OPS} pointwise ops on 1 M float32"
    figures = {"pointwise_fori": _Measured(what, loop, {"cpu": 256, "cuda": 10_000})}
    yield from _measure(context, figures, libraries=1)


def _measure_staged(context: Context) -> Iterator[Figure]:
    steps = {"cpu": 2_000, "cuda": 20_000}
    gated = Loop(draw_gated(_HIDDEN, _SEED), run_gated)
    normed = Loop(draw_normed(_HIDDEN, _SEED), run_normed)
    figures = {
        "gated_fori": _Measured(f"gated units of {GATED_OPS} ops, 3 of them products, B1 H{_HIDDEN}", gated, steps),
        "normed_fori": _Measured(f"a product of H{_HIDDEN} scaled to length 1, {NORMED_OPS} ops", normed, steps),
    }
    yield from _measure(context, figures, libraries=len(LOCAL_PEERS[context.backend]))


def _measure(context: Context, figures: Mapping[str, _Measured], libraries: int) -> Iterator[Figure]:
    loops = {name: figure.loop for name, figure in figures.items()}
    chosen = LOCAL_PEERS[context.backend][:libraries]
    with context.session() as (service, session), LocalPeers(chosen, loops) as peers:
        for name, (what, loop, steps_of) in figures.items():
            expected, steps = result_in_numpy(loop, GRAPH_STEPS), steps_of[context.backend]
            operands = upload(session, loop.operands)
            check_close(as_fori_loop(loop, operands, GRAPH_STEPS).numpy(), expected, what)
            theirs = peers.checked(name, GRAPH_STEPS, expected)
            times_us = _times_us(service, partial(_step_us, loop, operands, steps), theirs)
            yield _figure(name, f"{what}, fori_loop of {steps:,} steps, a step", times_us, theirs.skipped)


def _step_us(loop: Loop, operands: Any, steps: int) -> float:
    return elapsed_ns(lambda: loop.read(as_fori_loop(loop, operands, steps)).numpy()) / 1e3 / steps


def _times_us(service: Service, ours_us: Callable[[], float], theirs: Checked) -> Mapping[str, list[float]]:
    """Returns the times of a step, in turns: Fusewire's, then those of the local ways by name."""
    ways = {"fusewire": partial(_listed, ours_us)}
    ways |= {name: partial(_listed, partial(_us, step_ns)) for name, step_ns in theirs.ways.items()}
    service.warm_up(ours_us)
    service.wait_until_planned()
    take_turns(1, ways)
    return take_turns(_TURNS, ways)


def _listed(measure: Callable[[], float]) -> list[float]:
    return [measure()]


def _us(step_ns: Callable[[], float]) -> float:
    return step_ns() / 1e3


def _figure(name: str, what: str, times_us: Mapping[str, list[float]], skipped: tuple[str, ...]) -> Figure:
    ours = summarise(times_us["fusewire"])
    theirs = [Peer(way, us := summarise(times).median, ours.median / us) for way, times in times_us.items()][1:]
    return Figure(
        name=name,
        what=what,
        value=ours.median,
        unit="µs",
        peer=theirs[0] if theirs else None,
        spread=ours.spread,
        notes=(*(f"{peer.name}: {peer.value:.2f} µs" for peer in theirs[1:]), *skipped),
        raw=times_us,
    )


POINTWISE_FORI = Microbenchmark(("pointwise_fori",), _measure_pointwise)
STAGED_FORI = Microbenchmark(("gated_fori", "normed_fori"), _measure_staged)
