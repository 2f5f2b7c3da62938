"""Sends what recorders hold: segments as credit allows, the programs of these segments, and deaths of handles.

Recording threads call this code and may wait for credit in it. The I/O thread calls this code too, also when a callback
or a finaliser records in the I/O thread. The I/O thread never waits for credit, because no other thread receives
credit. A piece is a run of recorded ops that is sent as one segment. A piece is settled when the ops recorded behind it
show which of its results are dead.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Sequence
from enum import StrEnum

from fusewire._errors import FusewireError
from fusewire._recording.cutting.cutter import CutScope
from fusewire._recording.cutting.drafts import Draft, LoopForm
from fusewire._recording.recorder import Recorder
from fusewire._recording.thread_recorders import ThreadRecorders
from fusewire._stream.encoded_programs import EncodedProgram, bind, bind_stepped, encode_program
from fusewire._stream.frames import Outgoing
from fusewire._stream.numbered_programs import ProgramKey, Programs
from fusewire._stream.session_state import SessionState
from fusewire_protos.credit import Amount, cost_of
from fusewire_protos.frames import (
    MAX_FREED,
    NO_REPETITION,
    Cancel,
    Forget,
    Free,
    NewProgram,
    Repetition,
    Segment,
    shortest_period,
)


class Trigger(StrEnum):
    """Why a segment was cut."""

    COUNT = "count"  # there were enough ops
    CREDIT = "credit"  # there were enough ops, and credit had come back for them
    AGE = "age"  # the first op of the segment had waited long enough
    IDLE = "idle"  # the device had nothing else to do
    DEMAND = "demand"  # a value was asked for
    BODY = "body"  # it is a recorded loop, or ends before a loop or function is recorded


class Sender:
    """Flushes the recorders of one session."""

    def __init__(self, state: SessionState, recorders: ThreadRecorders) -> None:
        self._state = state
        self._thread_recorders = recorders
        # The state's lock guards the fields below.
        self.programs = Programs(0)
        self.cuts: Counter[Trigger] = Counter()
        self.fragments = 0

    # ---- recording threads ----

    def flush(
        self,
        recorder: Recorder,
        scope: CutScope,
        trigger: Trigger,
        *,
        may_wait: bool,
        wakes: bool = True,
        deadline_s: float | None = None,
    ) -> Amount | None:
        """Sends the ops that `scope` covers, piece by piece, until a piece has no credit.

        Returns the cost of that piece, or None if there is no such piece. If `may_wait`, a recording thread waits for
        the credit and then goes on sending. `wakes` is False if the caller will post more entries for the same frame
        and then wake the I/O thread. Raises RequestError if a value was asked for where waiting is forbidden, such as
        in the I/O thread.
        """
        if self._state.is_interrupted_here(recorder):
            self._refuse(recorder, trigger)
            return None
        is_urgent = trigger is not Trigger.COUNT or self._state.credit.is_free
        while True:
            with recorder.lock:
                refused = self._send_pieces(recorder, scope, trigger)
            if refused is None or not may_wait:
                break
            if self._state.transport.is_own_thread():
                self._refuse(recorder, trigger)
                break
            self.wait_for_credit(recorder, refused, deadline_s)
            trigger = Trigger.CREDIT if trigger is Trigger.COUNT else trigger
        if wakes and is_urgent:  # otherwise the device is busy, and the I/O thread's next tick is early enough
            self._state.transport.wake()
        return refused

    def send_body(self, recorder: Recorder, make: Callable[[], Draft]) -> None:
        """Sends the use of a body that `make` drafts under the recorder's lock. Waits for credit."""
        self._state.check_may_wait(recorder)
        is_urgent = self._state.credit.is_free
        while True:
            with recorder.lock:
                began_ns = 0 if self._state.profile is None else time.monotonic_ns()
                refused = self._send_draft(recorder, make(), Trigger.BODY, began_ns)
            if refused is None:
                break
            self.wait_for_credit(recorder, refused, None)
        if is_urgent:  # otherwise the device is busy, and the I/O thread's next tick is early enough
            self._state.transport.wake()

    def give_up(self) -> None:
        """Cancels all ops that have been recorded so far, except those of a body that is being recorded.

        The server can cancel only ops that were sent. Ops that have no credit yet are sent and cancelled later, when
        the cancelled ops have returned their credit. The I/O thread cannot wait for this credit. So a call in the
        I/O thread does not cancel ops that have no credit, and these ops run later.
        """
        recorded = [(recorder, recorder.next_number) for recorder in self._thread_recorders.all()]
        while True:
            refused = [
                (recorder, cost)
                for recorder, end in recorded
                if recorder.sent < end
                and (cost := self.flush(recorder, CutScope.CANCELLED, Trigger.DEMAND, may_wait=False)) is not None
            ]
            self._state.post(Outgoing(Cancel()))
            self._state.transport.wake()
            if not refused or self._state.transport.is_own_thread():
                return
            self.wait_for_credit(*refused[0], None)

    def wait_for_credit(self, recorder: Recorder, cost: Amount, deadline_s: float | None) -> None:
        """Waits until work of this cost may be sent. Raises WaitTimeout, or the reason of the session's end."""
        self._post_frees(recorder)  # the server may need the memory of dead handles before it can return credit
        self._state.wait_for_credit(cost, deadline_s)

    # ---- the I/O thread ----

    def flush_idle(self) -> None:
        """Sends settled pieces, even small ones. The caller has found that no work of the session is in flight."""
        for recorder in self._thread_recorders.all():
            self._flush_if_free(recorder, CutScope.SETTLED, Trigger.IDLE)

    def flush_aged(self, now_ns: int) -> None:
        """Sends the ops that have waited long enough, unless the device is busy."""
        for recorder in self._thread_recorders.all():
            if recorder.is_due(now_ns) and self._state.credit.is_free:
                self._flush_if_free(recorder, CutScope.PAUSED, Trigger.AGE)

    def send_frees(self) -> None:
        """Reports the deaths that no segment has reported."""
        for recorder in self._thread_recorders.all():
            if recorder.deaths and recorder.lock.acquire(blocking=False):  # else the lock's holder sends the deaths
                try:
                    self._post_frees(recorder)
                finally:
                    recorder.lock.release()

    # ---- any thread ----

    def _send_pieces(self, recorder: Recorder, scope: CutScope, trigger: Trigger) -> Amount | None:
        """Sends piece after piece until a piece has no credit. Returns the cost of that piece, or None.

        The caller holds the recorder's lock.
        """
        profile = self._state.profile
        began_ns = 0 if profile is None else time.monotonic_ns()
        while (draft := recorder.draft(scope)) is not None:
            refused = self._send_draft(recorder, draft, trigger, began_ns)
            if refused is not None:
                return refused
            began_ns = 0 if profile is None else time.monotonic_ns()
        return None

    def _send_draft(self, recorder: Recorder, draft: Draft, trigger: Trigger, began_ns: int) -> Amount | None:
        """Sends a draft, which was begun at `began_ns`. Returns its cost if there is no credit for it, else None."""
        key = ProgramKey(draft.structure.key, draft.liveness.live, draft.piece.is_fragment, draft.loop_form.carried)
        encoded = self._encoded(key, draft)
        repetition = _repetition(draft.loop_form, encoded)
        cost = cost_of(repetition, encoded.cost, encoded.live_sizes, self._state.credit.limit.ops)
        state = self._state
        with state.lock:
            state.check_open()
            if not state.credit.admits(cost):
                return cost
            self.programs.keep(key, encoded)  # once more, because another thread's program may have pushed it out
            numbered = self.programs.number(key)

            def commit() -> None:
                recorder.commit(draft)
                self.programs.take(key, numbered, draft.first, draft.piece.ops)

            new = NewProgram(numbered.number, key.is_fragment, encoded.raw) if numbered.is_new else None
            entries = [Outgoing(Forget(program)) for program in numbered.forgotten]
            entries.append(Outgoing(_segment(numbered.number, draft, encoded, repetition), new))
            state.spend(cost, [*entries, *_frees(draft.liveness.freed)], commit)
            self.cuts[trigger] += 1
            self.fragments += key.is_fragment
        if (profile := state.profile) is not None:
            profile.on_sealed(recorder, draft, numbered.number, trigger.value, began_ns)
        return None

    def _encoded(self, key: ProgramKey, draft: Draft) -> EncodedProgram:
        with self._state.lock:
            encoded = self.programs.encoded(key)
        if encoded is None:
            encoded = encode_program(draft.structure, draft.liveness.live, key.carried)
            with self._state.lock:
                self.programs.keep(key, encoded)
        return encoded

    def _flush_if_free(self, recorder: Recorder, scope: CutScope, trigger: Trigger) -> None:
        """Sends pieces as credit allows. Does nothing if another thread holds the recorder's lock and so sends them."""
        if recorder.has_unsent and recorder.lock.acquire(blocking=False):
            try:
                self._send_pieces(recorder, scope, trigger)
            except FusewireError:
                if self._state.ended is None:
                    raise  # if a user's thread has ended the session, the I/O thread must still send the goodbye
            finally:
                recorder.lock.release()

    def _refuse(self, recorder: Recorder, trigger: Trigger) -> None:
        """Handles a flush that must not wait. Raises RequestError unless `trigger` is COUNT.

        With COUNT the ops stay unsent until the next op is recorded.
        """
        if trigger is not Trigger.COUNT:
            self._state.check_may_wait(recorder)

    def _post_frees(self, recorder: Recorder) -> None:
        with recorder.lock:
            freed = recorder.take_frees()
            if freed:
                self._state.post(*_frees(freed))


def _frees(freed: Sequence[int]) -> list[Outgoing]:
    """Returns the entries that free these handles. A server accepts at most MAX_FREED handles in one entry."""
    starts = range(0, len(freed), MAX_FREED)
    return [Outgoing(Free(tuple(freed[start : start + MAX_FREED]))) for start in starts]


def _segment(number: int, draft: Draft, encoded: EncodedProgram, repetition: Repetition) -> Segment:
    """Returns the entry of a draft, whose program has this number."""
    scalars, starts = bind(encoded, draft.values)
    inputs = draft.structure.inputs
    handles = [*inputs, *[handle for _, handles in draft.loop_form.inputs for handle in handles[1:]]]
    place = {handle: position for position, handle in enumerate(handles)}
    return Segment(
        number,
        draft.first,
        tuple(inputs),
        shortest_period(scalars),
        tuple([int(start) for start in shortest_period(starts)]),
        tuple(sorted([place[handle] for handle in draft.liveness.dying])),
        repetition,
    )


def _repetition(loop_form: LoopForm, encoded: EncodedProgram) -> Repetition:
    if loop_form.is_once:
        return NO_REPETITION
    steps = bind_stepped(encoded, loop_form.values)
    return Repetition(loop_form.iterations, loop_form.handle_stride, loop_form.kept, loop_form.inputs, *steps)
