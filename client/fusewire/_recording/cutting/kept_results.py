"""Decides of how many of a loop's last iterations each result is kept. Pure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from fusewire_protos.frames import MAX_STORED

_MOST_SPREAD_BYTES = 1 << 20  # of results that are kept of many iterations because the user keeps them of some
_SHORT_OPS = 48  # loops of fewer ops cost more than results that nobody needs


class KeptResults(NamedTuple):
    """The results of a loop that are kept. `ends_at` is the number of iterations behind which the loop is to end."""

    kept: dict[int, int]  # by op index within a body, of how many of the last iterations; what is not in it is not kept
    dropped: list[int]  # op indices in the loop of results that are kept with others, and that nobody holds
    ends_at: int


def kept_results(live: Sequence[int], ops: int, iterations: int, size_bytes_of: Callable[[int], int]) -> KeptResults:
    """Decides for the results `live`, which are op indices in a loop of `iterations` bodies of `ops` ops.

    A result is kept from the first iteration on of which it is live. If the user keeps it now and then from there on,
    the loop is to end behind the first of these iterations, unless such loops would be short and the results are small.
    `size_bytes_of` returns the size of a result by its index in the body.
    """
    if iterations == 1:
        return KeptResults(dict.fromkeys(live, 1), [], 1)
    bodies_of = _bodies_of(live, ops)
    kept = {place: iterations - bodies[0] for place, bodies in sorted(bodies_of.items())}
    if sum(kept.values()) > MAX_STORED:
        return KeptResults({}, [], max(MAX_STORED // len(kept), 1))
    sparse = [place for place, bodies in bodies_of.items() if 2 * len(bodies) < kept[place]]
    if sparse:
        holding = {body for place in sparse for body in bodies_of[place]}
        are_few = len(holding) * _SHORT_OPS <= iterations * ops
        if are_few or sum([kept[place] * size_bytes_of(place) for place in sparse]) > _MOST_SPREAD_BYTES:
            return KeptResults({}, [], min(holding) + 1)
    every = {body * ops + place for place, count in kept.items() for body in range(iterations - count, iterations)}
    return KeptResults(kept, sorted(every.difference(live)), iterations)


def _bodies_of(live: Sequence[int], ops: int) -> dict[int, list[int]]:
    """Returns for each op of the body with live results the iterations of these results, ascending."""
    found: dict[int, list[int]] = {}
    body_of, place_of = np.divmod(np.array(live, np.int64), ops)
    for place, body in zip(place_of.tolist(), body_of.tolist(), strict=True):
        found.setdefault(place, []).append(body)
    return found
