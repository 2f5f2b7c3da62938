"""Which NaN a NaN is: a computed one has one pattern in its dtype, positive, quiet and without payload.

Which of them arithmetic gives depends on the processor, and on which operand stands first in its instruction. What is
only moved or selected keeps the bits that it has.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_BLOCK = 1 << 14  # elements that are looked at together


@np.errstate(invalid="ignore")  # of signalling NaNs
def settle(computed: Any) -> Any:
    """The array, in which the one NaN has taken the place of any other.

    It has just been computed by NumPy: nobody else holds it, and it lies in one piece, whatever the order of its axes.
    """
    values = computed.ravel(order="K")
    for first in range(0, values.size, _BLOCK):
        block = values[first : first + _BLOCK]
        is_nan = block != block  # noqa: PLR0124 - NaN
        if np.count_nonzero(is_nan):
            block[is_nan] = np.nan
    return computed
