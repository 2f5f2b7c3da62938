"""Serves one connection of a session: reads the client's frames, and writes the server's frames."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable
from contextlib import suppress
from typing import TypeVar

from fusewire_protos.credit import Amount
from fusewire_protos.errors import CaseError, Unauthenticated
from fusewire_protos.frames import PROTOCOL_VERSION
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.access.interceptor import Access
from fusewire_server.config.version import installed_version
from fusewire_server.engine.engine import Engine
from fusewire_server.inspect.snapshots.snapshot import shown_id
from fusewire_server.programs.counters import GOODBYE
from fusewire_server.sessions.session import Session
from fusewire_server.sessions.tables.answers import Answer
from fusewire_server.transport.call import Call, Messages
from fusewire_server.transport.frame_parsing import parse_frame
from fusewire_server.transport.local_calls import LocalCalls
from fusewire_server.transport.refusal import end_with
from fusewire_server.transport.write_deadline import WriteDeadline

log = logging.getLogger("fusewire.rpc")
T = TypeVar("T")

# An acknowledgement travels in a frame that carries other news. If there is no other news, the server sends a frame
# once this many of the client's frames are unacknowledged. A frame for each acknowledgement would delay the answer that
# comes next.
MOST_UNACKNOWLEDGED = 16
PARTING_S = 0.5  # the longest time that the server waits after its goodbye for the client to end the stream
TOKEN_CHECK_S = 5.0  # how often the token of an open session is checked again


class SessionStream:
    """One connection of a session: a reader, a writer and a token check. When any of these ends, all of them end."""

    def __init__(
        self,
        engine: Engine,
        access: Access,
        session: Session,
        frames: Messages,
        call: Call,
        local: LocalCalls | None = None,
    ) -> None:
        self._engine = engine
        self._access = access
        self._session = session
        self._frames = frames
        self._call = call
        self._local = local
        self._epoch = session.epoch
        self._owed = asyncio.Event()
        self._write_deadline = WriteDeadline(engine.config.limits.unread_s)
        self._sent_completed = Amount()
        self._sent_acknowledged = 0
        self._goodbye: pb.Goodbye | None = None
        self._has_told_draining = False

    async def run(self) -> None:
        """Serves the connection until it is over. If the connection breaks, the session waits to be resumed."""
        self._engine.attach(self._session, self._wake)
        writer = asyncio.create_task(self._write())
        reader = asyncio.create_task(self._read())
        tasks = (reader, writer, asyncio.create_task(self._watch()))
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if self._goodbye is not None:
                await asyncio.wait((writer,))
                await self._part(reader)
            elif writer.done():
                await self._give_up(writer)
        finally:
            self._engine.detach(self._session, self._epoch)
            self._write_deadline.end()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _read(self) -> None:
        try:
            # Applies the rest of the last frame of the stream before.
            await _with_case_errors(self._engine.applied(self._session))
            async for raw in self._frames:
                if not self._is_current or self._goodbye is not None:
                    return
                began_ns = self._engine.clock.monotonic_ns()
                frame = parse_frame(raw, self._engine.config.limits.message_bytes)
                if not await _with_case_errors(self._apply(frame, len(raw), began_ns)):
                    return
                if self._owed.is_set():
                    await asyncio.sleep(0)  # lets the writer send an answer before the next frame is read
        except CaseError as error:
            self._end(error)

    async def _watch(self) -> None:
        """Ends the session when its token is no longer valid."""
        metadata = self._call.invocation_metadata()
        try:
            while self._access.tenant(metadata) == self._session.tenant:  # noqa: ASYNC110 - a file has no event
                await asyncio.sleep(TOKEN_CHECK_S)
            self._end(CaseError("unauthenticated", "the token is now another tenant's"))
        except Unauthenticated as refusal:
            self._end(CaseError("unauthenticated", str(refusal)))

    def _end(self, error: CaseError) -> None:
        """Ends the session with an error, unless another connection has taken it over."""
        if not self._is_current:
            return
        log.info("a session ends: %s", error, extra={"session": shown_id(self._session.session_id)})
        self._goodbye = goodbye_of(error)
        self._engine.end(self._session, error.case.name)
        self._owed.set()

    @property
    def _is_current(self) -> bool:
        """Tells whether no other connection has taken the session over."""
        return self._session.epoch == self._epoch

    async def _apply(self, frame: pb.ClientFrame, size_bytes: int, began_ns: int) -> bool:
        """Applies a frame of the client, which the server began to parse at `began_ns`.

        Returns False if the frame was the client's last. Raises CaseError.
        """
        session, engine = self._session, self._engine
        if frame.HasField("hello"):
            raise CaseError("out_of_turn", "a second hello came in one stream")
        session.bytes_in += size_bytes
        engine.acknowledge(session, frame.acknowledged)
        if frame.number:
            if not engine.receive(session, frame.number, frame.programs, frame.bindings, frame.tensors, began_ns):
                await engine.applied(session)
        elif frame.programs or frame.bindings or frame.tensors:
            raise CaseError("undecodable_frame", "a frame with number 0 carries work; work needs a numbered frame")
        else:
            engine.charge(began_ns, session)
        if frame.HasField("goodbye"):
            engine.end(session, GOODBYE)
            return False
        return True

    def _wake(self) -> None:
        """Wakes the writer only if it may have something to write. A turn of the writer delays the device thread."""
        is_ending = self._engine.is_draining or self._session.dismissal is not None
        if is_ending or self._owes_news or not self._is_current:
            self._owed.set()

    @property
    def _owes_news(self) -> bool:
        session = self._session
        return (
            session.answers.are_owed
            or session.owes_credit(self._sent_completed)
            or session.applied_frame - self._sent_acknowledged >= MOST_UNACKNOWLEDGED
        )

    async def _write(self) -> None:
        """Writes all frames of the stream: the welcome, the news, and the goodbye if the server ends the session.

        News are answers, acknowledgements and returned credit. No other task writes to the stream.
        """
        await self._send(self._welcome())
        self._owed.set()  # a resumed session may have answers to send
        while self._goodbye is None:
            await self._owed.wait()
            self._owed.clear()
            while self._is_current and (frame := self._next_frame()) is not None:
                await self._send(frame)
            if not self._is_current:
                return
            if self._session.dismissal is not None and self._goodbye is None:
                self._end(self._session.dismissal)
            elif self._engine.is_draining and not self._has_told_draining:
                self._has_told_draining = True
                await self._send(self._notice())
        await self._send(pb.ServerFrame(goodbye=self._goodbye))

    async def _send(self, frame: pb.ServerFrame) -> None:
        """Writes a frame. Raises CaseError if the client does not read it in time."""
        raw = frame.SerializeToString()
        try:
            with self._write_deadline:
                await self._call.write(raw)
            self._session.bytes_out += len(raw)
        except asyncio.CancelledError:
            if not self._write_deadline.is_over:
                raise
            unread_s = self._engine.config.limits.unread_s
            raise CaseError("slow_reader", f"a frame was not read for limits.unread_s = {unread_s}") from None

    async def _part(self, reader: asyncio.Task[None]) -> None:
        """Waits a little until the client, which has the goodbye, ends the stream; drops the frames that still come.

        If the server ended the stream while the client writes, the client would see an internal error of gRPC instead
        of the goodbye.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(PARTING_S):
                await asyncio.wait((reader,))
                async for _ in self._frames:
                    pass

    async def _give_up(self, writer: asyncio.Task[None]) -> None:
        """Handles a failed writer.

        A client that reads too slowly loses its session, unless another stream has taken the session over.
        """
        try:
            await writer
        except CaseError as error:
            if self._is_current:
                self._engine.end(self._session, error.case.name)
            end_with(self._call, error.case.name, error.text)

    def _next_frame(self) -> pb.ServerFrame | None:
        if not self._owes_news:
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
        return frame

    def _notice(self) -> pb.ServerFrame:
        left_ns = self._engine.drain_ends_at_ns - time.monotonic_ns()
        return pb.ServerFrame(draining_ms=max(left_ns // 1_000_000, 1))

    def _welcome(self) -> pb.ServerFrame:
        engine, session = self._engine, self._session
        limits = engine.config.limits
        return pb.ServerFrame(
            acknowledged=session.applied_frame,
            welcome=pb.Welcome(
                version=PROTOCOL_VERSION,
                server_instance=engine.instance,
                session_id=session.session_id,
                epoch=session.epoch,
                credit=pb.Credit(**session.credit._asdict()),
                limits=pb.Limits(
                    message_bytes=limits.message_bytes,
                    array_bytes=limits.array_bytes,
                    handles=limits.handles,
                    live_bytes=limits.live_bytes,
                    programs=limits.programs,
                    program_ops=limits.program_ops,
                    program_bytes=limits.program_bytes,
                    chunk_bytes=limits.chunk_bytes,
                    program_operands=limits.program_operands,
                ),
                backend=engine.device.info.backend,
                server=f"fusewire {installed_version()}",
                local_name="" if self._local is None else self._local.name,
                local_secret=b"" if self._local is None else self._local.secret_of(session.session_id),
            ),
        )


def goodbye_of(error: CaseError) -> pb.Goodbye:
    """Returns the goodbye that ends a session with this error."""
    return pb.Goodbye(code=error.case.code, text=error.text)


async def _with_case_errors(applying: Awaitable[T]) -> T:
    """Turns any exception into a CaseError, which ends the session.

    The session cannot go on, because the client cannot send a frame again that was applied in part.
    """
    try:
        return await applying
    except CaseError:
        raise
    except Exception as error:
        log.exception("a frame could not be applied")
        raise CaseError("server_fault", f"applying a frame failed: {type(error).__name__}") from error


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
