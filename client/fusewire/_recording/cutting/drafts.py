"""Drafts segments of unsent ops: fragments, and bodies of loops. Knows the loops that have come before. Pure."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple, TypeVar

import numpy as np

from fusewire._recording.cutting.cutter import Piece, largest_fragment
from fusewire._recording.cutting.kept_results import KeptResults, kept_results
from fusewire._recording.cutting.rolling import (
    LastBody,
    RolledBodies,
    RolledBody,
    last_body,
    place_of_new_start,
    roll,
    rolled_on,
)
from fusewire._recording.cutting.segments import Liveness, Structure, liveness_of, structure_of
from fusewire._recording.cutting.stepped_values import steps_of
from fusewire._recording.signature import signature_of
from fusewire._recording.tape import Integers
from fusewire_protos.frames import MAX_STEPPED, NUMBER_BYTES, Scalar, Steps
from fusewire_protos.programs.limits import MOST_LEAVES
from fusewire_protos.v1 import fusewire_pb2 as wire

_MOST_KNOWN = 256  # structures, and loops
_MOST_WIDENINGS = 2  # how often a loop's program may be made anew because the user holds further results

T = TypeVar("T")


class LoopForm(NamedTuple):
    """How often a segment runs its program, and what changes between the iterations.

    Each pair of `carried` is an input, and the integer of a structure for what it takes in the next iteration. Results
    of consecutive iterations have handles that are `handle_stride` apart. `kept` says of how many of the last
    iterations each live result is kept. `inputs` holds the stepped inputs with their handles. `values` holds the values
    that change, by their position among those of an iteration.
    """

    iterations: int
    carried: tuple[tuple[int, int], ...]
    handle_stride: int
    kept: tuple[int, ...]
    inputs: tuple[tuple[int, tuple[int, ...]], ...] = ()
    values: tuple[tuple[int, Steps], ...] = ()

    @property
    def is_once(self) -> bool:
        """Whether the program runs once and all its results are kept: an entry says so with less."""
        return self.iterations == 1 and min(self.kept, default=1) == 1


_ONCE = LoopForm(1, (), 0, ())


class Draft(NamedTuple):
    """A segment that is not committed. A draft may be dropped and made again, because its ops still count as unsent."""

    piece: Piece
    first: int
    structure: Structure
    liveness: Liveness
    values: list[Scalar]
    later: Integers  # the records behind the piece
    is_body: bool = False  # whether the piece is the body of a recorded loop
    loop_form: LoopForm = _ONCE


class Unsent(NamedTuple):
    """The ops from which a segment is drafted."""

    records: Integers  # of all unsent ops
    places: Integers  # of each record's first integer
    first: int  # the number of the first op
    dead: Integers  # all handles known to be dead and not yet reported
    values_of: Callable[[Integers], list[Scalar]]  # returns the values to which the negative integers of records refer

    @property
    def signatures(self) -> Integers:
        """The signature number of each op."""
        return self.records[self.places]

    def end_of(self, ops: int) -> int:
        """Returns how many integers the records of the first ops take."""
        return int(self.places[ops]) if ops < len(self.places) else len(self.records)

    def split(self, ops: int) -> tuple[Integers, Integers]:
        """Returns the records of the first ops, and those of the other ops."""
        end = self.end_of(ops)
        return self.records[:end], self.records[end:]

    def count_leaves(self, ops: int) -> int:
        """Returns how many operands of the first ops are no results of theirs."""
        here = self.records[: self.end_of(ops)]
        return len(here) - ops - int(np.count_nonzero((here >= self.first) & (here < self.first + ops)))

    def size_bytes_of(self, op: int) -> int:
        """Returns the size of an op's result."""
        return signature_of(int(self.records[self.places[op]])).result.spec.size_bytes


class Drafter:
    """Drafts the segments of one recorder."""

    def __init__(self, limits: wire.Limits) -> None:
        self._limits = limits
        self._most_operands = min(limits.program_operands, MOST_LEAVES)  # so that there are no more inputs and scalars
        # Half of a frame, because the other half is for what is the same; half of a list, because it has heads, too.
        self._most_numbers = min(limits.message_bytes // 2 // NUMBER_BYTES, MAX_STEPPED // 2)
        self._structures: OrderedDict[bytes, Structure] = OrderedDict()  # by the signatures of pieces
        self._loops: OrderedDict[bytes, _Loop] = OrderedDict()  # by the signatures of bodies

    def draft(
        self,
        piece: Piece,
        unsent: Unsent,
        rotate: Callable[[int], None],
        handed_out: frozenset[int] = frozenset(),
    ) -> Draft:
        """Drafts a segment of the first ops: those of `piece`, or fewer if not all of them fit in one segment.

        Calls `rotate` with the number of ops of the draft if the loop's body begins behind them. A loop's program
        stores the results that each body has `handed_out`, by op index, so that any cut of the loop gives one program.
        """
        if piece.bodies and self._fits(unsent, piece.ops // piece.bodies):
            return self._draft_loop(piece, unsent, rotate, handed_out)
        return self._draft_fragment(piece.ops, unsent)

    def _draft_fragment(self, ops: int, unsent: Unsent) -> Draft:
        """Drafts the first ops, or fewer if they exceed the ops or operands that a program may have."""
        piece = self._fitting(ops, unsent)
        here, later = unsent.split(piece.ops)
        structure = self._structure(here, unsent.first, unsent.signatures[: piece.ops])
        liveness = liveness_of(unsent.first, piece.ops, structure.inputs, unsent.dead, later)
        return Draft(piece, unsent.first, structure, liveness, unsent.values_of(here), later)

    def _draft_loop(
        self, piece: Piece, unsent: Unsent, rotate: Callable[[int], None], handed_out: frozenset[int]
    ) -> Draft:
        """Drafts bodies of a loop: as many as are iterations of one loop, with results that can be kept together.

        If more results of a last body that is not settled are live than of others, it becomes a fragment. So do bodies
        with further results to keep once the loop's program has been widened too often.
        """
        first, ops = unsent.first, piece.ops // piece.bodies
        name = unsent.records[unsent.places[:ops]].tobytes()
        known = self._loops.pop(name, None)
        cells = unsent.split(piece.ops)[0].reshape(piece.bodies, -1)
        bodies = None if known is None else known.continued(cells, first, ops)
        if bodies is None:
            lead = 0 if known is None else place_of_new_start(cells, first, ops, known.body)
            if lead:
                rotate(lead)
                return self._draft_fragment(lead, unsent)
            bodies = roll(cells, first, ops, None if known is None else known.body)
        bodies = self._that_fit_in_a_frame(bodies, cells)
        kept = _kept(piece.shortened(bodies.iterations), bodies, unsent)
        is_settled = len(unsent.places) >= kept.piece.ops + ops
        always = bodies.body.carried_ops | handed_out  # what any program of the loop stores
        is_carried = always.issuperset(kept.kept)
        is_stored = is_carried or (known is not None and known.keeps(bodies.body, kept.kept))
        if not is_settled and kept.piece.bodies > 1 and not is_stored:
            kept, is_settled = _kept(kept.piece.shortened(kept.piece.bodies - 1), bodies, unsent), True
        loop = _Loop.of(known, bodies.body, always.union(kept.kept), is_settled=is_settled)
        beyond = loop.bodies_beyond(kept.kept)
        if 0 < beyond < kept.piece.bodies:
            kept = _kept(kept.piece.shortened(kept.piece.bodies - beyond), bodies, unsent)
        if kept.piece.bodies > 1:
            loop = loop._replace(last=last_body(cells[kept.piece.bodies - 1], first + kept.piece.ops, ops, bodies.body))
        _remember(self._loops, name, loop)
        if loop.bodies_beyond(kept.kept):
            return self._draft_fragment(kept.piece.ops, unsent)
        return _draft_of(bodies, kept, tuple(sorted(loop.stored)), unsent)

    def _fitting(self, ops: int, unsent: Unsent) -> Piece:
        if self._fits(unsent, ops):
            return Piece(ops)
        limits = self._limits
        ends = np.append(unsent.places, len(unsent.records))[1 : ops + 1] - np.arange(1, ops + 1)
        return largest_fragment(ends, most_ops=limits.program_ops, most_operands=self._most_operands)

    def _fits(self, unsent: Unsent, ops: int) -> bool:
        """Returns whether one program may hold the first ops."""
        limits, operands = self._limits, unsent.end_of(ops) - ops
        if ops > limits.program_ops or operands > limits.program_operands:
            return False
        return operands <= MOST_LEAVES or unsent.count_leaves(ops) <= MOST_LEAVES

    def _that_fit_in_a_frame(self, bodies: RolledBodies, cells: Integers) -> RolledBodies:
        """Returns the first iterations, so many that a frame holds their numbers if all values change in each."""
        numbers = len(bodies.stepped) + int(np.count_nonzero(cells[0] < 0))
        return bodies.first(min(bodies.iterations, self._most_numbers // max(numbers, 1)) or 1)

    def _structure(self, flat: Integers, first: int, signatures: Integers) -> Structure:
        """Returns the structure of a piece. Keeps it, as pieces with the same signatures mostly have one structure."""
        name, ops = signatures.tobytes(), len(signatures)
        known = self._structures.pop(name, None)
        structure = None if known is None else known.of(flat, first, ops)
        if structure is None:
            structure = structure_of(flat, first, ops)
        _remember(self._structures, name, structure)
        return structure


class _Kept(NamedTuple):
    """Bodies of a loop that have results which can be kept together, and what is live of them."""

    piece: Piece
    later: Integers  # the records behind the piece
    liveness: Liveness
    kept: Mapping[int, int]  # see `KeptResults`
    dropped: list[int]  # the handles of results that are kept with others, and that nobody holds


class _Loop(NamedTuple):
    """A known loop. `stored` are the results that its program may store: those carried, handed out, or once live.

    If `is_settled`, they were live of a body behind which another was recorded.
    """

    body: RolledBody
    stored: frozenset[int]
    is_settled: bool
    widenings: int = 0
    last: LastBody | None = None

    def continued(self, bodies: Integers, first: int, ops: int) -> RolledBodies | None:
        """Rolls further iterations of this loop, if these bodies are that, all with the same handles from elsewhere.

        They go on with the loop, or begin it anew with other handles.
        """
        if len(bodies) == 1:
            return self.body.of_one(bodies[0], first, ops)
        if self.last is not None and self.last.goes_on(bodies, first, ops):
            return rolled_on(bodies, self.body)
        return self.body.begun_anew(bodies, first, ops)

    def keeps(self, body: RolledBody, results: Iterable[int]) -> bool:
        """Returns whether settled bodies of this structure have shown that their program stores these results."""
        return self.is_settled and self.body is body and self.stored.issuperset(results)

    def bodies_beyond(self, kept: Mapping[int, int]) -> int:
        """Returns how many of the last bodies have results to keep that the program does not store."""
        return max([bodies for place, bodies in kept.items() if place not in self.stored], default=0)

    def widened(self, results: frozenset[int]) -> _Loop:
        """Returns the loop with a program that stores these results too, unless it was widened too often."""
        if self.widenings == _MOST_WIDENINGS or self.stored.issuperset(results):
            return self._replace(last=None)
        return self._replace(stored=self.stored | results, widenings=self.widenings + 1, last=None)

    @classmethod
    def of(cls, known: _Loop | None, body: RolledBody, stored: frozenset[int], *, is_settled: bool) -> _Loop:
        """Returns the loop after some bodies. `stored` are the results that are carried, or live of them."""
        if known is None or known.body is not body:
            return cls(body, stored, is_settled)
        if is_settled and not known.is_settled:
            return cls(body, stored, is_settled, known.widenings)
        return known.widened(stored) if is_settled == known.is_settled else known


def _kept(piece: Piece, bodies: RolledBodies, unsent: Unsent) -> _Kept:
    """Returns as many of the bodies of `piece` as have results that can be kept together."""
    ops = piece.ops // piece.bodies
    while True:
        _, later = unsent.split(piece.ops)
        liveness = liveness_of(unsent.first, piece.ops, bodies.first(piece.bodies).handles, unsent.dead, later)
        results: KeptResults = kept_results(liveness.live, ops, piece.bodies, unsent.size_bytes_of)
        if results.ends_at == piece.bodies:
            return _Kept(piece, later, liveness, results.kept, [unsent.first + index for index in results.dropped])
        piece = piece.shortened(results.ends_at)


def _draft_of(bodies: RolledBodies, kept: _Kept, live: tuple[int, ...], unsent: Unsent) -> Draft:
    """Drafts bodies of a loop whose program has the live results `live`."""
    piece = kept.piece
    values = unsent.values_of(unsent.split(piece.ops)[0])
    first_values = values[: len(values) // piece.bodies]
    loop_form = LoopForm(
        piece.bodies,
        bodies.body.carried,
        piece.ops // piece.bodies,
        tuple([kept.kept.get(place, 0) for place in live]),
        bodies.first(piece.bodies).stepped,
        steps_of(values, len(first_values)),
    )
    structure = Structure(bodies.body.key, bodies.inputs)
    _, dying, freed, waiting = kept.liveness
    liveness = Liveness(live, dying, [*freed, *kept.dropped], waiting)
    return Draft(piece, unsent.first, structure, liveness, first_values, kept.later, loop_form=loop_form)


def _remember(known: OrderedDict[bytes, T], key: bytes, one: T) -> None:
    """Keeps `one` as the most recently used."""
    known[key] = one
    if len(known) > _MOST_KNOWN:
        known.popitem(last=False)
