"""What the rule of an op's derivative consists of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from fusewire._api.array import Array
from fusewire._api.gradients.use import Use

Pull = Callable[[Any, Use], Any]


@dataclass(frozen=True)
class Rule:
    """Makes cotangents of the operands from that of the result.

    `pulls` has a function for each operand, or None for one that is not differentiated: places, a mask, a number such
    as an epsilon. The function takes the cotangent of the result, and returns one of the shape of the operand, or of a
    shape to which the operand broadcasts: then the elements that come from one are added up.

    `operands` and `result` say of which arrays the functions take the values. Others are not kept. `operands` are all,
    or for each operand the places of those that its function takes.

    `adding` is there in place of `pulls` if an op takes out elements of its first operand. It adds to the cotangent
    that this operand has from other uses, so that many small parts of a large array cost no large sums. `pull_each` is
    there if the op takes any number of operands: it gets the place of the operand too.
    """

    pulls: tuple[Pull | None, ...] = ()
    operands: bool | tuple[tuple[int, ...], ...] = False
    result: bool = False
    adding: Callable[[Any, Use, Array], Array] | None = None
    pull_each: Callable[[Any, Use, int], Any] | None = None

    def takes(self, place: int) -> bool:
        """Returns whether the operand at a place is differentiated."""
        if self.adding is not None:
            return place == 0
        return self.pull_each is not None or self.pulls[place] is not None

    def values(self, place: int, count: int) -> tuple[int, ...]:
        """Returns which of `count` operands the function for the one at a place takes the values of."""
        if isinstance(self.operands, tuple):
            return self.operands[place]
        return tuple(range(count)) if self.operands else ()

    def pull(self, cotangent: Array, use: Use, place: int) -> Any:
        """Returns the cotangent of the operand at a place."""
        if self.pull_each is not None:
            return self.pull_each(cotangent, use, place)
        function = self.pulls[place]
        assert function is not None, f"operand {place} of {use.signature.op.name} is not differentiated"
        return function(cotangent, use)
