"""Prepares programs for tier 0, with a few of their one-op calls in each turn of the event loop. Pure.

Each session that uses a program has its own preparation of that program, from the first call to the last call. Tenants
take turns, and so do the sessions of each tenant. Rows of the program wait until all its calls are known: until then
the program's missing calls include `NOT_LISTED`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from fusewire_protos.errors import BY_NAME as CASES
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.one_op_calls import OneOpCall
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.scheduling.turns import TenantTurns
from fusewire_server.sessions.session import Session

# A step asks for a call or expands an op. A step takes a fraction of a millisecond if it expands a composite op.
STEPS_A_TURN = 32

NOT_LISTED = OneOpCall(BY_NAME["negative"], (), ())  # stands for all calls that are not known yet


_GIVEN_UP = Failure(CASES["server_fault"], "its kernels are no longer prepared; use the program again", 0, 0)


class TakeCall(Protocol):
    """Gets the plan of a call or asks for it. Returns False if the program cannot be prepared."""

    def __call__(self, call: OneOpCall, entry: ProgramEntry, session: Session, *, is_first: bool) -> bool: ...


@dataclass(eq=False)
class _Preparation:
    """The progress of preparing a program for a session."""

    entry: ProgramEntry
    session: Session
    waiting: set[Session]  # all sessions that wait for the program, this session included
    taken: int = 0  # number of the program's calls that were taken
    is_first: bool | None = None  # whether the session had no requests when this preparation began


class Preparations:
    """The programs that are being prepared, and the sessions that wait for these programs. The loop thread owns it.

    `later` calls a function in the next turn of the event loop. `on_turn` is called after a turn that had work to do.
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
        """Prepares a program for a session that uses it: a part now, and the rest in later turns of the event loop."""
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
        """Notes that a program is prepared, or that it cannot be prepared."""
        self._waiting.pop(entry, None)

    def leave(self, session: Session) -> None:
        """Removes a session that has ended. Gives up programs that no other session waits for."""
        self._turns.leave(session)
        for entry, waiting in list(self._waiting.items()):
            waiting.discard(session)
            if not waiting:
                del self._waiting[entry]
                entry.cannot_run(_GIVEN_UP)  # until it is used again: rows from before an earlier fault may still wait

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
