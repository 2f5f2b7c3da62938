"""What a piece of a tape becomes: a program, its bindings, and the deaths that travel with it.

A value is *live* if the user still holds it or an op recorded behind the piece takes it. All others of the piece's
results are placeholders: they never become buffers and their deaths need no word.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import compress
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from fusewire._signature import ArraySpec, Signature, signature_of
from fusewire._tape import FIRST_HANDLE, Integers, Record, places_of_signatures
from fusewire_protos import program as programs
from fusewire_protos.dtypes import DType
from fusewire_protos.frames import FIRST_UPLOAD, HANDLES_PER_RECORDER, Scalar
from fusewire_protos.shapes import Spec

# How operands read in a structure: signatures are small, values are all the same.
_INSIDE = FIRST_HANDLE  # + the index of the op whose result it is
_OUTSIDE = 2 * FIRST_HANDLE  # + the input's position
_VALUE = -1
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
    these are worked out when a piece of the same length does.
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
    is_outside = normal >= _OUTSIDE
    is_inside = (normal >= _INSIDE) & ~is_outside
    is_value = normal < 0
    slots, first_uses = np.unique(normal[is_outside], return_index=True)
    shared = np.where(is_inside, normal - _INSIDE, normal)
    shared[is_value] = -np.arange(np.count_nonzero(is_value))  # values are numbered downwards, one by one
    shared[is_outside] = 0
    own = np.zeros(len(normal), np.int64)
    own[is_inside] = 1
    own[is_outside] = 2 + normal[is_outside] - _OUTSIDE
    own[is_value] = 2 + len(slots)
    return _Terms(shared, own, is_outside.nonzero()[0][first_uses], is_value.nonzero()[0][:1])


class Liveness(NamedTuple):
    """Which results of a piece are live, and what happens to the handles known to be dead."""

    live: tuple[int, ...]  # op indices
    dying: list[int]  # inputs that nothing takes any more
    freed: list[int]  # handles dead and not concerned with this piece
    waiting: Integers  # dead, and yet taken by an op behind the piece, or born there
    kept: tuple[int, ...]  # op indices of results that the user still holds, and that no op behind the piece takes


class Template(NamedTuple):
    """A program as the client keeps it: what it takes to send it, and to bind it again."""

    raw: bytes
    live_bytes: int
    scalar_dtypes: tuple[DType, ...]
    is_scalar: tuple[bool, ...]  # of each value in op order
    is_start: tuple[bool, ...]


class Bindings(NamedTuple):
    scalars: tuple[Scalar, ...]
    starts: tuple[Scalar, ...]  # whole, and among the scalars on the tape


def structure_of(flat: Integers, first: int, ops: int) -> Structure:
    """The structure of the piece that begins with op number `first`; `flat` holds its records."""
    relative = flat - first
    is_handle = flat >= FIRST_HANDLE
    is_inside = is_handle & (relative >= 0) & (relative < ops)
    is_outside = is_handle & ~is_inside
    outside = flat[is_outside].tolist()
    inputs = list(dict.fromkeys(outside))
    slots = {handle: _OUTSIDE + slot for slot, handle in enumerate(inputs)}
    normal = np.where(is_inside, relative + _INSIDE, flat)
    normal[is_outside] = [slots[handle] for handle in outside]
    normal[flat < 0] = _VALUE
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


def spread_over_bodies(liveness: Liveness, first: int, ops: int, bodies: int) -> Liveness:
    """As if what the user keeps of some bodies of a piece were kept of each, and dropped where it is not.

    Which bodies those are differs from piece to piece; spread, they are all of one program.
    """
    body_ops = ops // bodies
    places = {index % body_ops for index in liveness.kept}
    spread = {start + place for start in range(0, ops, body_ops) for place in places}
    dropped = sorted(spread.difference(liveness.live))
    if not dropped:
        return liveness
    live = tuple(sorted(spread.union(liveness.live)))
    return liveness._replace(live=live, freed=[*liveness.freed, *(first + index for index in dropped)])


def build_template(records: Sequence[Record], structure: Structure, live: tuple[int, ...]) -> Template:
    """Builds the program of a structure met for the first time."""
    signatures = [signature_of(record[0]) for record in records]
    scalars = tuple([dtype for signature in signatures for dtype in signature.scalars])
    is_start: list[bool] = []
    for signature in signatures:
        if signature.scalars or signature.starts:
            is_start += [False] * len(signature.scalars) + [True] * signature.starts
    is_scalar = tuple([not each for each in is_start])
    live_bytes = sum([signatures[index].result.spec.size_bytes for index in live])
    raw = _encode(signatures, structure, scalars, live)
    return Template(raw, live_bytes, scalars, is_scalar, tuple(is_start))


def bind(template: Template, values: Sequence[Scalar]) -> Bindings:
    """`values`: those of the piece in op order."""
    if len(template.scalar_dtypes) == len(values):
        return Bindings(tuple(values), ())
    return Bindings(tuple(compress(values, template.is_scalar)), tuple(compress(values, template.is_start)))


class _Old(NamedTuple):
    dying: list[int]
    freed: list[int]
    waiting: list[int]


def _sort_out(dead: list[int], inputs: Sequence[int], later: Integers) -> _Old:
    """What becomes of dead handles that were sent before."""
    old = _Old([], [], [])
    if not dead:
        return old
    taken_later = set(later.tolist())
    taken_here = set(inputs)
    for handle in dead:
        if handle in taken_later:
            old.waiting.append(handle)
        elif handle in taken_here:
            old.dying.append(handle)
        else:
            old.freed.append(handle)
    return old


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


def _encode(
    signatures: list[Signature], structure: Structure, scalars: tuple[DType, ...], live: tuple[int, ...]
) -> bytes:
    """The bytes of the program. Runs no rule: recording ran them all."""
    normal = np.frombuffer(structure.key, np.int64)
    places = places_of_signatures(normal)
    inputs = _input_specs(signatures, normal, places, len(structure.inputs))
    numbers = _operand_numbers(normal, len(inputs) + len(scalars))
    if scalars:
        numbers[_scalar_cells(signatures, normal, places)] = np.arange(len(inputs), len(inputs) + len(scalars))
    listed, begins = numbers.tolist(), (places + 1).tolist()
    ops = [
        [signature.op.code, _operands(signature, listed, begin), *signature.attributes]
        for signature, begin in zip(signatures, begins, strict=True)
    ]
    return programs.encode_parts(inputs, scalars, ops, live)


def _operands(signature: Signature, listed: list[int], begin: int) -> list[int]:
    """Of an op whose record's cells begin there."""
    if signature.scalars:
        return [listed[begin + cell] for cell in signature.cells]
    return listed[begin : begin + len(signature.operands)]


def _operand_numbers(normal: Integers, first_result: int) -> Integers:
    """For each integer of a structure that stands for an array its number among the operands of a program."""
    return np.where(normal >= _OUTSIDE, normal - _OUTSIDE, normal - _INSIDE + first_result)


def _scalar_cells(signatures: list[Signature], normal: Integers, places: Integers) -> Integers:
    """Where in a structure the scalars stand: the values, but for starts of slices, which follow an op's operands."""
    is_scalar = normal == _VALUE
    for signature, place in zip(signatures, places.tolist(), strict=True):
        if signature.starts:
            behind = place + 1 + len(signature.operands)
            is_scalar[behind : behind + signature.starts] = False
    cells: Integers = is_scalar.nonzero()[0]
    return cells


def _input_specs(signatures: list[Signature], normal: Integers, places: Integers, inputs: int) -> list[Spec]:
    """Specs of the inputs, as the ops that take them first know them."""
    outside = (normal >= _OUTSIDE).nonzero()[0]
    slots, first_uses = np.unique(normal[outside], return_index=True)
    assert len(slots) == inputs
    cells = outside[first_uses]
    takers = np.searchsorted(places, cells) - 1
    found: list[Spec] = []
    for taker, position in zip(takers.tolist(), (cells - places[takers] - 1).tolist(), strict=True):
        signature = signatures[taker]
        taken = signature.operands[signature.cells.index(position)]
        assert isinstance(taken, ArraySpec), "a handle stands where the op takes an array"
        found.append(taken.spec)
    return found
