"""Gives every computed NaN the same bits: positive, quiet and without payload.

The bits of a NaN that arithmetic returns depend on the processor, and on the order of operands in its instruction. A
NaN that is only moved or selected keeps its bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_BLOCK = 1 << 14  # elements that are tested at once


@np.errstate(invalid="ignore")  # signalling NaNs raise this flag
def settle(computed: Any) -> Any:
    """Replaces every NaN in the array by the one computed NaN; returns the array.

    NumPy has just computed the array, so nobody else holds it, and it is contiguous in some order of its axes.
    """
    values = computed.ravel(order="K")
    for first in range(0, values.size, _BLOCK):
        block = values[first : first + _BLOCK]
        is_nan = block != block  # noqa: PLR0124 - NaN
        if np.count_nonzero(is_nan):
            block[is_nan] = np.nan
    return computed
