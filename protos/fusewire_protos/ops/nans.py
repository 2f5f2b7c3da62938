"""Gives every computed NaN the same bits: positive, quiet and without payload.

Without this module, the bits of a result could depend on the processor. Processors differ in the bits of the NaN that
arithmetic returns. On one processor, the bits also depend on the order of the operands in the instruction.

A NaN that an op only moves or selects keeps its bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

_BLOCK = 1 << 14  # elements that are tested at once


@np.errstate(invalid="ignore")  # comparing a signalling NaN would make NumPy warn
def settle(computed: Any) -> Any:
    """Replaces every NaN in the array by the NaN that all computed NaNs share, and returns the array.

    The array is changed in place. This is safe because NumPy has just computed the array, so no other code holds it.
    For the same reason the array is contiguous in some order of its axes. So `values` is a view of the array and no
    copy.
    """
    values = computed.ravel(order="K")
    for first in range(0, values.size, _BLOCK):
        block = values[first : first + _BLOCK]
        is_nan = block != block  # noqa: PLR0124 - NaN
        if np.count_nonzero(is_nan):
            block[is_nan] = np.nan
    return computed
