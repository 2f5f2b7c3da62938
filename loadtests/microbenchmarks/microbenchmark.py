"""A microbenchmark: a way to measure one or more figures."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from loadtests.measuring.figure import Figure
from loadtests.system.context import Context


@dataclass(frozen=True)
class Microbenchmark:
    """`names` lists the figures in the order in which `measure` gives them, one after another or all at the end."""

    names: tuple[str, ...]
    measure: Callable[[Context], Iterable[Figure]]
