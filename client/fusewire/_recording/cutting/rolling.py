"""Rolls whole bodies of a loop into one body and a count.

Each body of a loop has the same signatures. A *cell* is an integer of its records. A cell's *role* tells what it holds
in each iteration: a signature, a value, a result of the same iteration, a result of an earlier iteration (*carried*),
or a handle from elsewhere. A cell that is carried over n iterations may hold any earlier handle in the first n
iterations. Bodies whose cells keep to the same roles are iterations of one loop.

An input of a program takes something of the iteration before. So a result that a cell takes n iterations later passes
through n inputs.
"""

from __future__ import annotations

from collections import deque
from typing import NamedTuple

import numpy as np

from fusewire._recording.cutting.segments import Flags
from fusewire._recording.integer_scans import INSIDE, OUTSIDE, VALUE, count_repeats, inputs_among
from fusewire._recording.tape import FIRST_HANDLE, Integers
from fusewire_protos.programs.program import MOST_LAG

_CARRIED = 3 * FIRST_HANDLE  # plus how many ops the result lies before the first op of the iteration
_ELSEWHERE = 4 * FIRST_HANDLE  # a handle from outside the loop
_FAR = 5 * FIRST_HANDLE  # a result of more than MOST_LAG iterations before: what holds it is no iteration of the loop


class Place(NamedTuple):
    """A cell in an iteration."""

    iteration: int
    cell: int

    def on(self, iterations: int) -> Place:
        """Returns the same cell so many iterations later."""
        return Place(self.iteration + iterations, self.cell)


class RolledBody(NamedTuple):
    """The structure of a loop's body."""

    key: bytes  # equal for equal structures within this process, as that of a `Structure`
    # Each carried input, and the integer of a structure for what it takes in the next iteration: a result, or the next
    # input through which a result passes.
    carried: tuple[tuple[int, int], ...]
    roles: Integers  # of each cell
    input_iterations: Integers  # for each input the iteration that first takes what is bound to it
    input_cells: Integers  # for each input the cell that does so
    taking: Integers  # the cells that hold inputs
    first_cells: Integers  # for each of `taking` the first cell of its input
    same: tuple[tuple[Place, Place], ...]  # places of the first iterations that hold the same, as they share an input

    @property
    def carried_ops(self) -> frozenset[int]:
        """The ops of which results are carried."""
        return frozenset([cell - INSIDE for _, cell in self.carried if cell < OUTSIDE])

    def inputs_of(self, bodies: Integers) -> list[int]:
        """Returns the handles that a loop of these bodies binds to the inputs.

        If the bodies are so few that none of them takes an input, its handle is any of the input's spec.
        """
        is_single = len(bodies) == 1  # as of a user who reads a value in each iteration
        iterations = 0 if is_single else np.minimum(self.input_iterations, len(bodies) - 1)
        handles: list[int] = bodies[iterations, self.input_cells].tolist()
        return handles

    def of_one(self, body: Integers, first: int, ops: int) -> RolledBodies | None:
        """Rolls a single body, or returns None if it has another structure. It may take any handles from before it.

        `body` are the integers of its records. `first` is the number of its first op, and `ops` the number of its ops.
        """
        inputs = inputs_among(np.frombuffer(self.key, np.int64), body, first, ops)
        if inputs is None:
            return None
        passed = self.input_cells[len(inputs) :]  # of the inputs that no cell takes in the first iteration
        return RolledBodies(self, 1, [*inputs, *body[passed].tolist()] if len(passed) else inputs, ())

    def begun_anew(self, bodies: Integers, first: int, ops: int) -> RolledBodies | None:
        """Rolls bodies of which the first takes any handles from before it, and the others follow from it.

        Returns None if they have another structure, or if something is carried over several iterations. `bodies` is
        int64[bodies][cells], `first` the number of the first of their ops, and `ops` the number of ops of a body.
        """
        passes_through_inputs = any(cell >= OUTSIDE for _, cell in self.carried)  # over several iterations
        first_iteration = None if passes_through_inputs else self.of_one(bodies[0], first, ops)
        if first_iteration is None:
            return None
        before = np.where(self.is_carried, first + _CARRIED - self.roles, bodies[0])
        if count_repeats(before, self.shifts(ops), bodies[1:].reshape(-1)) < len(bodies) - 1:
            return None
        return first_iteration._replace(iterations=len(bodies))

    @property
    def is_carried(self) -> Flags:
        """Returns for each cell whether it takes a result of an earlier iteration."""
        return (self.roles >= _CARRIED) & (self.roles < _ELSEWHERE)

    def shifts(self, ops: int) -> Integers:
        """Returns by how much each cell grows from iteration to iteration: see `integer_scans`."""
        is_value = self.roles == VALUE
        shifts = np.where(self.is_carried | _is_inside(self.roles), ops, 0)
        shifts[is_value] = -np.count_nonzero(is_value)
        return shifts


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
    rows = _Rows(bodies, _roles(bodies, first, ops), _are_outer(bodies, first, ops), ops)
    count = 0 if known is None else _count_alike(rows, known)
    if known is not None and _may_stay(rows, count):
        return _rolled(bodies[:count], known)
    body, new_count = _new_body(rows)
    if known is not None and count > 1 and (new_count <= count or (body.roles == known.roles).all()):
        return _rolled(bodies[:count], known)
    return _rolled(bodies[:new_count], body)


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


def last_body(integers: Integers, end: int, ops: int, body: RolledBody) -> LastBody | None:
    """Returns the last body of a loop, or None if it is one of the first, which take what no later body takes.

    `end` is the number of the op behind it.
    """
    is_carried = body.is_carried
    if (integers[is_carried] != end - ops - (body.roles[is_carried] - _CARRIED)).any():
        return None
    return LastBody(integers.copy(), body.shifts(ops), end)


def rolled_on(bodies: Integers, known: RolledBody) -> RolledBodies:
    """Rolls bodies that go on with a loop, and take the same handles from elsewhere."""
    return RolledBodies(known, len(bodies), known.inputs_of(bodies), ())


def place_of_new_start(bodies: Integers, first: int, ops: int, known: RolledBody) -> int:
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


class _Rows(NamedTuple):
    """Bodies of a loop, one a row. The arrays have the shape of `bodies`."""

    bodies: Integers
    roles: Integers
    are_outer: Flags  # whether the cell holds a handle that is no result of these bodies
    ops: int

    def count_fitting(self, roles: Integers) -> int:
        """Returns how many of the first bodies keep to these roles."""
        most_lag = len(self.bodies)
        lags = np.where(roles == _ELSEWHERE, most_lag, _lags(roles, self.ops))
        is_free = self.are_outer & (np.arange(most_lag).reshape(-1, 1) < lags)
        return _count_leading((is_free | (self.roles == roles)).all(axis=1))


def _roles(bodies: Integers, first: int, ops: int) -> Integers:
    """Returns the role of each cell in each body.

    A result from before the first body is carried if it is one of the body before, or if the cell took the result of
    the same op in the body before.
    """
    relative = bodies - (first + ops * np.arange(len(bodies)).reshape(-1, 1))
    roles = np.where(bodies < 0, VALUE, bodies)
    is_handle = bodies >= FIRST_HANDLE
    roles[is_handle] = _ELSEWHERE
    is_before = is_handle & (relative < 0)
    roles[is_before & (bodies >= first)] = _FAR
    follows = np.zeros(bodies.shape, bool)
    follows[1:] = bodies[1:] - bodies[:-1] == ops
    is_carried = is_before & ((relative >= -ops) | ((relative >= -MOST_LAG * ops) & (follows | (bodies >= first))))
    roles[is_carried] = _CARRIED - relative[is_carried]
    is_inside = is_handle & (relative >= 0) & (relative < ops)
    roles[is_inside] = INSIDE + relative[is_inside]
    return roles


def _are_outer(bodies: Integers, first: int, ops: int) -> Flags:
    return (bodies >= FIRST_HANDLE) & ((bodies < first) | (bodies >= first + ops * len(bodies)))


def _is_inside(roles: Integers) -> Flags:
    return (roles >= INSIDE) & (roles < OUTSIDE)


def _lags(roles: Integers, ops: int) -> Integers:
    """Returns for each cell over how many iterations it is carried, or 0."""
    is_carried = (roles >= _CARRIED) & (roles < _ELSEWHERE)
    return np.where(is_carried, (roles - _CARRIED + ops - 1) // ops, 0)


def _count_leading(flags: Flags) -> int:
    """Returns how many of the first flags are set."""
    return len(flags) if flags.all() else int(flags.argmin())


def _count_alike(rows: _Rows, body: RolledBody) -> int:
    """Returns how many of the first bodies keep to the structure of `body`."""
    bodies = rows.bodies
    if bodies.shape[1] != len(body.roles):
        return 0
    are_same = (bodies[:, body.taking] == bodies[:, body.first_cells]).all(axis=1)
    for later, own in body.same:
        if later.iteration < len(bodies) and bodies[later] != bodies[own]:
            are_same[later.iteration] = False
    return min(rows.count_fitting(body.roles), _count_leading(are_same))


def _may_stay(rows: _Rows, count: int) -> bool:
    """Returns whether a known structure need not be replaced, which the first `count` of the bodies have.

    After one body, it is replaced if the next two have the same roles, so that these are those of a loop. After few
    bodies, it may not show yet that a value is carried over several iterations.
    """
    roles = rows.roles
    if count == 1:
        return len(roles) <= 2 or not bool((roles[1] == roles[2]).all())
    return count == len(roles) or count > MOST_LAG


def _new_body(rows: _Rows) -> tuple[RolledBody, int]:
    """Returns the structure of the first bodies, and how many have it.

    If a body does not fit, it may be the first to take a result that is carried over several iterations.
    """
    roles = rows.roles
    shown_by = min(len(roles) - 1, 1 if len(roles) < 3 or (roles[1] == roles[2]).all() else 2)
    count = rows.count_fitting(_usual(roles[shown_by]))
    if not count:
        shown_by, count = 0, rows.count_fitting(_usual(roles[0]))
    while shown_by < count < min(len(roles), MOST_LAG + 1):
        further = rows.count_fitting(_usual(roles[count]))
        if further <= count:
            break
        shown_by, count = count, further
    return _structure(rows.bodies[:count], _usual(roles[shown_by]), rows.ops), count


def _usual(roles: Integers) -> Integers:
    """Returns the roles of a loop of which one iteration has `roles`."""
    return np.where(roles == _FAR, _ELSEWHERE, roles)


def _structure(bodies: Integers, roles: Integers, ops: int) -> RolledBody:
    """Returns the structure of bodies with these roles. Places that hold the same handles share an input."""
    taking, lags = np.flatnonzero(roles >= _CARRIED), _lags(roles, ops)
    inputs = _Inputs(bodies)
    slots = [inputs.slot_of(Place(0, cell), int(roles[cell]), int(lags[cell])) for cell in taking.tolist()]
    carried, same = inputs.pass_through(ops)
    key = roles.copy()
    key[taking] = [OUTSIDE + slot for slot in slots]
    iterations, cells = np.array(inputs.places, np.int64).reshape(-1, 2).T
    return RolledBody(key.tobytes(), carried, roles, iterations, cells, taking, cells[np.array(slots, np.int64)], same)


class _Inputs:
    """The inputs of a loop of these bodies. Two places share an input if both take the same handles from then on."""

    def __init__(self, bodies: Integers) -> None:
        self._bodies = bodies
        self._slots: dict[tuple[int, bytes], int] = {}  # by role, and the handles that are bound
        self._carried: deque[tuple[int, int, int]] = deque()  # carried inputs, each with its role and lag
        self.places: list[Place] = []  # of each input

    def slot_of(self, place: Place, role: int, lag: int) -> int:
        """Returns the input of a place. What the place takes has been carried over `lag` iterations, if it is not 0."""
        end = place.iteration + lag if lag else len(self._bodies)
        key = role, self._bodies[place.iteration : end, place.cell].tobytes()
        if key not in self._slots:
            self._slots[key] = len(self.places)
            self.places.append(place)
            if lag:
                self._carried.append((self._slots[key], role, lag))
        return self._slots[key]

    def pass_through(self, ops: int) -> tuple[tuple[tuple[int, int], ...], tuple[tuple[Place, Place], ...]]:
        """Adds the further inputs through which results pass. Returns `carried` and `same` of the structure."""
        carried: list[tuple[int, int]] = []
        same: list[tuple[Place, Place]] = []
        while self._carried:
            slot, role, lag = self._carried.popleft()
            if lag == 1:
                carried.append((slot, INSIDE + ops - (role - _CARRIED)))
                continue
            place = self.places[slot]
            later = place.on(1)
            following = self.slot_of(later, role - ops, lag - 1)
            carried.append((slot, OUTSIDE + following))
            own = self.places[following]
            if own != later:
                same += [(later.on(iterations), own.on(iterations)) for iterations in range(lag - 1)]
        return tuple(carried), tuple(same)


def _rolled(bodies: Integers, body: RolledBody) -> RolledBodies:
    carried = dict(body.carried)
    held = bodies[:, body.input_cells]
    changes: Flags = (held != held[0]).any(axis=0)
    stepped = tuple(
        [(slot, tuple(held[:, slot].tolist())) for slot in np.flatnonzero(changes).tolist() if slot not in carried]
    )
    return RolledBodies(body, len(bodies), body.inputs_of(bodies), stepped)
