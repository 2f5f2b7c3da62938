"""Measures training steps of PyTorch on the device "fusewire", beside every way to train the nets on this machine.

One client trains each of four small nets: op by op, and by `fusewire.torch.step`. Then fifteen processes train the
first of them at once, on Fusewire and then locally. The loss is read every hundred steps. A net's losses are compared
with those of its local training before it is timed.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from loadtests.measuring.errors import NotMeasured, WrongResult
from loadtests.measuring.figure import Figure, Peer
from loadtests.measuring.timing import summarise, take_turns
from loadtests.measuring.workers import Fleet, Worker
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.peers.pytorch.training import COMPILED, EAGER, RECORDED, REDUCED, REMOTE, serve
from loadtests.system.context import Context
from loadtests.system.service import Service

NETS = ("mlp", "gpt", "cnn", "lstm")
_OURS = {EAGER: "op by op", RECORDED: "by fusewire.torch.step"}
_CHECKED_STEPS = 50
_MOST_DIFFERENCE = 1e-4  # of two losses, relatively
_FIRST_DEADLINE_S = 120.0  # the first steps import PyTorch, and compile
_PROCESSES = 15


class Sizes(NamedTuple):
    """How much is measured."""

    warming_steps: int = 300
    steps: int = 300
    turns: int = 5
    processes: int = _PROCESSES


def _measure(context: Context) -> Iterator[Figure]:
    local = "cuda" if context.backend == "cuda" else "cpu"
    return measured(context, local, (EAGER, COMPILED, REDUCED), NETS, Sizes())


def measured(
    context: Context, local: str, local_ways: tuple[str, ...], nets: tuple[str, ...], sizes: Sizes
) -> Iterator[Figure]:
    """Yields the figures of some nets, beside these ways of the device `local`, then those of many processes.

    Raises WrongResult if losses differ, NotMeasured without PyTorch.
    """
    with context.service() as service:
        with Worker(serve, REMOTE, service.target) as ours, Worker(serve, local) as theirs:
            for net in nets:
                yield from _of_net(service, ours, theirs, local_ways, net, sizes)
        yield from _of_processes(service, local, nets[0], sizes)


def _of_net(
    service: Service, ours: Worker, theirs: Worker, local_ways: tuple[str, ...], net: str, sizes: Sizes
) -> Iterator[Figure]:
    there, skipped = _checked_ways(theirs, local_ways, net)
    for way in _OURS:
        check_losses(net, way, _losses(ours, net, way), there[EAGER])
        ours.ask("step_us", net, way, sizes.warming_steps)
        service.wait_until_planned()
        ours.ask("step_us", net, way, sizes.warming_steps)
    times_us = take_turns(
        sizes.turns,
        {way: lambda way=way: [ours.ask("step_us", net, way, sizes.steps)] for way in _OURS}
        | {f"local {way}": lambda way=way: [theirs.ask("step_us", net, way, sizes.steps)] for way in there},
    )
    local_us = {way: summarise(times_us[f"local {way}"]).median for way in there}
    fastest = min(local_us, key=lambda way: local_us[way])
    for way, what in _OURS.items():
        value = summarise(times_us[way])
        yield Figure(
            name=_name(net, way),
            what=f"a training step of {net} {what}, the loss read each 100 steps",
            value=value.median,
            unit="µs",
            peer=Peer(f"local {fastest}", local_us[fastest], value.median / local_us[fastest]),
            spread=value.spread,
            notes=(", ".join(f"local {name} {time_us:.0f} µs" for name, time_us in local_us.items()), *skipped),
            raw=times_us,
        )


def _checked_ways(theirs: Worker, ways: tuple[str, ...], net: str) -> tuple[Mapping[str, list[float]], tuple[str, ...]]:
    """Returns the losses of each way to train locally, and why the others are left out."""
    found: dict[str, list[float]] = {EAGER: _losses(theirs, net, EAGER)}
    skipped = []
    for way in ways:
        try:
            losses = found.get(way) or _losses(theirs, net, way)
            check_losses(net, f"local {way}", losses, found[EAGER])
            theirs.ask("step_us", net, way, _CHECKED_STEPS)
            found[way] = losses
        except NotMeasured as reason:
            skipped.append(f"skipped: {way}: {reason}")
    return found, tuple(skipped)


def _losses(worker: Worker, net: str, way: str) -> list[float]:
    worker.tell("losses", net, way, _CHECKED_STEPS)
    found: list[float] = worker.answer(_FIRST_DEADLINE_S)
    return found


def check_losses(net: str, way: str, found: list[float], expected: list[float]) -> None:
    """Raises WrongResult if a loss differs."""
    for step, (loss, wanted) in enumerate(zip(found, expected, strict=True)):
        if not abs(loss - wanted) <= _MOST_DIFFERENCE * abs(wanted):
            raise WrongResult(f"the loss of {net} {way} is {loss} at step {step}, and should be {wanted}")


def _of_processes(service: Service, local: str, net: str, sizes: Sizes) -> Iterator[Figure]:
    """Yields the steps a second of many processes in all, op by op and recorded, beside as many local ones."""
    with Fleet(serve, [(local,)] * sizes.processes) as fleet:
        there = _steps_a_s(fleet, net, EAGER, sizes)
    with Fleet(serve, [(REMOTE, service.target)] * sizes.processes) as fleet:
        for way, what in _OURS.items():
            here = _steps_a_s(fleet, net, way, sizes)
            value, peer = summarise(here), summarise(there)
            yield Figure(
                name=_name("clients", way),
                what=f"{sizes.processes} processes train {net} {what}: steps/s in all",
                value=value.median,
                unit="/s",
                peer=Peer(f"{sizes.processes} local processes", peer.median, value.median / peer.median),
                spread=value.spread,
                raw={"fusewire": here, "local": there},
            )


def _steps_a_s(fleet: Fleet, net: str, way: str, sizes: Sizes) -> list[float]:
    fleet.tell("losses", net, way, _CHECKED_STEPS)
    fleet.answers(_FIRST_DEADLINE_S)
    fleet.ask("step_us", net, way, sizes.warming_steps)
    return [sum(1e6 / time_us for time_us in fleet.ask("step_us", net, way, sizes.steps)) for _ in range(sizes.turns)]


def _name(of: str, way: str) -> str:
    return f"train_{of}" if way == EAGER else f"train_{of}_step"


TRAINING = Microbenchmark(tuple(_name(of, way) for of in (*NETS, "clients") for way in _OURS), _measure)
