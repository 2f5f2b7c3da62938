"""Where one run of a loop ends and the next begins, which the signatures of its ops do not tell.

A function that loops 20 times, called again and again, records one endless loop whose *runs* are of 20 bodies. A run
ends where the next body takes another value than the one its predecessor made, and where the user keeps a result that
is dropped in most bodies. Pieces that end there have few structures, and store no more than what is kept. Where runs
are short and of any lengths such pieces would be too short: there they go on, as if there were no runs.
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import pairwise
from math import gcd
from typing import NamedTuple

import numpy as np

from fusewire._recording.segments import INSIDE, OUTSIDE, Flags
from fusewire._recording.tape import Integers

_KNOWN_ENDS = 5  # so many tell how long the runs are that follow
_SHORT_RUN_OPS = 128  # to cut shorter runs by bodies takes longer than to run a new program op by op


class Kept(NamedTuple):
    """Of the results that the user holds of a piece, those kept of at least half of its parts, and the others."""

    of_most: tuple[int, ...]  # places in a part, ascending
    of_few: tuple[int, ...]  # places of the others, ascending
    parts_of_few: tuple[int, ...]  # the parts that have one of those, ascending, without the last


_NOTHING_KEPT = Kept((), (), ())


def kept_of(kept: Sequence[int], part_ops: int, parts: int) -> Kept:
    """`kept`: op indices in a piece of equal parts. What is kept of the last part alone does not count.

    A name may well follow the loop one part behind.
    """
    if not kept:
        return _NOTHING_KEPT
    places = [divmod(index, part_ops) for index in kept]
    counts = Counter(place for part, place in places if part < parts - 1)
    of_most = {place for place, count in counts.items() if 2 * count >= parts}
    of_few = counts.keys() - of_most
    parts_of_few = {part for part, place in places if part < parts - 1 and place in of_few}
    return Kept(tuple(sorted(of_most)), tuple(sorted(of_few)), tuple(sorted(parts_of_few)))


def run_ends(key: bytes, bodies: int, kept: Kept) -> tuple[int, ...]:
    """Behind how many ops of a piece of that structure a run ends, but for the end of the piece; ascending."""
    anew = _beginning_anew(key, bodies)
    if not kept.parts_of_few:
        return anew
    body_ops = _ops_in(np.frombuffer(key, np.int64)) // bodies
    return tuple(sorted({*anew, *((body + 1) * body_ops for body in kept.parts_of_few)}))


@lru_cache(maxsize=64)
def _beginning_anew(key: bytes, bodies: int) -> tuple[int, ...]:
    """The ops of a structure with which a run begins: bodies, mostly, that take something else where the body before
    takes what its predecessor made. If it is what the same body has made, the run begins within that body.

    The second body of a piece is never among them: what the first one takes is from outside in any case.
    """
    cells = np.frombuffer(key, np.int64).reshape(bodies, -1)
    body_ops = _ops_in(cells[0])
    before, here = cells[1:-1], cells[2:]
    is_inside = (before >= INSIDE) & (before < OUTSIDE)
    is_other = is_inside & (here != before) & (here != before + body_ops)
    anew = is_other.any(axis=1).nonzero()[0] + 2
    is_of_same_body = is_other & (before - INSIDE >= np.arange(1, bodies - 1).reshape(-1, 1) * body_ops)
    place_of_cell = np.add.accumulate(_is_signature(cells[0])) - 1
    begins = np.where(is_of_same_body, place_of_cell, body_ops).min(axis=1, initial=body_ops) % body_ops
    return tuple((anew * body_ops + begins[anew - 2]).tolist())


def _ops_in(cells: Integers) -> int:
    return int(np.count_nonzero(_is_signature(cells)))


def _is_signature(cells: Integers) -> Flags:
    return (cells >= 0) & (cells < INSIDE)


class Runs:
    """How long a loop's runs are, as their ends become known."""

    def __init__(self) -> None:
        self._ends = deque([0], _KNOWN_ENDS)  # in ops since the loop began

    def note(self, ends: Iterable[int]) -> None:
        """`ends`: in ops since the loop began, ascending, those noted before among them."""
        self._ends.extend([end for end in ends if end > self._ends[-1]])

    @property
    def equal_ops(self) -> int | None:
        """How many ops each run has, once the last ends tell. Of some runs the end is not seen."""
        return gcd(*[end - begin for begin, end in pairwise(self._ends)]) if self._are_known else None

    @property
    def are_short(self) -> bool:
        """Whether the last ones were, on average."""
        return self._are_known and self._ends[-1] - self._ends[0] < _SHORT_RUN_OPS * (_KNOWN_ENDS - 1)

    @property
    def _are_known(self) -> bool:
        return len(self._ends) == _KNOWN_ENDS
