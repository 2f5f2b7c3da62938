"""Says how each reduction makes one element from many, as data: what it starts from, and how two results become one."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from math import inf

import numpy as np

from fusewire_protos.ops.dtypes import DType


class Extreme(Enum):
    """A value that each dtype has of its own."""

    LEAST = "least"  # of floats, −∞
    GREATEST = "greatest"  # of floats, ∞


@dataclass(frozen=True)
class Reduction:
    """How a reduction makes one element from many.

    A partial result starts from `identity`. `combine` names the pointwise op that makes one partial result of two. It
    computes in the accumulator of the dtype that the reduction computes in (see `DType.accumulator`). The last partial
    result is the result, rounded once to its dtype.

    `position_of` is the reduction to the element whose position this one gives, None if it gives no position. Then
    `combine` names the comparison of an element with the best one before. Of equal elements the first is the best one,
    and NaN is better than all numbers.

    A reduction that computes something of each element first, or of its result, is a composite op.
    """

    name: str
    identity: int | Extreme
    combine: str
    position_of: Reduction | None = None

    @property
    def takes_nothing(self) -> bool:
        """Returns whether an array may be reduced along axes without elements. Then the result is the identity."""
        return not isinstance(self.identity, Extreme)

    @property
    def of_nothing(self) -> int:
        """Returns what a segment without elements gives: the identity, or 0 if the dtypes have different ones."""
        return 0 if isinstance(self.identity, Extreme) else self.identity

    def identity_in(self, dtype: DType) -> int | float:
        """Returns the identity as a number of `dtype`."""
        if not isinstance(self.identity, Extreme):
            return self.identity
        is_least = self.identity is Extreme.LEAST
        if dtype.is_floating:
            return -inf if is_least else inf
        if dtype.is_boolean:
            return int(not is_least)
        bounds = np.iinfo(dtype.name)
        return int(bounds.min if is_least else bounds.max)


SUM = Reduction("sum", 0, "add")
PROD = Reduction("prod", 1, "multiply")
MIN = Reduction("min", Extreme.GREATEST, "minimum")
MAX = Reduction("max", Extreme.LEAST, "maximum")
ANY = Reduction("any", 0, "logical_or")
ALL = Reduction("all", 1, "logical_and")
ARGMIN = Reduction("argmin", MIN.identity, "less", position_of=MIN)
ARGMAX = Reduction("argmax", MAX.identity, "greater", position_of=MAX)
