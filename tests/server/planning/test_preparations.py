"""How programs are readied for tier 0: in turns of the loop, for all who wait, and no longer than they do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import ProgramOp, build
from fusewire_server.planning.preparations import NOT_LISTED, STEPS_A_TURN, Preparations
from fusewire_server.programs.one_op_calls import OneOpCall, OneOpCalls
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.sessions.session import Session
from tests.server.parts import entry_of, session


@dataclass
class World:
    """Preparations whose turns come when told, and whose calls stay on their way."""

    taken: list[tuple[ProgramEntry, Session, bool]] = field(default_factory=list)
    turns: list[Callable[[], None]] = field(default_factory=list)
    worked_turns: int = 0
    room: int = 1 << 20  # for calls, before a program is refused

    def __post_init__(self) -> None:
        self.preparations = Preparations(self.take, self.is_idle, self.turns.append, self.count_turn)

    def take(self, call: OneOpCall, entry: ProgramEntry, session: Session, *, is_first: bool) -> bool:
        self.taken.append((entry, session, is_first))
        entry.missing_calls.add(call)
        self.room -= 1
        return self.room > 0

    def is_idle(self, session: Session) -> bool:
        return all(one is not session for _, one, _ in self.taken)

    def count_turn(self) -> None:
        self.worked_turns += 1

    def turn(self) -> int:
        """The next turn of the loop; how many calls were taken in it."""
        before = len(self.taken)
        turns, self.turns[:] = [*self.turns], []
        for each in turns:
            each()
        return len(self.taken) - before

    def turns_to_the_end(self) -> list[int]:
        counts = []
        while self.turns:
            counts.append(self.turn())
        return counts


def of_calls(count: int) -> ProgramEntry:
    """A program of so many distinct calls."""
    inputs = [Spec(dtypes.float32, (dim,)) for dim in range(1, count + 1)]
    entry = entry_of(build(inputs, (), [ProgramOp(BY_NAME["exp"], (index,), ()) for index in range(count)], (0,)))
    entry.calls = OneOpCalls(entry.program, is_library_exact=True)
    return entry


def test_a_short_program_is_readied_at_once() -> None:
    here, entry = World(), of_calls(3)
    one = session()
    here.preparations.begin(entry, one)
    assert len(here.taken) == len(entry.missing_calls) == 3
    assert NOT_LISTED not in entry.missing_calls
    assert (here.turns_to_the_end(), here.worked_turns) == ([0], 0)


def test_a_long_program_is_readied_in_turns_of_a_bounded_length_while_its_rows_wait() -> None:
    here, entry = World(), of_calls(10 * STEPS_A_TURN)
    here.preparations.begin(entry, session())
    assert 0 < len(here.taken) <= STEPS_A_TURN
    entry.missing_calls -= {*entry.calls.found} if entry.calls else set()
    assert NOT_LISTED in entry.missing_calls
    counts = here.turns_to_the_end()
    assert NOT_LISTED not in entry.missing_calls
    assert max(counts) <= STEPS_A_TURN
    assert len(here.taken) == 10 * STEPS_A_TURN
    assert entry.missing_calls <= {*entry.calls.found} if entry.calls else False


def test_many_programs_of_one_frame_share_the_turn() -> None:
    here = World()
    entries = [of_calls(STEPS_A_TURN // 2) for _ in range(10)]
    for entry in entries:
        here.preparations.begin(entry, session())
    assert len(here.taken) <= STEPS_A_TURN
    here.turns_to_the_end()
    assert len(here.taken) == 10 * (STEPS_A_TURN // 2)


def test_a_session_that_uses_it_again_asks_for_nothing_again() -> None:
    here, entry, one = World(), of_calls(3 * STEPS_A_TURN), session()
    for _ in range(5):
        here.preparations.begin(entry, one)
    here.turns_to_the_end()
    here.preparations.begin(entry, one)
    assert len(here.taken) == 3 * STEPS_A_TURN


def test_sessions_take_turns() -> None:
    here, slow, quick = World(), of_calls(10 * STEPS_A_TURN), of_calls(3)
    here.preparations.begin(slow, session("a"))
    here.preparations.begin(quick, session("b"))
    here.turn()
    here.turn()
    assert sum(entry is quick for entry, _, _ in here.taken) == 3


def test_tenants_take_turns_however_many_sessions_they_have() -> None:
    here, quick = World(), of_calls(3)
    for name in "abcdefghij":
        here.preparations.begin(of_calls(3 * STEPS_A_TURN), session(name))
    here.preparations.begin(quick, session("z", tenant="others"))
    here.turn()
    here.turn()
    assert sum(entry is quick for entry, _, _ in here.taken) == 3


def test_another_session_waits_for_all_of_its_calls_too() -> None:
    here, entry, one, other = World(), of_calls(5), session("a"), session("b")
    here.preparations.begin(entry, one)
    here.preparations.begin(entry, other)
    here.turns_to_the_end()
    assert [sum(each is who for _, each, _ in here.taken) for who in (one, other)] == [5, 5]


def test_what_was_looked_into_once_is_known_when_a_program_is_readied_anew() -> None:
    here, entry, one = World(room=STEPS_A_TURN // 4), of_calls(STEPS_A_TURN), session()
    here.preparations.begin(entry, one)
    here.preparations.end(entry)
    assert entry.calls is not None
    known = len(entry.calls.found)
    here.preparations.begin(entry, one)
    assert len(entry.calls.found) == known < STEPS_A_TURN


def test_what_is_readied_for_nobody_any_more_is_given_up() -> None:
    here, entry, one, other = World(), of_calls(3 * STEPS_A_TURN), session("a"), session("b")
    here.preparations.begin(entry, one)
    here.preparations.begin(entry, other)
    entry.has_begun_preparing = True
    here.preparations.leave(one)
    assert (entry.has_begun_preparing, bool(entry.missing_calls)) == (True, True)
    here.preparations.leave(other)
    assert (entry.has_begun_preparing, entry.missing_calls) == (False, set())
    assert entry.fault is not None  # so that rows which still wait fail, and do not run without their kernels
    before = len(here.taken)
    here.turns_to_the_end()
    assert len(here.taken) == before


def test_only_what_a_session_asks_for_with_nothing_on_its_way_is_its_first() -> None:
    here, one = World(), session()
    first, second = of_calls(2 * STEPS_A_TURN), of_calls(2)
    here.preparations.begin(first, one)
    here.preparations.begin(second, one)
    here.turns_to_the_end()
    assert {is_first for entry, _, is_first in here.taken if entry is first} == {True}
    assert {is_first for entry, _, is_first in here.taken if entry is second} == {False}
