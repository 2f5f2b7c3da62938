"""Makes a segment of a piece of a tape: its structure, its live results, and the deaths that are sent with it.

A result is *live* if the user still holds it or an op recorded behind the piece takes it. The other results of the
piece get no memory on the server, and their deaths are not sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire._recording.implementation import results_among
from fusewire._recording.tape import FIRST_HANDLE, Integers
from fusewire_protos.frames import FIRST_UPLOAD, HANDLES_PER_RECORDER

# The integers of a structure are signature numbers, which lie below INSIDE, and operands:
INSIDE = FIRST_HANDLE  # plus the index of the op of the piece that made the operand
OUTSIDE = 2 * FIRST_HANDLE  # plus the index of the input
VALUE = -1  # every scalar and slice start
_FEW = 16  # up to this number, handles are found faster one by one
_NO_HANDLES: Integers = np.empty(0, np.int64)

Flags = npt.NDArray[np.bool_]


class Structure(NamedTuple):
    """The ops of a piece. Pieces that differ only in their handles and values have equal keys."""

    key: bytes  # equal for equal structures within this process
    inputs: list[int]  # the handles of the piece's inputs, in the order of their first uses

    def bound(self, handles: Mapping[int, int]) -> Structure:
        """Returns this structure with other inputs: `handles` holds what replaces an input."""
        return Structure(self.key, [handles.get(handle, handle) for handle in self.inputs])


class Pattern:
    """A known structure. Tests fast whether a piece has this structure, by array operations on all ops at once.

    Each integer of such a piece is a sum of two terms. The first term is the same in all pieces of the structure. The
    second term differs from piece to piece: it is zero, the number of the first op, the first value, or an input. Many
    structures occur only once, so the terms are computed when a second piece with the same signatures comes.
    """

    def __init__(self, structure: Structure) -> None:
        self._key = structure.key
        self._terms: _Terms | None = None

    def match(self, flat: Integers, first: int, ops: int) -> Structure | None:
        """Returns this structure with the inputs of the piece, or None if the piece may have another structure."""
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
    """The two terms of each integer of a piece. The pieces of one structure differ in the second term alone."""

    shared: Integers
    own: Integers  # index into (zero, the number of the first op, each input, the first value)
    first_uses: Integers  # the index of the first use of each input
    first_value: Integers  # the index of the first value; empty if there is none


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
    """The live results of a piece, and the handles known to be dead, sorted by how their deaths are reported."""

    live: tuple[int, ...]  # op indices
    dying: list[int]  # dead inputs of the piece that no later op takes
    freed: list[int]  # dead handles that neither the piece nor a later op takes
    waiting: Integers  # dead handles that an op behind the piece takes or makes: they are reported later


def structure_of(flat: Integers, first: int, ops: int) -> Structure:
    """Returns the structure of the piece that begins with op number `first`; `flat` holds its records."""
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
    """Returns the liveness of the piece of `ops` ops that begins with op number `first`.

    `dead` are all handles of the recorder known to be dead and not yet reported. `later` are the records behind the
    piece.
    """
    is_dead, elsewhere = results_among(dead, first, ops)
    live = _places(~is_dead)
    died_but_taken: list[int] = []
    if len(later):
        is_taken, _ = results_among(later, first, ops)
        live = _places(~is_dead | is_taken)
        died_but_taken = [first + place for place in _places(is_dead & is_taken)]
    if not len(elsewhere):
        return Liveness(live, [], [], _as_handles(died_but_taken))
    is_born_later = (elsewhere >= first + ops) & (elsewhere < _first_upload(first))
    old = _sort_out(elsewhere[~is_born_later].tolist(), inputs, later)
    waiting = np.concatenate((elsewhere[is_born_later], _as_handles([*died_but_taken, *old.waiting])))
    return Liveness(live, old.dying, old.freed, waiting)


class _Old(NamedTuple):
    dying: list[int]
    freed: list[int]
    waiting: list[int]


def _sort_out(dead: list[int], inputs: Sequence[int], later: Integers) -> _Old:
    """Sorts the dead handles of values made before the piece."""
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
    """Returns the handles that are among `others`. Makes a set of `others`, which are many, only for many handles."""
    if not len(others):  # no op follows, as when a value is read; NumPy would take time for this too
        return set()
    if len(handles) <= _FEW:
        return {handle for handle in handles if (others == handle).any()}
    return set(others.tolist()).intersection(handles)


def _places(flags: Flags) -> tuple[int, ...]:
    """Returns the indices of the set flags."""
    return tuple(flags.nonzero()[0].tolist())


def _as_handles(handles: list[int]) -> Integers:
    return np.array(handles, np.int64) if handles else _NO_HANDLES


def _first_upload(number: int) -> int:
    """Returns the handle of the first upload of the recorder that minted handle `number`."""
    return number // HANDLES_PER_RECORDER * HANDLES_PER_RECORDER + FIRST_UPLOAD
