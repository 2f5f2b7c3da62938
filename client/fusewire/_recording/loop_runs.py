"""Finds the runs of a loop. A run is the bodies from one start of the user's loop to the next start.

If a function loops 20 times and is called again and again, its ops look like one endless loop, and each call is a *run*
of 20 bodies. Signatures do not show where a run ends. But a run ends before a body that takes a value which the body
before did not make. A run also ends behind a body if the user keeps a result of this body that the user drops from
most other bodies. Pieces that end with a run have few different structures, and the server stores only the results that
the user keeps. If runs are short and of unequal lengths, pieces that end with a run would be too short. Pieces are then
cut as if there were no runs.
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

_KNOWN_ENDS = 5  # how many ends of runs must be known to predict the next end
_SHORT_RUN_OPS = 128  # to cut shorter runs into pieces costs more than to run a new program op by op


class Kept(NamedTuple):
    """The results of a piece that the user keeps. A piece consists of equal parts, such as bodies or runs.

    A result that the user keeps of at least half of the parts is in `of_most`, any other kept result in `of_few`.
    """

    of_most: tuple[int, ...]  # op indices within a part, ascending
    of_few: tuple[int, ...]  # op indices of the other kept results, ascending
    parts_of_few: tuple[int, ...]  # indices of the parts with a result in `of_few`, ascending, without the last part


_NOTHING_KEPT = Kept((), (), ())


def kept_of(kept: Sequence[int], part_ops: int, parts: int) -> Kept:
    """Sorts the kept results of a piece of `parts` equal parts by the number of parts of which they are kept.

    `kept` are op indices in the piece. A result that is kept only of the last part does not count, because the user's
    variable holds it until the next part is recorded.
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
    """Returns the ends of runs within a piece, in ops from the beginning of the piece, ascending.

    The end of the piece is not among them. `key` is the key of the piece's structure.
    """
    anew = _beginning_anew(key, bodies)
    if not kept.parts_of_few:
        return anew
    body_ops = _ops_in(np.frombuffer(key, np.int64)) // bodies
    return tuple(sorted({*anew, *((body + 1) * body_ops for body in kept.parts_of_few)}))


@lru_cache(maxsize=64)
def _beginning_anew(key: bytes, bodies: int) -> tuple[int, ...]:
    """Returns the indices of the ops of a structure with which a run begins.

    Mostly such an op is the first op of a body. This body takes another value where the body before takes a value that
    its own predecessor made. If the body itself made that other value, the run begins within the body. The second body
    of a piece never begins a run here, because the first body takes values from outside the piece in any case.
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
    """Finds the lengths of a loop's runs from the ends that are known so far."""

    def __init__(self) -> None:
        self._ends = deque([0], _KNOWN_ENDS)  # in ops since the loop began

    def note(self, ends: Iterable[int]) -> None:
        """Notes the ends of runs, in ops since the loop began, ascending. Some of them may have been noted before."""
        self._ends.extend([end for end in ends if end > self._ends[-1]])

    @property
    def equal_ops(self) -> int | None:
        """Returns how many ops each run has, or None until enough ends are known.

        Some ends are not seen, so this is the greatest common divisor of the distances between known ends.
        """
        return gcd(*[end - begin for begin, end in pairwise(self._ends)]) if self._are_known else None

    @property
    def are_short(self) -> bool:
        """Returns whether the last runs had fewer than 128 ops on average."""
        return self._are_known and self._ends[-1] - self._ends[0] < _SHORT_RUN_OPS * (_KNOWN_ENDS - 1)

    @property
    def _are_known(self) -> bool:
        return len(self._ends) == _KNOWN_ENDS
