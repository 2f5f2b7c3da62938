"""Applies the frames that a client sends in one stream of its session, and makes those for the client. Never waits."""

from __future__ import annotations

from fusewire_protos.credit import Amount
from fusewire_protos.errors import CaseError
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.engine.engine import Engine
from fusewire_server.engine.outcome import Unapplied
from fusewire_server.sessions.session import Session
from fusewire_server.sessions.tables.answers import Answer
from fusewire_server.transport.frame_parsing import parse_frame

# An acknowledgement travels in a frame that carries other news. If there is no other news, the server sends a frame
# once this many of the client's frames are unacknowledged. A frame for each acknowledgement would delay the answer that
# comes next.
MOST_UNACKNOWLEDGED = 16


class SessionFrames:
    """The frames of one stream of a session, both ways. The engine thread owns this object."""

    def __init__(self, engine: Engine, session: Session) -> None:
        self._engine = engine
        self._session = session
        self.epoch = session.epoch
        self._sent_completed = Amount()
        self._sent_acknowledged = 0
        self.unapplied: Unapplied | None = None  # of the last frame, if it could not be applied at once
        self.has_parted = False  # whether the client has said goodbye
        self.is_ending = False  # whether the server has, or is about to

    @property
    def is_current(self) -> bool:
        """Tells whether no other stream has taken the session over."""
        return self._session.epoch == self.epoch

    @property
    def goes_on(self) -> bool:
        """Tells whether the stream takes further frames."""
        return not self.is_ending and not self.has_parted and self.is_current

    def take(self, raw: bytes) -> bool:
        """Applies a frame as far as there is time. Returns False if the next one has to wait, or if there is none.

        Raises CaseError.
        """
        if not self.goes_on:
            return False
        session, engine = self._session, self._engine
        began_ns = engine.clock.monotonic_ns()
        frame = parse_frame(raw, engine.config.limits.message_bytes)
        if frame.HasField("hello"):
            raise CaseError("out_of_turn", "a second hello came in one stream")
        session.bytes_in += len(raw)
        engine.acknowledge(session, frame.acknowledged)
        is_applied = True
        if frame.number:
            is_applied = engine.receive(session, frame.number, frame.programs, frame.bindings, frame.tensors, began_ns)
        elif frame.programs or frame.bindings or frame.tensors:
            raise CaseError("undecodable_frame", "a frame with number 0 carries work; work needs a numbered frame")
        else:
            engine.charge(began_ns, session)
        if not is_applied:
            self.unapplied = engine.unapplied(session)  # now, because a later turn may apply it, or end the session
        self.has_parted = frame.HasField("goodbye")
        return is_applied and not self.has_parted

    @property
    def owes_news(self) -> bool:
        """Tells whether the client should get a frame."""
        session = self._session
        return (
            session.answers.are_owed
            or session.owes_credit(self._sent_completed)
            or session.applied_frame - self._sent_acknowledged >= MOST_UNACKNOWLEDGED
        )

    def next(self) -> bytes | None:
        """Returns the next frame for the client: answers, acknowledgements and returned credit. None: it needs none."""
        if not self.owes_news or not self.is_current:
            return None
        session = self._session
        number, answers = session.answers.take(self._engine.config.limits.message_bytes // 2)
        has_completed = session.completed != self._sent_completed
        self._sent_completed, self._sent_acknowledged = session.completed, session.applied_frame
        frame = pb.ServerFrame()  # setting fields takes a quarter of the time of keyword arguments
        frame.number = number
        frame.acknowledged = session.applied_frame
        if has_completed:
            completed = frame.completed
            completed.ops, completed.bytes, completed.segments = session.completed
        for answer in answers:
            _tell(answer, frame.results.add())
        return frame.SerializeToString()


def _tell(answer: Answer, result: pb.Result) -> None:
    """Writes an answer into a result of a frame."""
    result.fetch = answer.fetch
    if answer.failure is not None:
        case, text, base, op_index = answer.failure
        result.failure.CopyFrom(pb.Failure(code=case.code, text=text, base=base, op_index=op_index))
    elif answer.data is None:
        result.beside_bytes = answer.beside_bytes
    else:
        result.inline = bytes(answer.data)
