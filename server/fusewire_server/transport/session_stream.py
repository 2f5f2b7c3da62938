"""Serves one connection of a session: reads the client's frames, and writes the server's frames."""

from __future__ import annotations

import asyncio
import logging
import time
from contextlib import suppress

from fusewire_protos.errors import CaseError, Unauthenticated
from fusewire_protos.frames import PROTOCOL_VERSION
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.access.interceptor import Access
from fusewire_server.config.version import installed_version
from fusewire_server.engine.engine import Engine
from fusewire_server.engine.outcome import outcome_of
from fusewire_server.programs.counters import GOODBYE
from fusewire_server.sessions.session import Session
from fusewire_server.transport.call import Call, Messages
from fusewire_server.transport.local_calls import LocalCall, LocalCalls
from fusewire_server.transport.refusal import end_with
from fusewire_server.transport.session_frames import SessionFrames
from fusewire_server.transport.write_deadline import WriteDeadline

log = logging.getLogger("fusewire.rpc")

PARTING_S = 0.5  # the longest time that the server waits after its goodbye for the client to end the stream
TOKEN_CHECK_S = 5.0  # how often the token of an open session is checked again


class SessionStream:
    """One connection of a session: a reader, a writer and a token check. When any of these ends, all of them end.

    By a local call the messages are applied where they come, and answers written where they are ready, as long as
    nothing has to wait; reader and writer do the rest.
    """

    def __init__(
        self,
        engine: Engine,
        access: Access,
        session: Session,
        messages: Messages,
        call: Call,
        local: LocalCalls | None = None,
    ) -> None:
        self._engine = engine
        self._access = access
        self._session = session
        self._messages = messages
        self._call = call
        self._local = local
        self._local_call = call if isinstance(call, LocalCall) else None
        self._frames = SessionFrames(engine, session)
        self._owed = asyncio.Event()
        self._is_writer_idle = False
        self._is_writing_due = False  # whether `_write_now` is about to run
        self._not_written: bytes | None = None  # the next frame, which has to wait
        self._write_deadline = WriteDeadline(engine.config.limits.unread_s)
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
            self._engine.detach(self._session, self._frames.epoch)
            self._write_deadline.end()
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    # ---- reading ----

    async def _read(self) -> None:
        frames = self._frames
        try:
            await outcome_of(self._engine.unapplied(self._session))  # the rest of the last frame of the stream before
            while frames.goes_on and await self._deliver():
                await outcome_of(frames.unapplied)
            if frames.has_parted and frames.is_current:
                self._engine.end(self._session, GOODBYE)
        except CaseError as error:
            self._end(error)
        except Exception as error:
            # The session cannot go on, because the client cannot send a frame again that was applied in part.
            log.exception("a frame could not be applied")
            self._end(CaseError("server_fault", f"applying a frame failed: {type(error).__name__}"))

    async def _deliver(self) -> bool:
        """Has messages applied until one has to wait. Returns False if no more come."""
        if self._local_call is not None:
            return await self._local_call.deliver(self._frames.take)
        async for raw in self._messages:
            if not self._frames.take(raw):
                return True
            if self._owed.is_set():
                await asyncio.sleep(0)  # lets the writer send an answer before the next frame is read
        return False

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
        if not self._frames.is_current:
            return
        log.info("a session ends: %s", error, extra=identity_of(self._session))
        self._goodbye, self._frames.is_ending = goodbye_of(error), True
        self._engine.end(self._session, error.case.name)
        self._owed.set()

    # ---- writing ----

    def _wake(self) -> None:
        """Has news written, if there are any. A turn of the writer delays the device thread."""
        if self._engine.is_draining or self._session.dismissal is not None or not self._frames.is_current:
            self._owed.set()
        elif self._frames.owes_news:
            if self._local_call is None or not self._is_writer_idle:
                self._owed.set()
            elif not self._is_writing_due:
                self._is_writing_due = True
                asyncio.get_running_loop().call_soon(self._write_now, self._local_call)

    def _write_now(self, call: LocalCall) -> None:
        """Writes news as long as nothing has to wait, and leaves the rest to the writer."""
        self._is_writing_due = False
        while self._is_writer_idle and (raw := self._frames.next()) is not None:
            if not call.write_now(raw):
                self._not_written = raw
                self._is_writer_idle = False
                self._owed.set()
                return
            self._session.bytes_out += len(raw)

    async def _write(self) -> None:
        """Writes the welcome, the news, and the goodbye if the server ends the session."""
        await self._send(self._welcome().SerializeToString())
        self._owed.set()  # a resumed session may have answers to send
        while self._goodbye is None:
            self._is_writer_idle = not self._owed.is_set()
            await self._owed.wait()
            self._is_writer_idle = False
            self._owed.clear()
            while (raw := self._next()) is not None:
                await self._send(raw)
            if not self._frames.is_current:
                return
            if self._session.dismissal is not None and self._goodbye is None:
                self._end(self._session.dismissal)
            elif self._engine.is_draining and not self._has_told_draining:
                self._has_told_draining = True
                await self._send(self._notice().SerializeToString())
        await self._send(pb.ServerFrame(goodbye=self._goodbye).SerializeToString())

    def _next(self) -> bytes | None:
        raw, self._not_written = self._not_written, None
        return raw if raw is not None else self._frames.next()

    async def _send(self, raw: bytes) -> None:
        """Writes a frame. Raises CaseError if the client does not read it in time."""
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
                async for _ in self._messages:
                    pass

    async def _give_up(self, writer: asyncio.Task[None]) -> None:
        """Handles a failed writer.

        A client that reads too slowly loses its session, unless another stream has taken the session over.
        """
        try:
            await writer
        except CaseError as error:
            if self._frames.is_current:
                self._engine.end(self._session, error.case.name)
            end_with(self._call, error.case.name, error.text)

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
                busy_poll_us=0 if self._local is None else round(self._local.busy_poll_s * 1e6),
            ),
        )


def identity_of(session: Session) -> dict[str, object]:
    """Returns what log records tell of a session: its id, and the name that its user gave it, if any."""
    fields: dict[str, object] = {"session": session.shown_id}
    if session.name:
        fields["session_name"] = session.name  # the `name` of a record is that of its logger
    return fields


def goodbye_of(error: CaseError) -> pb.Goodbye:
    """Returns the goodbye that ends a session with this error."""
    return pb.Goodbye(code=error.case.code, text=error.text)
