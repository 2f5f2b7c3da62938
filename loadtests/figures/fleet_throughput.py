"""What fifteen client processes get out of one GPU together: the recurrent loop, each on data of its own.

The rate is that of all their ops from when the first is told to begin until the last has its result: clients that do
not run together share nothing, and the sum of their own rates would count the device several times.
"""

from __future__ import annotations

from functools import partial
from multiprocessing import get_context

from loadtests.context import Context
from loadtests.figure import Figure, Scenario
from loadtests.figures import rnn_client
from loadtests.programs import RNN_OPS
from loadtests.turns import elapsed_ns, summarise
from loadtests.workers import Fleet

_CLIENTS = 15
_HIDDEN = 256
_WARMING_STEPS = 1500
_STEPS = 5000
_TURNS = 3


def _measure(context: Context) -> tuple[Figure, ...]:
    stop = get_context("spawn").Event()
    with context.service() as service:
        arguments = [(service.target, 1, _HIDDEN, seed, stop) for seed in range(_CLIENTS)]
        with Fleet(rnn_client.serve, arguments) as fleet:
            fleet.ask("check")
            service.warm_up(lambda: fleet.ask("run", _WARMING_STEPS))
            before = service.count()
            turns_ns = [elapsed_ns(partial(fleet.ask, "run", _STEPS)) for _ in range(_TURNS)]
            spent = service.count().since(before)
    rates = [_CLIENTS * _STEPS * RNN_OPS * 1e3 / turn_ns for turn_ns in turns_ns]
    summary = summarise(rates)
    return (
        Figure(
            name="fleet",
            what=f"{_CLIENTS} clients, RNN loop B1 H{_HIDDEN}, all together",
            value=summary.median,
            unit="Mops/s",
            spread=summary.spread,
            notes=(
                f"{spent.rows / spent.submissions:.1f} rows a launch",
                f"device thread {spent.device_thread_ns / 1e3 / spent.ops:.2f} µs an op",
            ),
            raw={"Mops_a_second": rates},
        ),
    )


FLEET = Scenario(("fleet",), _measure)
