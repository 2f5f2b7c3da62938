"""Work that can stop between two steps, so that a server does other work there. Pure.

A step takes less than a millisecond. Work of few items is a single step.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TypeVar

T = TypeVar("T")
S = TypeVar("S")

# Yields between two steps, and returns the result.
InSteps = Generator[None, None, T]


def finished(steps: InSteps[T]) -> T:
    """Does all steps, and returns the result."""
    try:
        while True:
            next(steps)
    except StopIteration as end:
        result: T = end.value
        return result


def mapped(function: Callable[[S], T], items: Sequence[S], items_a_step: int) -> InSteps[list[T]]:
    """Returns the results of a function for all items."""
    results: list[T] = []
    for first in range(0, len(items), items_a_step):
        if first:
            yield
        results += map(function, items[first : first + items_a_step])
    return results
