"""Measures a microbenchmark in a fresh process, so that no microbenchmark affects the interpreter of another."""

from __future__ import annotations

from collections.abc import Iterator
from multiprocessing.connection import Connection

from loadtests.measuring.figure import Figure
from loadtests.measuring.workers import Worker, answer_commands
from loadtests.microbenchmarks.catalogue import choose
from loadtests.microbenchmarks.microbenchmark import Microbenchmark
from loadtests.system.context import Context

_DEADLINE_S = 300.0


def measure_in_process(backend: str, names: tuple[str, ...]) -> Iterator[Figure]:
    """Yields the figures of the microbenchmark whose figures have these names, each as soon as it is measured.

    Raises what measuring raises.
    """
    with Worker(_serve, backend, names) as worker:
        worker.tell("next_figure")
        while (figure := worker.answer(_DEADLINE_S)) is not None:
            yield figure
            worker.tell("next_figure")


def _serve(connection: Connection, backend: str, names: tuple[str, ...]) -> None:
    (microbenchmark,) = choose(backend, frozenset(names))
    answer_commands(connection, {"next_figure": _figures(microbenchmark, backend).__next__})


def _figures(microbenchmark: Microbenchmark, backend: str) -> Iterator[Figure | None]:
    """Yields the figures, and at last None."""
    yield from microbenchmark.measure(Context(backend))
    yield None
