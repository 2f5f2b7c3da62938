"""What a piece of a tape becomes: a structure, and the deaths that travel with it.

A value is *live* if the user still holds it or an op recorded behind the piece takes it. All others of the piece's
results are placeholders: they never become buffers and their deaths need no word.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire._recording.tape import FIRST_HANDLE, Integers
from fusewire_protos.frames import FIRST_UPLOAD, HANDLES_PER_RECORDER

# How operands read in a structure: signatures are small, values are all the same.
INSIDE = FIRST_HANDLE  # + the index of the op whose result it is
OUTSIDE = 2 * FIRST_HANDLE  # + the input's position
VALUE = -1
_FEW = 16  # so many handles are faster looked for one by one
_NO_HANDLES: Integers = np.empty(0, np.int64)

Flags = npt.NDArray[np.bool_]


class Structure(NamedTuple):
    """What a piece shares with all pieces of the same form."""

    key: bytes  # equal for equal structures within this process
    inputs: list[int]  # handles, numbered by first use


class Pattern:
    """A structure met before, and how to tell quickly whether a piece has it: nothing per op runs in Python.

    Each integer of a piece that has it is the sum of one that all such pieces share and of one that differs from
    piece to piece: zero, the number of the first op, the first value, or an input. Many structures never come again, so
    these are worked out when a piece of the same signatures does.
    """

    def __init__(self, structure: Structure) -> None:
        self._key = structure.key
        self._terms: _Terms | None = None

    def match(self, flat: Integers, first: int, ops: int) -> Structure | None:
        """The structure of a piece, if it is this one and can be told quickly."""
        if flat.nbytes != len(self._key):
            return None
        if self._terms is None:
            self._terms = _terms_of(np.frombuffer(self._key, np.int64))
        terms = self._terms
        inputs = flat[terms.first_uses]
        own = np.concatenate(((0, first), inputs, flat[terms.first_value]))
        expected = own.take(terms.own)
        expected += terms.shared
        if expected.tobytes() != flat.tobytes():
            return None
        listed: list[int] = inputs.tolist()
        is_elsewhere = not any(first <= handle < first + ops for handle in listed)
        return Structure(self._key, listed) if is_elsewhere and len(set(listed)) == len(listed) else None


class _Terms(NamedTuple):
    """What the integers of pieces of one structure are the sums of."""

    shared: Integers
    own: Integers  # which of: zero, the number of the first op, each input, the first value
    first_uses: Integers  # where each input stands first
    first_value: Integers  # where it stands, if there is one


def _terms_of(normal: Integers) -> _Terms:
    is_outside = normal >= OUTSIDE
    is_inside = (normal >= INSIDE) & ~is_outside
    is_value = normal < 0
    slots, first_uses = np.unique(normal[is_outside], return_index=True)
    shared = np.where(is_inside, normal - INSIDE, normal)
    shared[is_value] = -np.arange(np.count_nonzero(is_value))  # values are numbered downwards, one by one
    shared[is_outside] = 0
    own = np.zeros(len(normal), np.int64)
    own[is_inside] = 1
    own[is_outside] = 2 + normal[is_outside] - OUTSIDE
    own[is_value] = 2 + len(slots)
    return _Terms(shared, own, is_outside.nonzero()[0][first_uses], is_value.nonzero()[0][:1])


class Liveness(NamedTuple):
    """Which results of a piece are live, and what happens to the handles known to be dead."""

    live: tuple[int, ...]  # op indices
    dying: list[int]  # inputs that nothing takes any more
    freed: list[int]  # handles dead and not concerned with this piece
    waiting: Integers  # dead, and yet taken by an op behind the piece, or born there
    kept: tuple[int, ...]  # op indices of results that the user still holds, and that no op behind the piece takes


def structure_of(flat: Integers, first: int, ops: int) -> Structure:
    """The structure of the piece that begins with op number `first`; `flat` holds its records."""
    relative = flat - first
    is_handle = flat >= FIRST_HANDLE
    is_inside = is_handle & (relative >= 0) & (relative < ops)
    is_outside = is_handle & ~is_inside
    outside = flat[is_outside].tolist()
    inputs = list(dict.fromkeys(outside))
    slots = {handle: OUTSIDE + slot for slot, handle in enumerate(inputs)}
    normal = np.where(is_inside, relative + INSIDE, flat)
    normal[is_outside] = [slots[handle] for handle in outside]
    normal[flat < 0] = VALUE
    return Structure(normal.tobytes(), inputs)


def liveness_of(first: int, ops: int, inputs: Sequence[int], dead: Integers, later: Integers) -> Liveness:
    """`dead`: all handles of the recorder known to be dead and not yet told; `later`: the records behind the piece."""
    is_dead, elsewhere = _part(dead, first, ops)
    live = kept = _places(~is_dead)
    died_but_taken: list[int] = []
    if len(later):
        is_taken, _ = _part(later, first, ops)
        live, kept = _places(~is_dead | is_taken), _places(~(is_dead | is_taken))
        died_but_taken = [first + place for place in _places(is_dead & is_taken)]
    if not len(elsewhere):
        return Liveness(live, [], [], _as_handles(died_but_taken), kept)
    is_born_later = (elsewhere >= first + ops) & (elsewhere < _first_upload(first))
    old = _sort_out(elsewhere[~is_born_later].tolist(), inputs, later)
    waiting = np.concatenate((elsewhere[is_born_later], _as_handles([*died_but_taken, *old.waiting])))
    return Liveness(live, old.dying, old.freed, waiting, kept)


def spread_over_parts(liveness: Liveness, first: int, places: Sequence[int], parts: Sequence[int]) -> Liveness:
    """As if the results at `places` of each part were kept, and dropped where they are not.

    Which parts the user keeps them of may differ from piece to piece; spread, the pieces are all of one program.
    `parts`: the op index with which each begins.
    """
    spread = {start + place for start in parts for place in places}
    dropped = sorted(spread.difference(liveness.live))
    if not dropped:
        return liveness
    live = tuple(sorted(spread.union(liveness.live)))
    return liveness._replace(live=live, freed=[*liveness.freed, *(first + index for index in dropped)])


class _Old(NamedTuple):
    dying: list[int]
    freed: list[int]
    waiting: list[int]


def _sort_out(dead: list[int], inputs: Sequence[int], later: Integers) -> _Old:
    """What becomes of dead handles that were sent before."""
    old = _Old([], [], [])
    if not dead:
        return old
    taken_later = _common(dead, later)
    taken_here = set(inputs)
    for handle in dead:
        if handle in taken_later:
            old.waiting.append(handle)
        elif handle in taken_here:
            old.dying.append(handle)
        else:
            old.freed.append(handle)
    return old


def _common(handles: list[int], others: Integers) -> set[int]:
    """Those that are among the others, which are many: mostly they are too few to make integers of the others."""
    if len(handles) <= _FEW:
        return {handle for handle in handles if (others == handle).any()}
    return set(others.tolist()).intersection(handles)


def _part(handles: Integers, first: int, ops: int) -> tuple[Flags, Integers]:
    """Of each op of a piece whether its result is among `handles`; and those that are none."""
    is_among = np.zeros(ops, bool)
    if not len(handles):
        return is_among, handles
    relative = handles - first
    is_here = relative.view(np.uint64) < ops  # a negative one is large without its sign
    is_among[relative[is_here]] = True
    return is_among, handles[~is_here]


def _places(flags: Flags) -> tuple[int, ...]:
    """Where they are set."""
    return tuple(flags.nonzero()[0].tolist())


def _as_handles(handles: list[int]) -> Integers:
    return np.array(handles, np.int64) if handles else _NO_HANDLES


def _first_upload(number: int) -> int:
    """The first upload's handle in the range of the recorder that minted `number`."""
    return number // HANDLES_PER_RECORDER * HANDLES_PER_RECORDER + FIRST_UPLOAD
