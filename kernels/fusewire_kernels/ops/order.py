"""The one order in which every reduction combines its elements: its numbers, and the order in plain NumPy. Pure.

The prelude `order.h` states the order, and has the same numbers. A chunk is a part of the elements that are reduced to
one result. The results of the chunks are reduced as elements are, so a reduction may also be done in two steps.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

CHUNK = 1024  # neighbouring elements of a chunk
LANES = 32  # partial results of a chunk
SORTED_RUN = 4096  # elements that a block of threads of a GPU sorts; it changes no result

Combine = Callable[[Any, Any], Any]


def reduced(library: Any, values: Any, combine: Combine, identity: Any, chunk: int = CHUNK) -> Any:
    """The elements along the last axis, combined in the one order: lanes, tree, then the results of the chunks."""
    while True:
        values = _of_chunks(library, values, combine, identity, chunk)
        if values.shape[-1] == 1:
            return values[..., 0]


def _of_chunks(library: Any, values: Any, combine: Combine, identity: Any, chunk: int) -> Any:
    """The result of each chunk along the last axis. A last chunk that is not full is filled up with the identity."""
    chunks = max(-(-values.shape[-1] // chunk), 1)
    missing = library.full((*values.shape[:-1], chunks * chunk - values.shape[-1]), identity, dtype=values.dtype)
    parts = library.concatenate([values, missing], axis=-1).reshape((*values.shape[:-1], chunks, -1, LANES))
    lanes = library.full((*values.shape[:-1], chunks, LANES), identity, dtype=values.dtype)
    for step in range(parts.shape[-2]):
        lanes = combine(lanes, parts[..., step, :])
    offset = LANES // 2
    while offset > 0:
        lanes = combine(lanes[..., :offset], lanes[..., offset : 2 * offset])
        offset //= 2
    return lanes[..., 0]
