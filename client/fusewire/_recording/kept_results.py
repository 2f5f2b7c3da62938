"""Decides which results of a loop's iterations are kept: none, that of the last iteration, or that of each. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np

from fusewire_protos.frames import MAX_STORED, Kept

_MOST_SPREAD_BYTES = 1 << 20  # of results that are kept of each iteration because the user keeps them of some
_SHORT_OPS = 48  # loops of fewer ops cost more than results that nobody needs


class KeptResults(NamedTuple):
    """The results of a loop that are kept. `ends_at` is the number of iterations behind which the loop is to end."""

    kept: dict[int, Kept]  # by op index within a body; what is not in it is not kept
    dropped: list[int]  # op indices in the loop of results that are kept with others, and that nobody holds
    ends_at: int


def kept_results(live: Sequence[int], ops: int, iterations: int, size_bytes_of: Callable[[int], int]) -> KeptResults:
    """Decides for the results `live`, which are op indices in a loop of `iterations` bodies of `ops` ops.

    If the user keeps a result of most iterations before the last, it is kept of each. If the user keeps it now and
    then, the loop is to end behind the first of these iterations, unless such loops would be short and the results are
    small.
    `size_bytes_of` returns the size of a result by its index in the body.
    """
    body_of, place_of = np.divmod(np.array(live, np.int64), ops)
    early = sorted(set(place_of[body_of < iterations - 1].tolist()))
    last = set(place_of[body_of == iterations - 1].tolist())
    if not early:
        return KeptResults(dict.fromkeys(sorted(last), Kept.LAST), [], iterations)
    most = max(MAX_STORED // (len(early) + len(last)), 1)
    if iterations > most:
        return KeptResults({}, [], most)
    held = set(live)
    are_few = len(set(body_of.tolist())) * _SHORT_OPS <= iterations * ops
    are_large = iterations * sum(map(size_bytes_of, early)) > _MOST_SPREAD_BYTES
    if (are_few or are_large) and not _are_mostly_held(held, early, ops, iterations):
        return KeptResults({}, [], int(body_of.min()) + 1)
    kept = {place: Kept.EACH if place in early else Kept.LAST for place in sorted({*early, *last})}
    every = (body * ops + place for place in early for body in range(iterations))
    return KeptResults(kept, sorted(set(every).difference(held)), iterations)


def _are_mostly_held(held: set[int], early: Iterable[int], ops: int, iterations: int) -> bool:
    counts = [sum(body * ops + place in held for body in range(iterations)) for place in early]
    return 2 * min(counts) >= iterations
