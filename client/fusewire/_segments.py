"""What a piece of a tape becomes: a program, its bindings, and the deaths that travel with it.

A value is *live* if the user still holds it or an op recorded behind the piece takes it. All others of the piece's
results are placeholders: they never become buffers and their deaths need no word.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice
from typing import NamedTuple

import numpy as np

from fusewire._signature import Signature, signature_of
from fusewire._tape import FIRST_HANDLE, Integers, Record
from fusewire_protos import program as programs
from fusewire_protos.dtypes import DType
from fusewire_protos.frames import FIRST_UPLOAD, HANDLES_PER_RECORDER, Scalar
from fusewire_protos.program import Program, ProgramOp
from fusewire_protos.shapes import Spec

# How operands read in a structure: signatures are small, values are all the same.
_INSIDE = FIRST_HANDLE  # + the index of the op whose result it is
_OUTSIDE = 2 * FIRST_HANDLE  # + the input's position
_VALUE = -1


class Structure(NamedTuple):
    """What a piece shares with all pieces of the same form."""

    key: bytes  # equal for equal structures within this process
    inputs: list[int]  # handles, numbered by first use


class Pattern:
    """A structure met before, and how to tell quickly whether a piece has it: nothing per op runs in Python."""

    def __init__(self, structure: Structure) -> None:
        self._key = structure.key
        normal = np.frombuffer(structure.key, np.int64)
        is_outside = normal >= _OUTSIDE
        is_inside = (normal >= _INSIDE) & ~is_outside
        self._values = np.flatnonzero(normal < 0)
        self._outside = np.flatnonzero(is_outside)
        self._slots = normal[self._outside] - _OUTSIDE
        self._first_uses = self._outside[np.unique(self._slots, return_index=True)[1]]
        # Times the number of the first op and added up, a piece's records but for values and inputs.
        self._is_inside = is_inside.astype(np.int64)
        self._rest = normal - _INSIDE * self._is_inside

    def match(self, flat: Integers, first: int, ops: int) -> Structure | None:
        """The structure of a piece, if it is this one."""
        if len(flat) != len(self._rest):
            return None
        inputs = flat[self._first_uses]
        expected = self._is_inside * first
        expected += self._rest
        expected[self._outside] = inputs[self._slots]
        expected[self._values] = flat[self._values]
        if not (expected == flat).all():
            return None
        listed: list[int] = inputs.tolist()
        is_elsewhere = not any(first <= handle < first + ops for handle in listed)
        return Structure(self._key, listed) if is_elsewhere and len(set(listed)) == len(listed) else None


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
    is_start: tuple[bool, ...]  # of each value in op order


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
    is_live = np.ones(ops, bool)
    dead_here, elsewhere = _part(dead, first, ops)
    is_live[dead_here] = False
    is_kept = is_live.copy()
    taken_later, _ = _part(later, first, ops)
    died_but_taken = set(taken_later[~is_live[taken_later]].tolist())
    is_live[taken_later] = True
    is_kept[taken_later] = False
    live, kept = tuple(is_live.nonzero()[0].tolist()), tuple(is_kept.nonzero()[0].tolist())

    born_later = range(first + ops, _first_upload(first))
    old = _sort_out([handle for handle in elsewhere.tolist() if handle not in born_later], inputs, later)
    waiting = [handle for handle in elsewhere.tolist() if handle in born_later]
    waiting += [*(first + index for index in sorted(died_but_taken)), *old.waiting]
    return Liveness(live, old.dying, old.freed, np.array(waiting, np.int64), kept)


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
    program = _build_program(signatures, structure, live)
    is_start: list[bool] = []
    for signature in signatures:
        if signature.scalars or signature.starts:
            is_start += [False] * len(signature.scalars) + [True] * signature.starts
    return Template(programs.encode(program), program.live_bytes, program.scalars, tuple(is_start))


def bind(template: Template, values: Sequence[Scalar]) -> Bindings:
    """`values`: those of the piece in op order."""
    if len(template.scalar_dtypes) == len(values):
        return Bindings(tuple(values), ())
    scalars = tuple(v for v, is_start in zip(values, template.is_start, strict=True) if not is_start)
    starts = tuple(v for v, is_start in zip(values, template.is_start, strict=True) if is_start)
    return Bindings(scalars, starts)


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


def _part(handles: Integers, first: int, ops: int) -> tuple[Integers, Integers]:
    """The op indices of those that are results of a piece, and the others."""
    relative = handles - first
    is_here = relative.view(np.uint64) < ops  # a negative one is large without its sign
    return relative[is_here], handles[~is_here]


def _first_upload(number: int) -> int:
    """The first upload's handle in the range of the recorder that minted `number`."""
    return number // HANDLES_PER_RECORDER * HANDLES_PER_RECORDER + FIRST_UPLOAD


def _build_program(signatures: list[Signature], structure: Structure, live: tuple[int, ...]) -> Program:
    """Runs no rule: recording ran them all."""
    normal = np.frombuffer(structure.key, np.int64)
    inputs = _input_specs(signatures, normal, len(structure.inputs))
    scalars = [dtype for signature in signatures for dtype in signature.scalars]
    specs = [*inputs, *(Spec(dtype, ()) for dtype in scalars), *(signature.result.spec for signature in signatures)]
    references = iter(_operand_numbers(normal, len(inputs) + len(scalars)))
    next_scalar = iter(range(len(inputs), len(inputs) + len(scalars)))
    ops: list[ProgramOp] = []
    for signature in signatures:
        if signature.scalars:
            sources = [next_scalar if isinstance(spec, DType) else references for spec in signature.operands]
            operands = tuple([next(source) for source in sources])
        else:
            operands = tuple(islice(references, len(signature.operands)))
        ops.append(ProgramOp(signature.op, operands, signature.attributes))
    return Program(tuple(inputs), tuple(scalars), tuple(ops), live, tuple(specs))


def _operand_numbers(normal: Integers, first_result: int) -> list[int]:
    """The arrays among the operands, in order, as a program numbers them."""
    operands = normal[normal >= FIRST_HANDLE]
    numbers: list[int] = np.where(operands >= _OUTSIDE, operands - _OUTSIDE, operands - _INSIDE + first_result).tolist()
    return numbers


def _input_specs(signatures: list[Signature], normal: Integers, inputs: int) -> list[Spec]:
    """Specs of the inputs, as the ops that take them first know them."""
    operands = normal[normal >= FIRST_HANDLE]
    taken = [spec for signature in signatures for spec in signature.operands if not isinstance(spec, DType)]
    slots, first_uses = np.unique(operands[operands >= _OUTSIDE], return_index=True)
    assert len(slots) == inputs
    return [taken[place].spec for place in np.flatnonzero(operands >= _OUTSIDE)[first_uses].tolist()]
