"""Scans the integers of a tape: finds records, counts repeats of a loop's body, finds results and inputs. Pure.

The records of a body, one behind the other, are its integers. From one body to the next each integer grows by its
*shift*: a signature number and a handle from outside the loop by 0, the handle of a result of the loop by the number of
ops of the body, and a reference to a value, which is negative, by minus the number of values of the body.

The integers of a *structure* stand in place of those of a piece. They are signature numbers, which lie below INSIDE,
and operands: INSIDE plus the index of the op of the piece that made it, OUTSIDE plus the index of an input, or VALUE.

`compiled_integer_scans` does the same in C, and `implementation` chooses one of the two.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from fusewire._recording.tape import FIRST_HANDLE, Integers

INSIDE = FIRST_HANDLE
OUTSIDE = 2 * FIRST_HANDLE
VALUE = -1  # every scalar and slice start


def places_of_signatures(flat: Integers) -> Integers:
    """Returns the index of the first integer of each record. `flat`, contiguous, holds records one behind the other."""
    is_signature = flat.view(np.uint64) < FIRST_HANDLE  # read as unsigned, a negative integer is large
    return is_signature.nonzero()[0]


def count_repeats(body: Integers, shifts: Integers, following: Integers) -> int:
    """Returns how many whole bodies at the beginning of `following` repeat `body`.

    `body` and `shifts` are int64[integers], at least one. `following`, int64[any number], are the integers that were
    recorded behind the body. All three are contiguous.
    """
    length = len(body)
    bodies = following[: len(following) // length * length].reshape(-1, length)
    expected = body + shifts * np.arange(1, len(bodies) + 1).reshape(-1, 1)
    repeats = (bodies == expected).all(axis=1)
    return len(repeats) if repeats.all() else int(repeats.argmin())


def results_among(handles: Integers, first: int, ops: int) -> tuple[npt.NDArray[np.bool_], Integers]:
    """Returns for each of `ops` ops, numbered from `first` on, whether its result is among `handles`; and the others.

    `handles`, int64[any number] and contiguous, may be any integers of a tape. The others keep their order.
    """
    is_among = np.zeros(ops, bool)
    relative = handles - first
    is_here = relative.view(np.uint64) < ops  # read as unsigned, a negative integer is large
    is_among[relative[is_here]] = True
    return is_among, handles[~is_here]


def inputs_among(structure: Integers, flat: Integers, first: int, ops: int) -> list[int] | None:
    """Returns the handles that a piece binds to the inputs of a structure, or None if it has another structure.

    `structure` and `flat` are int64[integers], and contiguous. `flat` holds the records of the piece, whose `ops` ops
    are numbered from `first` on. An input takes one handle, but several inputs may take the same.
    """
    if len(flat) != len(structure):
        return None
    is_outside, is_value = structure >= OUTSIDE, structure < 0
    own = np.where(structure >= INSIDE, structure - INSIDE + first, structure)
    inputs, taken = structure[is_outside] - OUTSIDE, flat[is_outside]
    is_elsewhere = (taken >= FIRST_HANDLE) & ((taken < first) | (taken >= first + ops))
    bound = np.empty(inputs.max(initial=-1) + 1, np.int64)
    bound[inputs] = taken
    has_structure = (
        ((flat == own) | is_outside | is_value).all()
        and (flat[is_value] < 0).all()
        and is_elsewhere.all()
        and (bound[inputs] == taken).all()
    )
    return bound.tolist() if has_structure else None
