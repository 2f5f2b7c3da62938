"""Prepares programs for tier 0, a few of their calls in each turn of the loop. Pure.

A program is prepared for each session that uses it, from its first call to its last. Tenants take turns, and so do the
sessions of each tenant. Rows of the program wait until its last call is known: until then its missing calls include
`NOT_LISTED`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from fusewire_protos.catalogue import BY_NAME
from fusewire_server.programs.one_op_calls import OneOpCall
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.scheduling.turns import TenantTurns
from fusewire_server.sessions.session import Session

STEPS_A_TURN = 32  # calls to ask for and ops to expand; a composite op takes a fraction of a millisecond

NOT_LISTED = OneOpCall(BY_NAME["negative"], (), ())  # stands for all calls that are not known yet


class TakeCall(Protocol):
    """Gets the plan of a call or asks for it. Returns False if the program cannot be prepared."""

    def __call__(self, call: OneOpCall, entry: ProgramEntry, session: Session, *, is_first: bool) -> bool: ...


@dataclass(eq=False)
class _Preparation:
    """The progress of preparing a program for a session."""

    entry: ProgramEntry
    session: Session
    waiting: set[Session]  # all sessions that wait for the program, this one included
    taken: int = 0  # number of the program's calls that were taken
    is_first: bool | None = None  # whether the session had no requests when this preparation began


class Preparations:
    """The programs that are being prepared, and the sessions that wait for them. Owned by the loop thread.

    `later` calls a function in the next turn of the loop. `on_turn` is called after a turn that had work to do.
    """

    def __init__(
        self,
        take: TakeCall,
        is_idle: Callable[[Session], bool],
        later: Callable[[Callable[[], None]], object],
        on_turn: Callable[[], None],
    ) -> None:
        self._take = take
        self._is_idle = is_idle
        self._later = later
        self._on_turn = on_turn
        self._waiting: dict[ProgramEntry, set[Session]] = {}
        self._turns: TenantTurns[_Preparation] = TenantTurns(lambda each: not self._is_wanted(each))
        self._steps_left = STEPS_A_TURN
        self._has_turn_coming = False

    def begin(self, entry: ProgramEntry, session: Session) -> None:
        """Prepares a program for a session that uses it, as far as this turn of the loop has time."""
        waiting = self._waiting.get(entry)
        if waiting is None:
            waiting = self._waiting[entry] = set()
            entry.missing_calls.add(NOT_LISTED)
        if session in waiting:
            return
        waiting.add(session)
        self._turns.add(session, _Preparation(entry, session, waiting))
        self._get_on()

    def end(self, entry: ProgramEntry) -> None:
        """Notes that a program is prepared, or cannot be."""
        self._waiting.pop(entry, None)

    def leave(self, session: Session) -> None:
        """Removes a session that has ended. Gives up programs that no other session waits for."""
        self._turns.leave(session)
        for entry, waiting in list(self._waiting.items()):
            waiting.discard(session)
            if not waiting:
                del self._waiting[entry]
                entry.is_prepared = False
                entry.missing_calls.clear()

    def _turn(self) -> None:
        self._has_turn_coming = False
        self._steps_left = STEPS_A_TURN
        if self._get_on():
            self._on_turn()

    def _get_on(self) -> bool:
        """Works until the turn's steps are used up. Returns whether there was work to do."""
        had_work = False
        while self._steps_left > 0 and (preparation := self._turns.take()) is not None:
            had_work = True
            if not self._advance(preparation):
                self._turns.add(preparation.session, preparation)
        if not self._has_turn_coming and self._steps_left < STEPS_A_TURN:
            self._has_turn_coming = True
            self._later(self._turn)
        return had_work

    def _is_wanted(self, preparation: _Preparation) -> bool:
        return self._waiting.get(preparation.entry) is preparation.waiting

    def _advance(self, preparation: _Preparation) -> bool:
        """Takes steps for a preparation. Returns whether it has ended."""
        calls = preparation.entry.calls
        assert calls is not None, "known since it began"
        if preparation.is_first is None:
            preparation.is_first = self._is_idle(preparation.session)
        while self._steps_left > 0:
            self._steps_left -= 1
            if preparation.taken < len(calls.found):
                if not self._take_next(preparation, calls.found[preparation.taken]):
                    return True
            elif not calls.look_on():
                self._finish(preparation.entry)
                return True
        return False

    def _take_next(self, preparation: _Preparation, call: OneOpCall) -> bool:
        preparation.taken += 1
        return self._take(call, preparation.entry, preparation.session, is_first=bool(preparation.is_first))

    def _finish(self, entry: ProgramEntry) -> None:
        entry.missing_calls.discard(NOT_LISTED)
        if not entry.missing_calls:
            self.end(entry)
