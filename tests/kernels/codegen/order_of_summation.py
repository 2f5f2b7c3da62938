"""The order in which a reduction combines its elements, in plain NumPy."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from fusewire_kernels.ops.order import CHUNK, LANES

Array = npt.NDArray[Any]


def reduced(values: Array, combine: Callable[[Array, Array], Array], identity: Any, chunk: int = CHUNK) -> Array:
    """The elements along the last axis combined in the one order: lanes, tree, then the chunks likewise."""
    extent = values.shape[-1]
    parts = [_of_chunk(values[..., begin : begin + chunk], combine, identity) for begin in range(0, extent, chunk)]
    if len(parts) <= 1:
        return parts[0] if parts else np.full(values.shape[:-1], identity, values.dtype)
    return reduced(np.stack(parts, axis=-1), combine, identity, chunk)


def _of_chunk(values: Array, combine: Callable[[Array, Array], Array], identity: Any) -> Array:
    lanes = np.full((*values.shape[:-1], LANES), identity, values.dtype)
    for begin in range(0, values.shape[-1], LANES):
        elements = values[..., begin : begin + LANES]
        width = elements.shape[-1]
        lanes[..., :width] = combine(lanes[..., :width], elements)
    offset = LANES // 2
    while offset > 0:
        lanes = combine(lanes[..., :offset], lanes[..., offset : 2 * offset])
        offset //= 2
    return np.asarray(lanes[..., 0])
