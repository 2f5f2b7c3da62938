"""Makes a segment of a piece of a tape: its structure, its live results, and the deaths that are sent with it.

A result is *live* if the user still holds it or an op recorded behind the piece takes it. The other results of the
piece get no memory on the server, and their deaths are not sent.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire._recording.integer_scans import INSIDE, OUTSIDE, VALUE, inputs_among, results_among
from fusewire._recording.tape import FIRST_HANDLE, Integers
from fusewire_protos.frames import FIRST_UPLOAD, HANDLES_PER_RECORDER

_FEW = 16  # up to this number, handles are found faster one by one
_NO_HANDLES: Integers = np.empty(0, np.int64)

Flags = npt.NDArray[np.bool_]


class Structure(NamedTuple):
    """The ops of a piece. Pieces that differ only in their handles and values have equal keys."""

    key: bytes  # equal for equal structures within this process
    inputs: list[int]  # the handles of the piece's inputs, in the order of their first uses

    def of(self, flat: Integers, first: int, ops: int) -> Structure | None:
        """Returns the structure of a piece, with the piece's own inputs, or None if it has another key than this one.

        `flat` holds the records of the piece, whose `ops` ops are numbered from `first` on.
        """
        inputs = inputs_among(np.frombuffer(self.key, np.int64), flat, first, ops)
        return None if inputs is None or len(set(inputs)) < len(inputs) else Structure(self.key, inputs)

    def bound(self, handles: Mapping[int, int]) -> Structure:
        """Returns this structure with other inputs: `handles` holds what replaces an input."""
        return Structure(self.key, [handles.get(handle, handle) for handle in self.inputs])


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
    if not len(later):  # no op follows, which a dead handle could wait for
        old = _sort_out(elsewhere.tolist(), inputs, later)
        return Liveness(live, old.dying, old.freed, _NO_HANDLES)
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
    """Returns the handles that are among `others`, which are many. Makes a set of `others` only for many handles."""
    if not len(others):  # no op follows, as when a value is read; NumPy would take time for this too
        return set()
    if len(handles) <= _FEW:
        return {handle for handle in handles if (others == handle).any()}
    is_near = (others >= min(handles)) & (others <= max(handles))  # mostly few: others are of ops behind the piece
    return set(others[is_near].tolist()).intersection(handles)


def _places(flags: Flags) -> tuple[int, ...]:
    """Returns the indices of the set flags."""
    return tuple(flags.nonzero()[0].tolist())


def _as_handles(handles: list[int]) -> Integers:
    return np.array(handles, np.int64) if handles else _NO_HANDLES


def _first_upload(number: int) -> int:
    """Returns the handle of the first upload of the recorder that minted handle `number`."""
    return number // HANDLES_PER_RECORDER * HANDLES_PER_RECORDER + FIRST_UPLOAD
