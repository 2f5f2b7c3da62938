"""An integer that grows by the same step in each iteration of a loop: the start of a slice, for one."""

from __future__ import annotations

from typing import Self


class SteppedInteger(int):
    """Has its own value in the first iteration of a loop, and `step` more in each later one."""

    step: int
    iterations: int

    def __new__(cls, first: int, step: int, iterations: int) -> Self:
        self = super().__new__(cls, first)
        self.step, self.iterations = step, iterations
        return self

    def plus(self, addend: int) -> Self:
        """Returns the integer that is so much larger in each iteration."""
        return type(self)(self + addend, self.step, self.iterations)

    def is_within(self, least: int, most: int) -> bool:
        """Returns whether the integer is at least `least` and at most `most` in all iterations."""
        last = self + self.step * (self.iterations - 1)
        return least <= min(self, last) and max(self, last) <= most
