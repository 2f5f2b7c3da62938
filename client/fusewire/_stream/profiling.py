"""Profiles one session: lets a collector note what the session does, and asks the server how its segments ran."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple

from fusewire._errors import FusewireError
from fusewire._profile.collector import MOST_EVENTS, Collector
from fusewire._profile.events import Asked, SessionEvents
from fusewire._recording.recorder import Recorder
from fusewire._recording.thread_recorders import ThreadRecorders
from fusewire._stream.fetches import Fetches
from fusewire._stream.receivers import BlockedReader
from fusewire._stream.session_state import SessionState
from fusewire._transport.deadlines import left_s
from fusewire_protos.credit import Amount
from fusewire_protos.profiled import decode_profiled

_FIRST_QUESTIONS = 5  # each is a round trip, of which the shortest shows best how the clocks differ
_TIMEOUT_S = 10.0  # of the wait for an answer
_LEAST_TIMEOUT_S = 1.0  # of the last question, once the profile has waited as long as it may
_PAUSE_S = 0.05  # in which a thread that pauses has its ops sent, if they are to be sent at all
_MOST_OPEN_QUESTIONS = 64


class _Question(NamedTuple):
    posted_ns: int
    fetch: int
    reader: BlockedReader


class Profiling:
    """The profile of one session, from `begin` to `end`."""

    def __init__(self, state: SessionState, fetches: Fetches, recorders: ThreadRecorders) -> None:
        self._state = state
        self._fetches = fetches
        self._thread_recorders = recorders
        self._questions: list[_Question] = []
        self._asked: list[Asked] = []
        self._runs = 0  # that answers have told
        self._notes: list[str] = []
        self._goes_on = True  # what the next question says; False from the last one on
        self._lock = threading.RLock()  # guards the questions and answers: each thread that records may ask
        self._collector = Collector(self._ask)

    @property
    def on_named(self) -> Callable[[Recorder, int, str], None]:
        """What another library tells of ops that it has recorded: by whom, the number of the first, and a name."""
        return self._collector.on_named

    def begin(self) -> None:
        """Begins to note. Waits for a few round trips; a server that does not answer is noted."""
        state = self._state
        state.profile = self._collector
        self._collector.on_begin(self._thread_recorders.all())
        with state.lock:
            state.stream.on_made = self._collector.on_framed
        for _ in range(_FIRST_QUESTIONS):
            if not self._ask_and_wait():
                break

    def end(self, name: str, deadline_s: float | None, *, is_closing: bool = False) -> SessionEvents:
        """Ends the notes and returns them. If the session `is_closing`, its unsent ops will be dropped.

        Waits until the device has done what was recorded, because only then it is known how that ran, but no longer
        than until `deadline_s`, as a device may be held. Sends no op for it: the ops of a thread that pauses are sent a
        millisecond later anyway.
        """
        state = self._state
        try:
            if not self._is_done_by(deadline_s, are_dropped=is_closing):
                self._notes.append("the device did not do all that was recorded in time: the rest is missing")
            self._goes_on = False
            left = left_s(deadline_s)
            self._ask_and_wait(_TIMEOUT_S if left is None else max(min(left, _TIMEOUT_S), _LEAST_TIMEOUT_S))
        except BaseException:  # such as Ctrl-C in a wait; the server ends its part all the same
            self._goes_on = False
            with suppress(FusewireError):
                self._ask()
            raise
        finally:
            state.profile = None
            with state.lock:
                state.stream.on_made = None
        self._take_answers()
        return self._collector.events(name, self._asked, tuple(dict.fromkeys(self._notes)))

    def _is_done_by(self, deadline_s: float | None, *, are_dropped: bool) -> bool:
        """Waits until the device has done all that is recorded now, but an incomplete body, which waits for its rest.

        Returns whether it has by the deadline. If `are_dropped`, unsent ops are not waited for. Nor is what other
        threads record meanwhile.
        """
        state, wait = self._state, object()
        recorded = [] if are_dropped else [(each, each.next_number) for each in self._thread_recorders.all()]
        sent_before = state.credit.sent
        awaited: list[Amount] = []  # what was sent once all that is recorded was sent, if it is

        def is_done() -> bool:
            if not awaited and all(each.sent >= end for each, end in recorded):
                awaited.append(state.credit.sent)
            return state.ended is not None or any(map(state.credit.has_completed, awaited))

        if state.transport.is_own_thread():
            return True
        state.credit_waiters.add(wait)  # so that the transport listens
        try:
            state.transport.wake()
            with state.lock:
                while not state.changed.wait_for(is_done, min(_PAUSE_S, left_s(deadline_s) or _PAUSE_S)):
                    if not awaited and state.credit.has_completed(sent_before):
                        break
                    if left_s(deadline_s) == 0:
                        return False
                return True
        finally:
            state.credit_waiters.discard(wait)

    def _ask(self) -> _Question | None:
        """Asks how segments ran. The question travels with what is sent next. None: too many are open."""
        with self._lock:
            self._take_answers()
            if self._goes_on and len(self._questions) >= _MOST_OPEN_QUESTIONS:
                return None
            question = _Question(time.monotonic_ns(), *self._fetches.ask(goes_on=self._goes_on))
            self._questions.append(question)
            return question

    def _ask_and_wait(self, timeout_s: float = _TIMEOUT_S) -> bool:
        """Asks, and waits for the answer, but not in the transport's thread. Returns whether it came."""
        deadline_s, transport = time.monotonic() + timeout_s, self._state.transport
        try:
            question = self._ask()
            transport.wake()
            if question is None or transport.is_own_thread():
                return False
            is_answered = transport.wait(question.reader, left_s(deadline_s))
        except FusewireError as reason:
            self._notes.append(f"the server could not be asked: {reason}")
            return False
        if not is_answered:
            self._notes.append(f"the server did not answer within {timeout_s:.3g} s")
        self._take_answers()
        return is_answered

    def _take_answers(self) -> None:
        """Takes the answers that have come."""
        with self._lock:
            settled = [each for each in self._questions if each.reader.is_settled]
            self._questions = [each for each in self._questions if each not in settled]
            for question in settled:
                self._take_answer(question)

    def _take_answer(self, question: _Question) -> None:
        try:
            answer = decode_profiled(question.reader.outcome().tobytes())
        except (FusewireError, ValueError) as reason:
            self._notes.append(f"the server could not tell how segments ran: {reason}")
            return
        self._runs += len(answer.runs)
        if self._runs > MOST_EVENTS:
            answer = answer._replace(runs=(), lost=answer.lost + len(answer.runs))
        answered_ns = self._collector.answered.get(question.fetch, time.monotonic_ns())  # the latest that it can be
        self._asked.append(Asked(question.posted_ns, answered_ns, answer))
