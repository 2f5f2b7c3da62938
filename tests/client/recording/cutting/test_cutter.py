"""Where segments end: the cutter alone, fed with ops of made-up loops."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire._recording.cutting import cutter as _cut
from fusewire._recording.cutting.cutter import (
    FRAGMENT_OPS,
    HISTORY_OPS,
    KNOWN_BODIES,
    LARGEST_LOOP_OPS,
    LARGEST_SEGMENT_OPS,
    LEAST_SEGMENT_OPS,
    CutScope,
    Cutter,
    Piece,
    RecentRecords,
    largest_fragment,
)
from fusewire._recording.cutting.known_bodies import Found
from fusewire._recording.cutting.loop_period import Period, find_period, ops_in_loops
from fusewire._recording.signature import intern_signature, intern_spec
from fusewire._recording.tape import FIRST_HANDLE, Integers
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Spec
from tests.client.recording.records import Record, flatten

FIRST = FIRST_HANDLE + 1
_NAMES = ("add", "multiply", "subtract", "maximum", "minimum", "divide", "equal", "less", "greater", "not_equal")


def signature(place: int) -> int:
    """The number of some signature, another one for each place."""
    spec = intern_spec(Spec(dtypes.float32, (place // len(_NAMES) + 1,)), 1 << 30)
    return intern_signature(BY_NAME[_NAMES[place % len(_NAMES)]], (spec, spec), ()).number


def chain(places: Sequence[int]) -> list[Record]:
    """Ops of which each takes the result of the one before."""
    return [(signature(place), FIRST + index - 1, FIRST + index - 1) for index, place in enumerate(places)]


class Feed:
    """A cutter and the ops recorded for it, as a recorder would hold them."""

    def __init__(self) -> None:
        self.cutter = Cutter()
        self.places: list[int] = []
        self.sent = 0
        self.pieces: list[Piece] = []
        self.repeats: list[tuple[int, list[int]]] = []  # each the index of its first op, and its places

    def repeat(self, places: list[int]) -> None:
        """Records a body again."""
        self.repeats.append((len(self.places), places))
        self.places += places

    def record(self, places: Sequence[int]) -> None:
        self.places += places

    def cut(self, scope: CutScope = CutScope.SETTLED, least_ops: int = LEAST_SEGMENT_OPS) -> list[Piece]:
        """Cuts all that is to be cut now."""
        cut: list[Piece] = []
        while (piece := self._next(scope, least_ops)) is not None:
            self.cutter.cut(piece)
            self.sent += piece.ops
            cut.append(piece)
        self.pieces += cut
        return cut

    def run(self, places: Sequence[int], least_ops: int = LEAST_SEGMENT_OPS) -> None:
        """Records op by op, and looks whenever the cutter asks for it."""
        for place in places:
            self.places.append(place)
            unsent = len(self.places) - self.sent
            if unsent >= self.ops_to_next_look(unsent - 1, least_ops):
                self.cut(least_ops=least_ops)

    def ops_to_next_look(self, unsent_ops: int, least_ops: int) -> int:
        return self.cutter.ops_to_next_look(unsent_ops, self.cutter.ops_to_boundary(least_ops))

    def _next(self, scope: CutScope, least_ops: int) -> Piece | None:
        if len(self.places) == self.sent:
            self.cutter.note_end(scope)
            return None
        if not self.cutter.may_cut(len(self.places) - self.sent, scope):
            return None
        self.repeats = [each for each in self.repeats if each[0] >= self.sent]
        repeat = None
        if self.repeats:
            first, places = self.repeats[0]
            repeat = Found(first - self.sent, np.array([signature(place) for place in places], np.int64))
        return self.cutter.next_piece(self.unsent(), scope, least_ops, self.look_back, repeat)

    def unsent(self) -> Integers:
        return np.array([signature(place) for place in self.places[self.sent :]], np.int64)

    def look_back(self, ops: int) -> RecentRecords:
        return RecentRecords(flatten(chain(self.places)[-ops:]), FIRST + len(self.places) - ops)


BODY = list(range(6))


def test_a_steady_loop_is_cut_into_whole_bodies() -> None:
    feed = Feed()
    feed.run(BODY * 500)
    assert all(piece.ops == 6 * piece.bodies for piece in feed.pieces)


def test_a_boundary_is_cut_only_once_one_more_body_is_recorded() -> None:
    feed = Feed()
    feed.record(BODY * 16)
    assert feed.cut(least_ops=96) == []
    feed.record(BODY)
    assert feed.cut(least_ops=96) == []
    feed.record(BODY[:1])
    assert feed.cut(least_ops=96) == [Piece(96, bodies=16)]


def test_the_next_look_is_when_the_least_segment_is_settled() -> None:
    feed = Feed()
    feed.record(BODY * 40)
    feed.cut()
    unsent = len(feed.places) - feed.sent
    look = feed.ops_to_next_look(unsent, LEAST_SEGMENT_OPS)
    feed.record((BODY * 40)[: look - unsent - 1])
    assert feed.cut() == []
    feed.record([feed.places[-6]])
    assert len(feed.cut()) == 1


def test_short_credit_makes_segments_large() -> None:
    feed = Feed()
    feed.record(BODY * 400)
    assert feed.cut(least_ops=LARGEST_SEGMENT_OPS)[0] == Piece(398 * 6, bodies=398)


@pytest.mark.parametrize("scope", [CutScope.CANCELLED, CutScope.EVERYTHING])
def test_what_takes_all_cuts_all_bodies_and_what_follows_as_a_fragment(scope: CutScope) -> None:
    feed = Feed()
    feed.record(BODY * 12 + BODY[:2])
    assert feed.cut(scope) == [Piece(12 * 6, bodies=12), Piece(2)]


def read_loop(feed: Feed, reads: Sequence[int], times: int, scope: CutScope = CutScope.EVERYTHING) -> None:
    """Runs a loop of six ops on, and asks for a value after so many ops in turn, again and again."""
    for ops in list(reads) * times:
        begun = len(feed.places)
        feed.run([BODY[place % 6] for place in range(begun, begun + ops)])
        feed.cut(scope)


@pytest.mark.parametrize("bodies", [1, 10, 50])
@pytest.mark.parametrize("prologue", range(6))
def test_bodies_are_turned_to_end_where_values_are_read(prologue: int, bodies: int) -> None:
    feed = Feed()
    read_loop(feed, [prologue + 6 * 12], 1)
    read_loop(feed, [6 * bodies], 4)
    seen = len(feed.pieces)
    read_loop(feed, [6 * bodies], 4)
    assert not any(piece.is_fragment for piece in feed.pieces[seen:])
    assert len(set(feed.pieces[seen:])) <= 3


@pytest.mark.parametrize(
    ("reads", "scope"),
    [([10, 8], CutScope.EVERYTHING), ([6 * 13 + 2] + [6 * 2] * 3, CutScope.CANCELLED)],
    ids=["read", "cancelled"],
)
def test_only_reads_at_one_place_turn_bodies(reads: list[int], scope: CutScope) -> None:
    feed = Feed()
    feed.run(BODY * 40)
    feed.cut(CutScope.EVERYTHING)
    read_loop(feed, reads, 3, scope)
    feed.record([BODY[place % 6] for place in range(len(feed.places), len(feed.places) + 6 * 20)])
    whole = next(piece for piece in feed.cut() if not piece.is_fragment)
    begin = feed.sent - sum(piece.ops for piece in feed.pieces[feed.pieces.index(whole, -3) :])
    assert feed.places[begin % 6] == BODY[0]


def test_bodies_behind_which_enough_was_recorded_need_no_last_one_of_its_own() -> None:
    feed = Feed()
    feed.record(BODY * 16)
    feed.cut(least_ops=LARGEST_SEGMENT_OPS)
    feed.record(list(range(50, 60)))
    assert feed.cut(CutScope.EVERYTHING) == [Piece(16 * 6, bodies=16), Piece(10)]


def test_after_a_demand_within_a_body_its_rest_is_one_fragment() -> None:
    feed = Feed()
    feed.record(BODY * 12 + BODY[:2])
    feed.cut(CutScope.EVERYTHING)
    feed.record(BODY[2:] + BODY * 20)
    assert feed.cut()[:2] == [Piece(4), Piece(18 * 6, bodies=18)]


def test_a_pause_at_the_end_of_a_body_cuts_all_of_it() -> None:
    feed = Feed()
    feed.record(BODY * 12)
    feed.cut(CutScope.PAUSED)
    assert feed.sent == 12 * 6


def test_a_pause_within_a_body_leaves_what_is_not_settled() -> None:
    feed = Feed()
    feed.record(BODY * 12 + BODY[:2])
    feed.cut(CutScope.PAUSED)
    assert feed.sent <= 11 * 6
    assert all(not piece.is_fragment for piece in feed.pieces)


def test_a_loop_that_comes_again_is_recognised_by_its_first_body() -> None:
    feed = Feed()
    feed.run(BODY * 40)
    feed.cut(CutScope.EVERYTHING)
    feed.record(list(range(70, 80)))
    feed.cut(CutScope.EVERYTHING)
    feed.record([90, 91, *BODY * 11])
    assert feed.cut(CutScope.SETTLED, least_ops=1)[0] == Piece(2)


def test_a_loop_before_a_known_one_is_found_as_well() -> None:
    """A call of 32 iterations and a read is a body; then a call has 256 of them."""
    feed, body, read = Feed(), list(range(5)), [9]
    for _ in range(4):
        feed.run(body * 32 + read)
        feed.cut(CutScope.EVERYTHING)
    assert feed.cutter._body is not None
    assert len(feed.cutter._body) == 161
    feed.record(body * 256 + read)
    pieces = feed.cut(CutScope.EVERYTHING)
    assert sum(piece.ops for piece in pieces if piece.is_fragment) <= 1 + len(body)
    assert {piece.ops // piece.bodies for piece in pieces if not piece.is_fragment} == {5}


def test_a_loop_is_found_before_ops_that_end_a_call() -> None:
    feed, body = Feed(), list(range(6))
    feed.record([*body * 100, 20, 21, 22])
    assert feed.cut(CutScope.EVERYTHING) == [Piece(600, 100), Piece(3)]


def test_an_earlier_run_of_a_loop_is_found_with_the_last() -> None:
    feed, body = Feed(), list(range(6))
    feed.record([*body * 100, 20, 21, *body * 90, 22, *body * 50])
    assert feed.cut(CutScope.EVERYTHING) == [Piece(600, 100), Piece(2), Piece(540, 90), Piece(1), Piece(300, 50)]


def fragments_of(feed: Feed) -> list[tuple[int, ...]]:
    """The ops of each piece, all of which are fragments."""
    assert all(piece.is_fragment for piece in feed.pieces)
    ends = np.cumsum([piece.ops for piece in feed.pieces]).tolist()
    return [tuple(feed.places[end - piece.ops : end]) for end, piece in zip(ends, feed.pieces, strict=True)]


def test_ops_in_no_loop_are_cut_into_fragments_of_some_length() -> None:
    feed = Feed()
    feed.run([place * place % 9973 for place in range(2 * FRAGMENT_OPS + 10)])
    assert len(fragments_of(feed)) >= 2
    assert all(FRAGMENT_OPS // 2 <= piece.ops < FRAGMENT_OPS for piece in feed.pieces)


def test_while_segments_shall_be_large_ops_in_no_loop_wait_as_long_and_are_cut_alike() -> None:
    places = [place * place % 9973 for place in range(LARGEST_SEGMENT_OPS + 2)]
    feed, other = Feed(), Feed()
    feed.run(places[:-3], LARGEST_SEGMENT_OPS)
    assert feed.pieces == []
    feed.run(places[-3:], LARGEST_SEGMENT_OPS)
    assert len(feed.pieces) == 1
    feed.cut()  # now they may be small, as when the device idles
    other.run(places)
    other.cut()
    assert feed.pieces == other.pieces


def test_steps_too_long_for_a_loop_are_cut_alike_wherever_they_begin() -> None:
    step = [place * place % 9973 for place in range(HISTORY_OPS // 2 + 100)]
    feed = Feed()
    feed.run(step * 3)
    known = set(fragments_of(feed))
    feed.run(step * 5)
    assert set(fragments_of(feed)) == known


def test_a_loop_found_in_what_waits_is_never_cut_into_fragments() -> None:
    body = [place * place % 9973 for place in range(LARGEST_SEGMENT_OPS // 2)]
    feed = Feed()
    feed.run(body * 6, LARGEST_SEGMENT_OPS)
    assert [piece for piece in feed.pieces if piece.is_fragment] == []
    assert Piece(len(body) * 2, bodies=2) in feed.pieces


def test_a_body_longer_than_a_fragment_is_found_in_what_was_sent() -> None:
    body = [place * place % 9973 for place in range(700)]
    feed = Feed()
    feed.run(body * 6)
    assert Piece(700, bodies=1) in feed.pieces


def test_no_body_longer_than_half_the_history_is_looked_for() -> None:
    feed = Feed()
    feed.run(list(range(HISTORY_OPS // 2 + 10)) * 2)
    assert all(piece.is_fragment for piece in feed.pieces)


def test_equal_layers_do_not_hide_the_step_they_stand_in() -> None:
    step = [20, 21] + [1, 2, 3] * 30 + [30, 31, 32]
    feed = Feed()
    feed.run(step * 12)
    assert Piece(len(step), bodies=1) in feed.pieces[-6:]
    assert [piece for piece in feed.pieces[-3:] if piece.ops % len(step)] == []


STEP = list(range(10))


def test_a_loop_too_long_for_a_segment_is_cut_into_the_loop_within_it() -> None:
    feed = Feed()
    for _ in range(5):
        feed.run(STEP * 128 + [40])
        feed.cut(CutScope.EVERYTHING)
    assert all(len(STEP) * piece.bodies == piece.ops for piece in feed.pieces if not piece.is_fragment)
    assert {piece.ops for piece in feed.pieces if piece.is_fragment} == {1}


def test_a_loop_too_long_for_a_segment_without_loops_in_it_is_one_piece() -> None:
    body = [place * place % 9973 for place in range(1500)]
    feed = Feed()
    feed.run(body * 6)
    assert Piece(1500, bodies=1) in feed.pieces
    assert all(piece.ops <= LARGEST_SEGMENT_OPS for piece in feed.pieces if piece.is_fragment)


LONG = 1500


def test_whether_a_long_loop_consists_of_loops_is_seen_for_each_of_one_length() -> None:
    feed = Feed()
    feed.run((STEP * (LONG // 10 - 1) + list(range(40, 50))) * 3)
    feed.cut(CutScope.EVERYTHING)
    seen = len(feed.pieces)
    feed.run([place * place % 9973 for place in range(LONG)] * 6)
    assert Piece(LONG, bodies=1) in feed.pieces[seen:]


def test_whether_a_long_loop_consists_of_loops_is_seen_once_wherever_it_is_looked_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[Integers] = []

    def see(body: Integers, longest: int) -> int:
        seen.append(body)
        return ops_in_loops(body, longest)

    monkeypatch.setattr(_cut, "ops_in_loops", see)
    feed = Feed()
    for _ in range(10):
        feed.run(STEP * 100 + list(range(40, 540)))
    assert len(seen) == 1


def test_no_more_long_loops_are_remembered_than_bodies() -> None:
    cutter = Cutter()
    for first in range(KNOWN_BODIES + 5):
        cutter._is_of_loops(np.arange(first, first + LONG))
    assert len(cutter._of_loops) == KNOWN_BODIES


@pytest.fixture
def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How long a body each search for a new loop was for."""
    seen: list[int] = []

    def search(items: Integers, longest: int) -> Period | None:
        seen.append(longest)
        return find_period(items, longest)

    monkeypatch.setattr(_cut, "find_period", search)
    return seen


def test_what_was_searched_in_vain_is_searched_again_once_an_op_is_recorded(searches: list[int]) -> None:
    feed, most = Feed(), LARGEST_SEGMENT_OPS
    feed.record(
        list(range(most + FRAGMENT_OPS // 2 - 8))
    )  # a fragment leaves too few ops for another, and for one more
    assert len(feed.cut(least_ops=most)) == 1
    assert len(searches) == 1
    feed.record([9999])
    assert feed.cut(least_ops=most) == []
    assert len(searches) == 2


def test_as_a_loop_is_left_for_none_one_search_tells_that_there_is_none(searches: list[int]) -> None:
    feed = Feed()
    feed.run(BODY * 40)
    feed.cut(CutScope.EVERYTHING)
    searches.clear()
    feed.record(list(range(70, 200)))
    feed.cut()
    assert len(searches) == 1


def test_a_loop_that_ends_within_its_body_before_a_known_loop_is_not_searched_at_every_op(searches: list[int]) -> None:
    feed, known, body = Feed(), [40, 41] * 100, list(range(50, 178))
    feed.run(known + list(range(200, 600)))
    feed.cut(CutScope.EVERYTHING)
    feed.run(body * 20, LARGEST_SEGMENT_OPS)
    searches.clear()
    feed.run(body[:100] + known + list(range(600, 1600)), LARGEST_SEGMENT_OPS)
    assert len(searches) < 10


@given(
    prologue=st.integers(0, 100),
    looks=st.lists(st.tuples(st.integers(1, 100), st.sampled_from([CutScope.SETTLED, CutScope.PAUSED])), max_size=30),
)
def test_whenever_the_device_idles_a_loop_gives_whole_bodies(prologue: int, looks: list[tuple[int, CutScope]]) -> None:
    feed = Feed()
    feed.run(list(range(100, 100 + prologue)) + BODY * 40)
    feed.cut()
    begun = len(feed.pieces)
    for ops, scope in looks:
        read_loop_on = len(feed.places) - prologue
        feed.run([BODY[place % 6] for place in range(read_loop_on, read_loop_on + ops)])
        feed.cut(scope)
    assert all(piece.ops == 6 * piece.bodies for piece in feed.pieces[begun:])


@pytest.mark.parametrize("prologue", [[], [40], list(range(40, 77)), BODY[3:]])
def test_clients_with_other_prologues_get_the_same_bodies(prologue: list[int]) -> None:
    feed = Feed()
    feed.run(prologue + BODY * 60)
    whole = [piece for piece in feed.pieces if not piece.is_fragment]
    start = sum(piece.ops for piece in feed.pieces) - sum(piece.ops for piece in whole)
    plain = Feed()
    plain.run(BODY * 60)
    plain_start = sum(piece.ops for piece in plain.pieces if piece.is_fragment)
    assert feed.places[start : start + 6] == plain.places[plain_start : plain_start + 6]


@given(
    loops=st.lists(
        st.tuples(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.integers(1, 40)), min_size=1, max_size=6
    ),
    least_ops=st.sampled_from([1, LEAST_SEGMENT_OPS, LARGEST_SEGMENT_OPS]),
)
def test_every_op_is_cut_exactly_once_whatever_is_recorded(loops: list[tuple[list[int], int]], least_ops: int) -> None:
    feed = Feed()
    for body, repeats in loops:
        feed.record(body * repeats)
        feed.cut(least_ops=least_ops)
        assert 0 <= feed.sent <= len(feed.places)
    feed.cut(CutScope.EVERYTHING)
    assert feed.sent == len(feed.places)
    assert all(0 < piece.ops <= (LARGEST_LOOP_OPS if piece.bodies else LARGEST_SEGMENT_OPS) for piece in feed.pieces)


@given(st.lists(st.integers(0, 3), min_size=1, max_size=200))
def test_the_next_look_is_always_ahead(places: list[int]) -> None:
    feed = Feed()
    for place in places:
        unsent = len(feed.places) - feed.sent
        assert feed.ops_to_next_look(unsent, LEAST_SEGMENT_OPS) > unsent
        feed.run([place])


def test_a_body_may_be_turned_to_begin_at_another_op() -> None:
    feed = Feed()
    feed.record(BODY * 40)
    feed.cutter.next_piece(feed.unsent(), CutScope.SETTLED, 1, feed.look_back)
    feed.cutter.rotate(2)
    assert feed.cut()[:2] == [Piece(2), Piece(6 * 38, 38)]


def test_a_piece_has_no_more_ops_than_a_loop_may_have() -> None:
    feed = Feed()
    feed.record(BODY * 40)
    feed.cut()
    feed.record(BODY * (LARGEST_LOOP_OPS // 6 + 40))
    assert feed.cut()[0].bodies == LARGEST_LOOP_OPS // 6


# ---- operands ----


def test_a_fragment_is_cut_before_the_op_that_would_take_too_many_operands() -> None:
    ends = np.array([2, 4, 14, 16])
    cut = [largest_fragment(ends, most_ops=4, most_operands=most) for most in (16, 15, 13, 1)]
    assert cut == [Piece(4), Piece(3), Piece(2), Piece(1)]


def test_a_fragment_has_no_more_ops_than_a_program_may_have() -> None:
    assert largest_fragment(np.arange(2, 50, 2), most_ops=5, most_operands=1000) == Piece(5)


# ---- recorded bodies ----


def test_a_recorded_body_is_a_loop_from_its_first_use_on() -> None:
    feed = Feed()
    feed.record([30, 31, 32])
    feed.repeat([*BODY, *BODY, 7])
    assert feed.cut(CutScope.EVERYTHING) == [Piece(3), Piece(13, 1)]
    feed.repeat([*BODY, *BODY, 7])
    assert feed.cut(CutScope.EVERYTHING) == [Piece(13, 1)]


def test_uses_of_a_recorded_body_longer_than_a_segment_are_cut_as_whole_bodies() -> None:
    feed = Feed()
    long = [*range(LARGEST_SEGMENT_OPS)] * 3
    for _ in range(3):
        feed.repeat(long)
    assert feed.cut(CutScope.EVERYTHING) == [Piece(3 * len(long), 3)]


def test_two_recorded_bodies_in_turns_become_one_loop() -> None:
    feed = Feed()
    for _ in range(6):
        feed.repeat(BODY)
        feed.repeat([11, 12, 13])
        feed.cut(least_ops=1)
    assert feed.cut(CutScope.EVERYTHING)[-1].bodies
    feed.run(([*BODY, 11, 12, 13]) * 20, least_ops=45)
    assert {piece.ops // piece.bodies for piece in feed.pieces[-2:]} == {9}


@given(
    uses=st.lists(st.sampled_from([(0, 1, 2), (3, 4, 5, 3, 4, 5, 3, 4), (6,), (0, 1, 2, 6)]), max_size=40),
    eager=st.lists(st.integers(0, 8), max_size=40),
)
def test_pieces_of_any_ops_and_uses_take_all_ops_once(uses: list[tuple[int, ...]], eager: list[int]) -> None:
    feed = Feed()
    for use, op in zip_longest(uses, eager):
        if use is not None:
            feed.repeat([*use])
        feed.record([] if op is None else [op])
        feed.cut(least_ops=8)
    feed.cut(CutScope.EVERYTHING)
    assert sum(piece.ops for piece in feed.pieces) == len(feed.places)
    assert all(piece.is_fragment or piece.ops % piece.bodies == 0 for piece in feed.pieces)
