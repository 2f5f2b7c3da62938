"""From recorders to the stream: segments as credit allows, the programs they use, and deaths.

Called by recording threads, which wait for credit here, and by the I/O thread, which waits for nobody: not even when
a callback or a finaliser records there, for it would wait for what only it can bring.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from enum import Enum

from fusewire._errors import FusewireError
from fusewire._recording.cutter import Reach
from fusewire._recording.recorder import Draft, Recorder
from fusewire._recording.thread_recorders import ThreadRecorders
from fusewire._stream.encoded_programs import EncodedProgram as Template
from fusewire._stream.encoded_programs import bind
from fusewire._stream.encoded_programs import encode_program as build_template
from fusewire._stream.frames import Outgoing
from fusewire._stream.numbered_programs import Numbered, ProgramKey, Programs
from fusewire._stream.session_state import SessionState, finish
from fusewire_protos.credit import Amount
from fusewire_protos.frames import MAX_FREED, Cancel, Forget, Free, NewProgram, Segment, shortest_period


class Trigger(Enum):
    """Why a segment was cut."""

    COUNT = "count"  # enough ops
    CREDIT = "credit"  # enough ops, once credit had come back
    AGE = "age"  # its first op had waited long enough
    IDLE = "idle"  # the device had nothing else to do
    DEMAND = "demand"  # a value was asked for


class Sender:
    """Flushes the recorders of one session."""

    def __init__(self, link: SessionState, recorders: ThreadRecorders) -> None:
        self._link = link
        self._recorders = recorders
        # All below is guarded by the link's lock.
        self.programs = Programs(0)
        self.cuts: Counter[Trigger] = Counter()
        self.fragments = 0

    # ---- recording threads ----

    def flush(
        self,
        recorder: Recorder,
        reach: Reach,
        trigger: Trigger,
        *,
        may_wait: bool,
        wakes: bool = True,
        deadline_s: float | None = None,
    ) -> Amount | None:
        """Sends what `reach` covers, as credit allows; returns what the next piece takes if that is more.

        Whoever posts more at once, for the same frame, wakes the I/O thread itself. Raises RequestError where it
        cannot be done now.
        """
        if self._link.is_interrupted_here(recorder):
            self._refuse(recorder, trigger)
            return None
        is_urgent = trigger is not Trigger.COUNT or self._link.credit.is_free
        while True:
            with recorder.lock:
                refused = self._send_pieces(recorder, reach, trigger)
            if refused is None or not may_wait:
                break
            if self._link.transport.is_own_thread():
                self._refuse(recorder, trigger)
                break
            self.wait_for_credit(recorder, refused, deadline_s)
            trigger = Trigger.CREDIT if trigger is Trigger.COUNT else trigger
        if wakes and is_urgent:  # else the device is busy, and the I/O thread's next tick is soon enough
            self._link.transport.wake()
        return refused

    def give_up(self) -> None:
        """Has all cancelled that is recorded by now. What had no credit needs what the first word brings back.

        In the I/O thread, which cannot wait for that, it is left.
        """
        recorded = [(recorder, recorder.tape.end) for recorder in self._recorders.all()]
        while True:
            refused = [
                (recorder, cost)
                for recorder, end in recorded
                if recorder.sent < end
                and (cost := self.flush(recorder, Reach.EVERYTHING, Trigger.DEMAND, may_wait=False)) is not None
            ]
            self._link.post(Outgoing(Cancel()))
            self._link.transport.wake()
            if not refused or self._link.transport.is_own_thread():
                return
            self.wait_for_credit(*refused[0], None)

    def wait_for_credit(self, recorder: Recorder, cost: Amount, deadline_s: float | None) -> None:
        """Until `cost` may be sent. Raises WaitTimeout, or why the session has ended."""
        self._post_frees(recorder)  # they may be what the server waits for
        self._link.transport.wake()
        self._link.wait_for_credit(cost, deadline_s)

    # ---- the I/O thread ----

    def flush_idle(self) -> None:
        """The device has nothing to do: what is settled need not wait for company."""
        for recorder in self._recorders.all():
            self._flush_if_free(recorder, Reach.SETTLED, Trigger.IDLE)

    def flush_aged(self, now_ns: int) -> None:
        """Sends what has waited long enough, unless the device is busy."""
        for recorder in self._recorders.all():
            reach = recorder.due(now_ns)
            if reach is not None and self._link.credit.is_free:
                self._flush_if_free(recorder, reach, Trigger.AGE)

    def send_frees(self) -> None:
        """Tells deaths that no segment took along."""
        for recorder in self._recorders.all():
            if recorder.buried and recorder.lock.acquire(blocking=False):  # else whoever holds it tells them
                try:
                    self._post_frees(recorder)
                finally:
                    recorder.lock.release()

    # ---- either ----

    def _send_pieces(self, recorder: Recorder, reach: Reach, trigger: Trigger) -> Amount | None:
        """Under the recorder's lock: sends piece after piece; returns the cost of the first one refused."""
        while (draft := recorder.draft(reach)) is not None:
            key = ProgramKey(draft.structure.key, draft.liveness.live, draft.piece.is_fragment)
            template = self._template(key, draft)
            cost = Amount(draft.piece.ops, template.live_bytes, 1)
            if not self._send(recorder, draft, key, template, cost, trigger):
                return cost
        return None

    def _send(
        self, recorder: Recorder, draft: Draft, key: ProgramKey, template: Template, cost: Amount, trigger: Trigger
    ) -> bool:
        segment = _segment(draft, template)
        link = self._link
        with link.lock:
            link.check_open()
            if not link.credit.admits(cost):
                return False
            self.programs.keep(key, template)  # since it was found another thread's program may have pushed it out
            numbered = self.programs.number(key)
            spending = link.spending(cost, _entries(segment, numbered, key, template, draft.liveness.freed))

            def commit() -> None:
                link.spend(spending)
                recorder.commit(draft)
                self.programs.take(key, numbered)

            finish(commit)
            self.cuts[trigger] += 1
            self.fragments += key.is_fragment
        return True

    def _template(self, key: ProgramKey, draft: Draft) -> Template:
        with self._link.lock:
            template = self.programs.encoded(key)
        if template is None:
            template = build_template(draft.structure, draft.liveness.live)
            with self._link.lock:
                self.programs.keep(key, template)
        return template

    def _flush_if_free(self, recorder: Recorder, reach: Reach, trigger: Trigger) -> None:
        """A recorder in use is being flushed already."""
        if recorder.has_unsent and recorder.lock.acquire(blocking=False):
            try:
                self._send_pieces(recorder, reach, trigger)
            except FusewireError:
                if self._link.ended is None:
                    raise  # else a user's thread has ended the session meanwhile, and the farewell is still to be sent
            finally:
                recorder.lock.release()

    def _refuse(self, recorder: Recorder, trigger: Trigger) -> None:
        """What is only due may wait for the next op; who asks for a value is told why it cannot be had."""
        if trigger is not Trigger.COUNT:
            self._link.check_may_wait(recorder)

    def _post_frees(self, recorder: Recorder) -> None:
        with recorder.lock:
            freed = recorder.take_frees()
            if freed:
                self._link.post(*_frees(freed))


def _entries(
    segment: Segment, numbered: Numbered, key: ProgramKey, template: Template, freed: Sequence[int]
) -> list[Outgoing]:
    """A segment with the program it may bring along, for which others are forgotten first, and what goes with it."""
    new = NewProgram(numbered.number, key.is_fragment, template.raw) if numbered.is_new else None
    entries = [Outgoing(Forget(program)) for program in numbered.forgotten]
    entries.append(Outgoing(Segment(numbered.number, *segment[1:]), new))
    return [*entries, *_frees(freed)] if freed else entries


def _frees(freed: Sequence[int]) -> list[Outgoing]:
    """However many they are, none makes a frame longer than a server takes."""
    starts = range(0, len(freed), MAX_FREED)
    return [Outgoing(Free(tuple(freed[start : start + MAX_FREED]))) for start in starts]


def _segment(draft: Draft, template: Template) -> Segment:
    """The entry, but for the program's number."""
    scalars, starts = bind(template, draft.values)
    place = {handle: position for position, handle in enumerate(draft.structure.inputs)}
    return Segment(
        program=0,
        base=draft.first,
        inputs=tuple(draft.structure.inputs),
        scalars=shortest_period(scalars),
        starts=tuple(int(start) for start in shortest_period(starts)),
        dying=tuple(sorted(place[handle] for handle in draft.liveness.dying)),
    )
