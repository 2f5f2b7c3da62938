"""Measures a microbenchmark in a fresh process, so that no microbenchmark affects the interpreter of another."""

from __future__ import annotations

from multiprocessing.connection import Connection

from loadtests.measuring.figure import Figure
from loadtests.measuring.workers import Worker, answer_commands
from loadtests.microbenchmarks.catalogue import choose
from loadtests.system.context import Context

_DEADLINE_S = 300.0


def measure_in_process(backend: str, names: tuple[str, ...]) -> tuple[Figure, ...]:
    """Returns the figures of the microbenchmark whose figures have these names. Raises what measuring it raises."""
    with Worker(_serve, backend, names) as worker:
        worker.tell("measure")
        figures: tuple[Figure, ...] = worker.answer(_DEADLINE_S)
    return figures


def _serve(connection: Connection, backend: str, names: tuple[str, ...]) -> None:
    (microbenchmark,) = choose(backend, frozenset(names))
    answer_commands(connection, {"measure": lambda: microbenchmark.measure(Context(backend))})
