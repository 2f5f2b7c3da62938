"""Decides where segments end, so that a loop always gives the same program.

The cutter sees the recorded ops as a list of signature numbers, and takes one *piece* after another from the front of
this list. While a loop goes on, a piece holds whole *bodies* of the loop. A body begins before the op where the fewest
values cross from earlier ops to later ops. So clients that enter the same loop in different ways cut the loop alike.
Ops before the first body, behind the last body, or outside any loop become *fragments*. A body is a program that comes
again, and a fragment is mostly run once. So while the device has work, segments are large, and ops outside a loop wait,
because the loop that they belong to may be found meanwhile.

If the user reads a value at the same op of each body, the cutter rotates the body so that it ends with this op. Then a
read cuts no body in two. Where a read stands in the body depends only on the ops, and never on their timing.

A boundary is *settled* when one more body has been recorded behind it. By then the loop has assigned its variables
anew, so the set of dead results no longer changes. Of a body whose end is not settled, other results may be live than
of the settled bodies. Such a body is cut only if all ops are to be cut. The recorder then takes it off the piece if
the program of the settled bodies does not store these results.

The cutter remembers bodies, so it recognises a loop that comes again by the loop's first whole body. A loop that is too
long for a segment is cut by its inner loops, if these make up most of the loop.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from enum import Enum
from itertools import takewhile
from typing import NamedTuple

import numpy as np

from fusewire._recording.cutting.history import History
from fusewire._recording.cutting.known_bodies import Found, KnownBodies, openings_of, place_of
from fusewire._recording.cutting.loop_period import (
    LEAST_COVERAGE,
    Period,
    bodies_of_a_call,
    choose_rotation,
    find_period,
    ops_in_loops,
)
from fusewire._recording.integer_scans import places_of_signatures
from fusewire._recording.signature import signature_of
from fusewire._recording.tape import Integers

LEAST_SEGMENT_OPS = 64
LARGEST_SEGMENT_OPS = 1024  # of ops outside loops, and of a body
LARGEST_LOOP_OPS = 16384  # of all bodies of a piece
FRAGMENT_OPS = 256  # ops outside a loop are cut into fragments of this length, or down to half of it
HISTORY_OPS = 4096
KNOWN_BODIES = 32

_LONGEST_BODY_OPS = HISTORY_OPS // 2  # a loop is found once two bodies of it are recorded
_OPS_OF_TWO_CALLS = 2 * FRAGMENT_OPS  # of a network whose calls are bodies
_READS_THAT_ROTATE = 2  # so many reads at one op of the body rotate it; a single read may stand at the end of the loop


class CutScope(Enum):
    """How much of the unsent ops may be cut now."""

    SETTLED = "settled"  # whole bodies up to a settled boundary; outside a loop, fragments
    PAUSED = "paused"  # all, but before an incomplete body only up to a settled boundary: recording has paused
    CANCELLED = "cancelled"  # all: the ops are to be cancelled
    EVERYTHING = "everything"  # all: the user has asked for a value


class Piece(NamedTuple):
    """The next ops to become a segment."""

    ops: int
    bodies: int = 0  # the number of whole bodies; 0 in a fragment

    @property
    def is_fragment(self) -> bool:
        return self.bodies == 0

    def shortened(self, bodies: int) -> Piece:
        """Returns the first bodies of this piece."""
        return Piece(self.ops // self.bodies * bodies, bodies)


class RecentRecords(NamedTuple):
    """The last records, sent or not, one behind the other; `first` is the number of the first op."""

    flat: Integers
    first: int


LookBack = Callable[[int], RecentRecords]  # takes the number of ops whose records it returns


class Cutter:
    """Decides where the segments of one recorder end, and remembers its loops. Ops are given as signature numbers.

    Not thread-safe.
    """

    def __init__(self) -> None:
        self._body: Integers | None = None
        self._lead_ops = 0  # while in a loop: unsent ops before the next body begins
        self._reads: list[int] = []  # while in a loop: for the last reads, ops from the read to the next body
        self._looped_ops: int | None = None  # while in a loop: its sent ops, until `_enter_calls` has looked at them
        self._known = KnownBodies(KNOWN_BODIES)
        self._unsent: Integers = np.empty(0, np.int64)  # the unsent ops at the last call of `next_piece`
        self._sent = History.empty(HISTORY_OPS)  # the last sent ops, as many as a search for a loop needs
        self._of_loops: OrderedDict[bytes, bool] = OrderedDict()  # a body too long for a segment -> see `_is_of_loops`
        self._searched_ops = 0  # the number of unsent ops at the last search that found no loop

    def ops_to_boundary(self, least_ops: int) -> int | None:
        """Returns how many ops the next piece will have if the loop goes on, or None while there is no loop."""
        if self._body is None:
            return None
        return self._lead_ops or _least_bodies(len(self._body), least_ops) * len(self._body)

    def ops_to_next_look(self, unsent_ops: int, boundary_ops: int | None) -> int:
        """Returns the number of unsent ops at which `next_piece` is to be called again.

        `boundary_ops` is what `ops_to_boundary` returns.
        """
        if self._body is None or boundary_ops is None:
            return next(ops for ops in _doubling(LEAST_SEGMENT_OPS) if ops > unsent_ops)
        return max(boundary_ops + len(self._body), unsent_ops) + 1

    def may_cut(self, unsent_ops: int, scope: CutScope) -> bool:
        """Returns False if `next_piece` would return None, or if there are too few unsent ops to search for a loop."""
        if scope is not CutScope.SETTLED:
            return True
        if self._body is None:
            return unsent_ops >= LEAST_SEGMENT_OPS
        return unsent_ops > (self._lead_ops or len(self._body)) + len(self._body)

    def next_piece(
        self, unsent: Integers, scope: CutScope, least_ops: int, look_back: LookBack, repeat: Found | None = None
    ) -> Piece | None:
        """Returns the first ops of `unsent` that are to become a segment, or None if all unsent ops should wait.

        `unsent` is not empty. While a loop goes on, pieces of fewer than `least_ops` ops wait. Outside a loop,
        fragments wait until there are `least_ops` unsent ops. `look_back` returns the records up to the last unsent
        one. `repeat` is the first recorded body among the unsent ops: it is a loop, whatever stands before or in it.
        """
        self._unsent = unsent
        if self._is_broken(unsent):
            self._leave(unsent, look_back, repeat)
        elif self._body is None and len(unsent) != self._searched_ops:
            self._enter(unsent, look_back, repeat)
        elif self._body is not None and self._looped_ops is not None and self._looped_ops >= _OPS_OF_TWO_CALLS:
            self._enter_calls(self._body, unsent, look_back)
        if self._body is None and scope is not CutScope.SETTLED:
            self._search_before(len(unsent) - 1, unsent, look_back)
        if self._body is None:
            self._searched_ops = len(unsent)
            return _piece_of_no_loop(unsent, scope, least_ops)
        return self._piece_of_loop(self._body, unsent, scope, least_ops)

    @property
    def body(self) -> Integers | None:
        """The signatures of the loop's body, in an array of its own; None while there is no loop."""
        return self._body

    def take_body(self, body: Integers) -> bool:
        """Returns whether the unsent ops, which are those of one `body`, are to become a segment of it.

        It does what `next_piece` would do if all unsent ops were cut.
        """
        may_be_of_calls = self._looped_ops is not None and self._looped_ops >= _OPS_OF_TWO_CALLS
        if self._body is not body or self._lead_ops or may_be_of_calls:
            return False
        self._unsent = body
        return True

    def cut(self, piece: Piece) -> None:
        """Notes that `piece`, the last piece returned, has become a segment."""
        sent = self._sent.followed_by(self._unsent[: piece.ops])
        lead_ops, searched_ops = self._lead_ops - piece.ops, self._searched_ops - piece.ops
        looped_ops = None if self._looped_ops is None else self._looped_ops + piece.ops
        if self._body is not None and lead_ops < 0:
            lead_ops %= len(self._body)
        # All fields are assigned at the end, because a signal handler may raise between two statements.
        self._sent, self._lead_ops, self._searched_ops = sent, lead_ops, searched_ops
        self._looped_ops = looped_ops

    def note_end(self, scope: CutScope) -> None:
        """Notes that all ops are cut. After two reads at one op of the body, rotates the body to end with this op."""
        if scope is not CutScope.EVERYTHING or self._body is None:
            return
        lead = self._lead_ops
        self._reads = [*self._reads, lead][-_READS_THAT_ROTATE:]
        if lead == 0 or self._reads != [lead] * _READS_THAT_ROTATE:
            return
        self._known.drop(self._body)
        self._begin(np.roll(self._body, lead), 0)

    def rotate(self, ops: int) -> None:
        """Rotates the body to begin behind its first `ops` ops. The next body stands first among the unsent ops."""
        assert self._body is not None
        self._known.drop(self._body)
        self._begin(np.roll(self._body, -ops), ops)

    def _piece_of_loop(self, body: Integers, unsent: Integers, scope: CutScope, least_ops: int) -> Piece | None:
        length, lead = len(body), self._lead_ops
        looped = _count_looped(body, unsent[lead:])
        bodies = looped // length
        runs_on = lead + looped >= len(unsent)
        is_within_body = runs_on and (looped % length > 0 or len(unsent) < lead)
        takes_all = scope in (CutScope.CANCELLED, CutScope.EVERYTHING) or (
            scope is CutScope.PAUSED and not is_within_body
        )
        if bodies == 0:
            return Piece(min(len(unsent), LARGEST_SEGMENT_OPS)) if takes_all else None
        if lead:
            is_due = takes_all or len(unsent) > lead + length
            return Piece(min(lead, LARGEST_SEGMENT_OPS)) if is_due else None
        settled = min(bodies, (len(unsent) - 1) // length - 1)
        ready = bodies if takes_all else settled
        if ready < (_least_bodies(length, least_ops) if runs_on and scope is CutScope.SETTLED else 1):
            return None
        ready = min(ready, max(LARGEST_LOOP_OPS // length, 1))
        return Piece(ready * length, ready)

    def _is_broken(self, unsent: Integers) -> bool:
        if self._body is None:
            return False
        following = unsent[self._lead_ops : self._lead_ops + len(self._body)]
        return not _begins_with(self._body, following)

    def _leave(self, unsent: Integers, look_back: LookBack, repeat: Found | None) -> None:
        """Leaves the loop, which has ended. Enters its outer loop if that fits in a segment, or else any other loop."""
        assert self._body is not None
        left, self._body = self._body, None
        self._known.drop(left)
        is_in_any = self._search(unsent, look_back, longest=LARGEST_SEGMENT_OPS)
        if self._body is None or len(self._body) <= len(left):
            self._known.add(left)
        if self._body is None:
            self._enter(unsent, look_back, repeat, may_be_new=is_in_any)

    def _enter(self, unsent: Integers, look_back: LookBack, repeat: Found | None, *, may_be_new: bool = True) -> None:
        """Enters a known loop that occurs in the unsent ops, or else searches for a new loop.

        Another loop may stand before a known one: such as the iterations of a call that has more of them than calls
        before, whose bodies hold all iterations of a call.
        """
        known = repeat or self._known.find_in(unsent)
        if known is None:
            if may_be_new:
                self._search(unsent, look_back, longest=_LONGEST_BODY_OPS)
        elif known.place < LEAST_COVERAGE or not self._search_before(known.place, unsent, look_back):
            self._begin(known.body, known.place)

    def _enter_calls(self, layer: Integers, unsent: Integers, look_back: LookBack) -> None:
        """Enters the calls of a network, if the loop's bodies have turned out to be its layers.

        Most loops are entered before their bodies can show that.
        """
        self._looped_ops = None
        period = find_period(self._last_signatures(unsent), LARGEST_SEGMENT_OPS)
        if period is not None and _layers_of_a_call(period, look_back) > 1:
            self._known.drop(layer)
            self._search(unsent, look_back, longest=LARGEST_SEGMENT_OPS)

    def _search_before(self, place: int, unsent: Integers, look_back: LookBack) -> bool:
        """Enters a new loop that ends among the unsent ops up to a place. Returns False if none is found.

        Ops behind the loop hide its period. So searches again without the last op before the place, without the last
        two, the last four and so on.
        """
        for end in (place, *[place - ops for ops in takewhile(lambda ops: ops < place, _doubling(1))]):
            if end < LEAST_COVERAGE:
                break
            later_ops = len(unsent) - end

            def look_back_from_end(ops: int, later_ops: int = later_ops) -> RecentRecords:
                past = look_back(ops + later_ops)
                return past._replace(flat=past.flat[: places_of_signatures(past.flat)[ops]])

            self._search(unsent[:end], look_back_from_end, longest=LARGEST_SEGMENT_OPS)
            if self._body is not None:
                if self._is_broken(unsent):  # its next body would begin where other ops stand already
                    self._body = None
                return self._body is not None
        return False

    def _search(self, unsent: Integers, look_back: LookBack, *, longest: int) -> bool:
        """Enters a new loop with a body of at most `longest` ops, if any. Returns False if there is no loop at all."""
        signatures = self._last_signatures(unsent)
        period = find_period(signatures, _LONGEST_BODY_OPS)
        if period is None:
            return False
        if period.length > LARGEST_SEGMENT_OPS and (
            period.length > longest or self._is_of_loops(signatures[-period.length :])
        ):
            period = find_period(signatures, LARGEST_SEGMENT_OPS)
        if period is None:
            return True
        # Of a network a body is a call: it binds the weights as inputs, which a loop over layers would step through.
        period = period._replace(length=period.length * _layers_of_a_call(period, look_back))
        length = period.length
        rotation = choose_rotation(*look_back(2 * length))
        start = len(signatures) - 2 * length + rotation
        body = signatures[start : start + length]
        self._begin(body, _first_place(body, unsent, _lead(len(unsent), period, -rotation % length)))
        return True

    def _last_signatures(self, unsent: Integers) -> Integers:
        """Returns the signatures of the last ops, as many as a search for a loop needs."""
        return np.concatenate((self._sent.items, unsent))[-HISTORY_OPS:]

    def _is_of_loops(self, body: Integers) -> bool:
        """Returns whether inner loops make up at least half of a long body.

        The answer takes long to compute, so it is remembered. It also holds for rotations of the body.
        """
        raw = body.tobytes()
        known = next((known for known in self._of_loops if _is_rotation(known, raw)), raw)
        if known not in self._of_loops:
            self._of_loops[known] = 2 * ops_in_loops(body, LARGEST_SEGMENT_OPS) >= len(body)
        self._of_loops.move_to_end(known)
        if len(self._of_loops) > KNOWN_BODIES:
            self._of_loops.popitem(last=False)
        return self._of_loops[known]

    def _begin(self, body: Integers, lead_ops: int) -> None:
        self._body, self._lead_ops, self._reads, self._looped_ops = body, lead_ops, [], 0
        self._known.add(body)


def largest_fragment(ends: Integers, *, most_ops: int, most_operands: int) -> Piece:
    """Returns the largest fragment that one program may hold, of at least one op.

    `ends` holds for each op of the piece the number of operands of all ops up to and including this op.
    """
    return Piece(max(min(int(np.searchsorted(ends, most_operands, side="right")), most_ops), 1))


def _piece_of_no_loop(unsent: Integers, scope: CutScope, least_ops: int) -> Piece | None:
    if scope is not CutScope.SETTLED:
        return Piece(min(len(unsent), LARGEST_SEGMENT_OPS))
    is_due = len(unsent) >= max(FRAGMENT_OPS, min(least_ops, LARGEST_SEGMENT_OPS))
    return Piece(_fragment_ops(unsent)) if is_due else None


def _fragment_ops(unsent: Integers) -> int:
    """Returns how many ops the next fragment has. It ends before the opening with the least hash in its second half.

    So the steps of a loop that is too long to be found mostly give the same fragments, wherever a step begins, and in
    every client.
    """
    least = FRAGMENT_OPS // 2
    checksums = [signature_of(number).checksum for number in unsent[least:FRAGMENT_OPS].tolist()]
    return least + int(openings_of(np.array(checksums, np.int64)).argmin())


def _layers_of_a_call(period: Period, look_back: LookBack) -> int:
    """Returns how many bodies are the layers that a call of a network has: 1 if they are none, or for a long call."""
    bodies = min(period.coverage, _OPS_OF_TWO_CALLS) // period.length
    return bodies_of_a_call(*look_back(bodies * period.length), period.length) if bodies > 1 else 1


def _lead(unsent_ops: int, period: Period, tail_ops: int) -> int:
    """Returns how many unsent ops precede the first body, if the last `tail_ops` ops begin a body."""
    usable = min(unsent_ops, period.coverage)
    if usable < tail_ops:
        return unsent_ops - tail_ops + period.length
    bodies = (usable - tail_ops) // period.length
    return unsent_ops - tail_ops - bodies * period.length


def _first_place(body: Integers, unsent: Integers, lead_ops: int) -> int:
    """Returns how many ops precede the first body, which may belong to an earlier run of the loop.

    `lead_ops` precede the run at the end of the unsent ops.
    """
    if lead_ops < LEAST_COVERAGE:
        return lead_ops
    place = place_of(body.tobytes(), unsent[:lead_ops].tobytes())
    return lead_ops if place is None else place


def _count_looped(body: Integers, signatures: Integers) -> int:
    """Returns how many ops at the beginning of `signatures` repeat `body`; the last body may be incomplete."""
    length = len(body)
    head = signatures[:length]
    if not _begins_with(body, head):
        return int((head != body[: len(head)]).argmax())
    if len(signatures) <= length:
        return len(signatures)
    differs = signatures[length:] != signatures[:-length]
    same = int(differs.argmax())
    return length + same if differs[same] else len(signatures)


def _begins_with(body: Integers, head: Integers) -> bool:
    """Returns whether `body` begins with `head`. Compares bytes: on short arrays NumPy takes ten times as long."""
    return head.tobytes() == body[: len(head)].tobytes()


def _is_rotation(known: bytes, body: bytes) -> bool:
    """Returns whether `body` is a rotation of `known`, so that both are bodies of one loop."""
    return len(known) == len(body) and place_of(known, body * 2) is not None


def _least_bodies(length: int, least_ops: int) -> int:
    """Returns how many bodies of `length` ops make the smallest segment that is sent while the loop goes on."""
    return max(-(-least_ops // length), 1)


def _doubling(start: int) -> Iterator[int]:
    while True:
        yield start
        start *= 2
