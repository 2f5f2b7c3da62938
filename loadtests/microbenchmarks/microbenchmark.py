"""A microbenchmark: a way to measure one or more figures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from loadtests.measuring.figure import Figure
from loadtests.system.context import Context


@dataclass(frozen=True)
class Microbenchmark:
    """`names` lists the figures in the order in which `measure` returns them."""

    names: tuple[str, ...]
    measure: Callable[[Context], tuple[Figure, ...]]
