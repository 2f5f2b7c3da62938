"""Rolls whole bodies of a loop into one body and a count.

Each body of a loop has the same signatures. A *cell* is an integer of its records. A cell's *role* tells what it holds
in each iteration: a signature, a value, a result of the same iteration, a result of the iteration before (*carried*),
or a handle from elsewhere. In the first iteration a carried cell may hold any handle. Bodies whose cells keep to the
same roles are iterations of one loop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from fusewire._recording.implementation import count_repeats
from fusewire._recording.integer_scans import shifts_of
from fusewire._recording.segments import INSIDE, OUTSIDE, VALUE, Flags
from fusewire._recording.tape import FIRST_HANDLE, Integers

_CARRIED = 3 * FIRST_HANDLE  # plus the index of the op whose result of the iteration before the cell holds
_ELSEWHERE = 4 * FIRST_HANDLE  # a handle from outside the loop
_FAR = 5 * FIRST_HANDLE  # a result of an iteration further back: what holds it is no iteration of the loop


class RolledBody(NamedTuple):
    """The structure of a loop's body."""

    key: bytes  # equal for equal structures within this process, as that of a `Structure`
    carried: tuple[tuple[int, int], ...]  # an input, and the op whose result it is in the next iteration
    roles: Integers  # of each cell
    input_cells: tuple[int, ...]  # for each input its first cell
    taking: Integers  # the cells that hold inputs
    first_cells: Integers  # for each of `taking` the first cell of its input


class RolledBodies(NamedTuple):
    """The first bodies of a piece, as iterations of a loop."""

    body: RolledBody
    iterations: int
    inputs: list[int]  # the handles of the first iteration
    # The inputs from elsewhere that change, each with the handles of all iterations.
    stepped: tuple[tuple[int, tuple[int, ...]], ...]

    @property
    def handles(self) -> list[int]:
        """The handles of all inputs: those of the first iteration, then the others of stepped inputs."""
        return [*self.inputs, *[handle for _, handles in self.stepped for handle in handles[1:]]]

    def first(self, iterations: int) -> RolledBodies:
        """Returns the first iterations."""
        if iterations == self.iterations:
            return self
        stepped = tuple([(slot, handles[:iterations]) for slot, handles in self.stepped if iterations > 1])
        return self._replace(iterations=iterations, stepped=stepped)


def roll(bodies: Integers, first: int, ops: int, known: RolledBody | None) -> RolledBodies:
    """Rolls as many bodies as keep to the roles of the first ones, at least one.

    `bodies` is int64[bodies][cells], the records of the bodies. `first` is the number of the first op, and `ops` the
    number of ops of a body. `known` is the structure that earlier bodies of the loop had.
    """
    roles = _roles(bodies, first, ops)
    if known is not None:
        count = _count_alike(bodies, roles, known)
        if count > 1 or (count == 1 and not _changes_for_good(roles)):
            return _rolled(bodies[:count], known)
    body, count = _new_body(bodies, roles)
    return _rolled(bodies[:count], body)


class LastBody(NamedTuple):
    """The last body of a loop so far. If the loop goes on as it did, further bodies follow from it."""

    integers: Integers  # of its records
    shifts: Integers  # see `integer_scans`
    end: int  # the number of the op behind it

    def goes_on(self, bodies: Integers, first: int, ops: int) -> bool:
        """Returns whether all of `bodies`, int64[bodies][cells], follow from this body.

        They take the same handles from outside the loop. `first` is the number of the first of their ops, and `ops` the
        number of ops of a body. Bodies may lie between this one and them, or they may lie before it, as in a piece that
        is drafted again.
        """
        between, rest = divmod(first - self.end, ops)
        if rest or len(self.integers) != bodies.shape[1]:
            return False
        before = self.integers + between * self.shifts
        return count_repeats(before, self.shifts, bodies.reshape(-1)) == len(bodies)


def last_body(integers: Integers, end: int, ops: int) -> LastBody:
    """Returns the last body of a loop. `end` is the number of the op behind it."""
    return LastBody(integers.copy(), shifts_of(integers, end - ops, ops), end)


def rolled_on(bodies: Integers, known: RolledBody) -> RolledBodies:
    """Rolls bodies that go on with a loop, and take the same handles from elsewhere."""
    return RolledBodies(known, len(bodies), bodies[0, known.input_cells].tolist(), ())


def begins_within(bodies: Integers, first: int, ops: int, known: RolledBody) -> int:
    """Returns the index of the op with which the loop begins anew within the first body, or 0 if it does not.

    Where earlier bodies take a result of their own, this op takes a handle from elsewhere.
    """
    roles = _roles(bodies[:1], first, ops)[0]
    if len(roles) != len(known.roles):
        return 0
    is_anew = (roles >= _CARRIED) & (known.roles < OUTSIDE) & (known.roles >= INSIDE)
    if not is_anew.any():
        return 0
    is_signature = (known.roles >= 0) & (known.roles < INSIDE)
    return int(np.count_nonzero(is_signature[: int(is_anew.argmax())])) - 1


def _roles(bodies: Integers, first: int, ops: int) -> Integers:
    """Returns the role of each cell in each body."""
    relative = bodies - (first + ops * np.arange(len(bodies)).reshape(-1, 1))
    roles = np.where(bodies < 0, VALUE, bodies)
    is_handle = bodies >= FIRST_HANDLE
    roles[is_handle] = _ELSEWHERE
    roles[is_handle & (bodies >= first) & (relative < 0)] = _FAR
    is_carried = is_handle & (relative < 0) & (relative >= -ops)
    roles[is_carried] = _CARRIED + ops + relative[is_carried]
    is_inside = is_handle & (relative >= 0) & (relative < ops)
    roles[is_inside] = INSIDE + relative[is_inside]
    return roles


def _count_alike(bodies: Integers, roles: Integers, body: RolledBody) -> int:
    """Returns how many of the first bodies keep to the structure of `body`."""
    if roles.shape[1] != len(body.roles):
        return 0
    is_alike = (roles == body.roles).all(axis=1)
    is_alike[0] = _may_begin(roles[0], body.roles)
    is_alike &= (bodies[:, body.taking] == bodies[:, body.first_cells]).all(axis=1)
    return len(is_alike) if is_alike.all() else int(is_alike.argmin())


def _may_begin(first: Integers, roles: Integers) -> bool:
    """Returns whether a body with the roles `first` may be the first iteration of a loop with these roles."""
    takes = roles >= _CARRIED
    return bool((first[takes] >= _CARRIED).all() and (first[~takes] == roles[~takes]).all())


def _changes_for_good(roles: Integers) -> bool:
    """Returns whether the second and the third body have the same roles, so that these are those of a loop."""
    return len(roles) > 2 and bool((roles[1] == roles[2]).all())


def _new_body(bodies: Integers, roles: Integers) -> tuple[RolledBody, int]:
    """Returns the structure of the first bodies, and how many have it."""
    usual = roles[min(len(roles) - 1, 1 if len(roles) < 3 or (roles[1] == roles[2]).all() else 2)].copy()
    usual[usual == _FAR] = _ELSEWHERE
    if not _may_begin(roles[0], usual):
        usual = roles[0].copy()
        usual[usual == _FAR] = _ELSEWHERE
    is_alike = (roles == usual).all(axis=1)
    is_alike[0] = True
    count = len(is_alike) if is_alike.all() else int(is_alike.argmin())
    return _structure(bodies[:count], usual), count


def _structure(bodies: Integers, roles: Integers) -> RolledBody:
    """Returns the structure of bodies with these roles. Cells that hold the same handles are one input."""
    taking = np.flatnonzero(roles >= _CARRIED)
    cell_of: dict[tuple[int, bytes], int] = {}
    first_cells = []
    for cell in taking.tolist():
        role = int(roles[cell])
        held = bodies[:, cell] if role == _ELSEWHERE else bodies[:1, cell]
        first_cells.append(cell_of.setdefault((role, held.tobytes()), cell))
    slots = {cell: slot for slot, cell in enumerate(cell_of.values())}
    key = roles.copy()
    key[taking] = [OUTSIDE + slots[cell] for cell in first_cells]
    carried = [(slot, int(roles[cell]) - _CARRIED) for cell, slot in slots.items() if roles[cell] != _ELSEWHERE]
    return RolledBody(key.tobytes(), tuple(carried), roles, tuple(slots), taking, np.array(first_cells, np.int64))


def _rolled(bodies: Integers, body: RolledBody) -> RolledBodies:
    carried = dict(body.carried)
    held = bodies[:, body.input_cells]
    changes: Flags = (held != held[0]).any(axis=0)
    stepped = tuple(
        [(slot, tuple(held[:, slot].tolist())) for slot in np.flatnonzero(changes).tolist() if slot not in carried]
    )
    return RolledBodies(body, len(bodies), held[0].tolist(), stepped)
