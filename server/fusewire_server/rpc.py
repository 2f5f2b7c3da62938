"""gRPC in and out: frames to the engine, what the engine owes to frames. Thin; it decides nothing.

Bulk bytes travel as serialised `Chunk`s that are built and read without protobuf's copies, so those two methods are
registered with serialisers of their own.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from importlib.metadata import PackageNotFoundError, version
from typing import Any, NoReturn

import grpc
import numpy as np
from google.protobuf.message import DecodeError

from fusewire_kernels.devices.base import Staged
from fusewire_protos.chunks import decode_chunk, encode_chunk
from fusewire_protos.errors import BY_NAME, CaseError
from fusewire_protos.frames import PROTOCOL_VERSION
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server import validate
from fusewire_server.access import Access
from fusewire_server.engine import Engine
from fusewire_server.patience import Patience
from fusewire_server.session import Session
from fusewire_server.work import Amount, Answer, Value

log = logging.getLogger("fusewire.rpc")

SERVICE = "fusewire.v1.Fusewire"
HELLO_DEADLINE_S = 10.0
# Acknowledgements ride on frames that carry news; so many of the client's frames may wait for one. A frame of its
# own for each would stand in the way of the answer that follows it.
MOST_UNACKNOWLEDGED = 16
SESSION_HEADER, HANDLE_HEADER = "fusewire-session", "fusewire-handle"

Context = grpc.aio.ServicerContext[Any, Any]
RawFrames = AsyncIterator[bytes]  # serialised ClientFrames


class FusewireService:
    """The three methods of the service over one engine."""

    def __init__(self, engine: Engine, access: Access) -> None:
        self._engine = engine
        self._access = access
        self._limits = engine.config.limits

    def handler(self) -> grpc.GenericRpcHandler:
        """What `grpc.aio.Server.add_generic_rpc_handlers` takes."""
        return grpc.method_handlers_generic_handler(
            SERVICE,
            {
                "Session": grpc.stream_stream_rpc_method_handler(
                    self.session, _as_it_is, pb.ServerFrame.SerializeToString
                ),
                "Upload": grpc.stream_unary_rpc_method_handler(
                    self.upload, _as_it_is, pb.UploadReceipt.SerializeToString
                ),
                "Download": grpc.unary_stream_rpc_method_handler(
                    self.download, pb.DownloadRequest.FromString, _as_it_is
                ),
            },
        )

    # ---- the session stream ----

    async def session(self, frames: RawFrames, context: Context) -> None:
        """One stream of a session: hello and welcome, then frames both ways until either side ends it."""
        tenant = self._access.tenant(context.invocation_metadata())
        try:
            hello = await _first(frames, self._limits.message_bytes)
            session = self._begin(hello, tenant, context.peer())
        except CaseError as error:
            await context.write(pb.ServerFrame(goodbye=_goodbye(error)))
            return
        await _Stream(self._engine, session, frames, context).run()

    def _begin(self, frame: pb.ClientFrame | None, tenant: str, peer: str) -> Session:
        if frame is None or not frame.HasField("hello"):
            raise CaseError("out_of_turn", "a session begins with hello")
        hello = frame.hello
        if PROTOCOL_VERSION not in hello.versions:
            spoken = ", ".join(map(str, hello.versions)) or "none"
            raise CaseError("wrong_version", f"the client speaks {spoken}; this server speaks {PROTOCOL_VERSION}")
        if hello.session_id:
            return self._engine.resume(hello.session_id, hello.server_instance, tenant, frame.acknowledged)
        return self._engine.open(tenant, hello.client, peer)

    # ---- bulk, beside the stream ----

    async def upload(self, chunks: AsyncIterator[bytes], context: Context) -> pb.UploadReceipt:
        """Fills the value that the session's stream declared or is about to declare."""
        session, handle = self._addressee(context)
        if session is None or handle is None:
            await _abort(context, "session_lost", "this server holds no such session")
        value = await self._declared(session, handle)
        if value is None:
            await _abort(context, "unknown_handle", f"handle {handle} names nothing in this session")
        try:
            staged = await self._gather(chunks, value)
        except _UploadBroken as broken:
            self._engine.upload_failed(session, value, str(broken))
            await _abort(context, "upload_failed", str(broken))
        except asyncio.CancelledError:
            self._engine.upload_failed(session, value, "the call that brought the bytes was broken off")
            raise
        self._engine.uploaded(session, value, staged)
        return pb.UploadReceipt(bytes=value.spec.size_bytes)

    def _addressee(self, context: Context) -> tuple[Session | None, int | None]:
        metadata = dict(context.invocation_metadata() or ())
        try:
            session = self._engine.sessions.get(bytes.fromhex(str(metadata.get(SESSION_HEADER, ""))))
            handle = int(str(metadata.get(HANDLE_HEADER, "")))
        except ValueError:
            return None, None
        if session is not None and session.tenant != self._access.tenant(context.invocation_metadata()):
            return None, None
        return session, handle

    async def _declared(self, session: Session, handle: int) -> Value | None:
        """The value to fill; the stream that declares it may be a little behind this call."""
        try:
            async with asyncio.timeout(self._limits.upload_stall_s):
                return await self._engine.uploads.claim(session, handle)
        except TimeoutError:
            return None
        finally:
            self._engine.uploads.give_up(session, handle)

    async def _gather(self, chunks: AsyncIterator[bytes], value: Value) -> Staged:
        """All bytes of an upload in one piece of host memory. Raises _UploadBroken."""
        size_bytes = value.spec.size_bytes
        staged = self._engine.device.stage(size_bytes)
        target = np.frombuffer(staged.memory, np.uint8)
        filled = 0
        while (raw := await self._next_chunk(chunks)) is not None:
            try:
                chunk = decode_chunk(raw)
            except ValueError as error:
                raise _UploadBroken(str(error)) from None
            if filled + len(chunk) > size_bytes:
                raise _UploadBroken(f"more than the {size_bytes} bytes declared")
            # Unlike a memoryview's assignment, NumPy lets gRPC's threads run meanwhile.
            np.copyto(target[filled : filled + len(chunk)], np.frombuffer(chunk, np.uint8))
            filled += len(chunk)
        if filled != size_bytes:
            raise _UploadBroken(f"{filled} bytes came for an upload declared as {size_bytes}")
        try:
            validate.check_uploaded(value.spec.dtype, staged.memory)
        except CaseError as error:
            raise _UploadBroken(error.text) from None
        return staged

    async def _next_chunk(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        stall_s = self._limits.upload_stall_s
        try:
            async with asyncio.timeout(stall_s):
                return await anext(chunks, None)
        except TimeoutError:
            raise _UploadBroken(f"nothing came for limits.upload_stall_s = {stall_s}") from None

    async def download(self, request: pb.DownloadRequest, context: Context) -> None:
        """The bytes of an answered fetch, in chunks."""
        session = self._engine.sessions.get(request.session_id)
        data = session.beside.get(request.fetch) if session is not None else None
        if session is None or data is None or session.tenant != self._access.tenant(context.invocation_metadata()):
            await _abort(context, "unknown_handle", f"fetch {request.fetch} has no answer to bring")
        step = self._limits.chunk_bytes
        for start in range(0, len(data), step):
            await context.write(encode_chunk(data[start : start + step]))
        self._engine.downloaded(session, request.fetch)


class _Stream:
    """One connection of a session: a reader and a writer, either of which ends both."""

    def __init__(self, engine: Engine, session: Session, frames: RawFrames, context: Context) -> None:
        self._engine = engine
        self._session = session
        self._frames = frames
        self._context = context
        self._epoch = session.epoch
        self._owed = asyncio.Event()
        self._patience = Patience(engine.config.limits.unread_s)
        self._sent_completed = Amount()
        self._sent_acknowledged = 0
        self._goodbye: pb.Goodbye | None = None

    async def run(self) -> None:
        """Serves the connection; returns when it is over. A broken one leaves the session to be resumed."""
        self._engine.attach(self._session, self._owed.set)
        reader, writer = asyncio.create_task(self._read()), asyncio.create_task(self._write())
        try:
            await asyncio.wait((reader, writer), return_when=asyncio.FIRST_COMPLETED)
            if self._goodbye is not None:
                await asyncio.wait((writer,))
            elif writer.done():
                await self._give_up(writer)
        finally:
            self._engine.detach(self._session, self._epoch)
            self._patience.end()
            reader.cancel()
            writer.cancel()
            await asyncio.gather(reader, writer, return_exceptions=True)

    async def _read(self) -> None:
        try:
            async for raw in self._frames:
                if not self._is_current or not self._apply(raw):
                    return
        except CaseError as error:
            log.info("session %s ends: %s", self._session.session_id.hex()[:8], error)
            self._goodbye = _goodbye(error)
            self._engine.end(self._session)
            self._owed.set()

    @property
    def _is_current(self) -> bool:
        """False once another connection has taken the session over."""
        return self._session.epoch == self._epoch

    def _apply(self, raw: bytes) -> bool:
        """Applies a frame of the client; False if it was the last. Raises CaseError.

        A frame that was applied in part cannot be sent again, so a fault of ours ends the session too.
        """
        try:
            return self._take(raw)
        except CaseError:
            raise
        except Exception as error:
            log.exception("a frame could not be applied")
            raise CaseError("server_fault", f"applying a frame failed: {type(error).__name__}") from error

    def _take(self, raw: bytes) -> bool:
        session, engine = self._session, self._engine
        frame = _parse(raw, self._engine.config.limits.message_bytes)
        if frame.HasField("hello"):
            raise CaseError("out_of_turn", "a second hello in one stream")
        session.bytes_in += len(raw)
        engine.acknowledge(session, frame.acknowledged)
        if frame.number:
            engine.receive(session, frame.number, frame.programs, frame.bindings, frame.tensors)
        elif frame.programs or frame.bindings or frame.tensors:
            raise CaseError("undecodable_frame", "a frame outside the numbering that carries work")
        if frame.HasField("goodbye"):
            engine.end(session)
            return False
        return True

    async def _write(self) -> None:
        """The only one who writes: welcome, what is owed, and goodbye if the session ends by a failure."""
        await self._send(self._welcome())
        self._owed.set()  # a resumed session may owe already
        while self._goodbye is None:
            await self._owed.wait()
            self._owed.clear()
            while self._is_current and (frame := self._next_frame()) is not None:
                await self._send(frame)
        await self._send(pb.ServerFrame(goodbye=self._goodbye))

    async def _send(self, frame: pb.ServerFrame) -> None:
        """Writes a frame. Raises CaseError if the client does not read it in time."""
        try:
            with self._patience:
                await self._context.write(frame)
        except asyncio.CancelledError:
            if not self._patience.is_over:
                raise
            unread_s = self._engine.config.limits.unread_s
            raise CaseError("slow_reader", f"a frame was not read for limits.unread_s = {unread_s}") from None

    async def _give_up(self, writer: asyncio.Task[None]) -> None:
        """The writer has failed. A client that reads too slowly loses its session, if it still is this stream's."""
        try:
            await writer
        except CaseError as error:
            if self._is_current:
                self._engine.end(self._session)
            await _abort(self._context, error.case.name, error.text)

    def _next_frame(self) -> pb.ServerFrame | None:
        session = self._session
        number, answers = session.take_answers(self._engine.config.limits.message_bytes // 2)
        unacknowledged = session.applied_frame - self._sent_acknowledged
        has_completed = session.completed != self._sent_completed
        if not answers and not has_completed and unacknowledged < MOST_UNACKNOWLEDGED:
            return None
        self._sent_completed, self._sent_acknowledged = session.completed, session.applied_frame
        return pb.ServerFrame(
            number=number,
            acknowledged=session.applied_frame,
            completed=pb.Completed(**session.completed._asdict()) if has_completed else None,
            results=[_result(answer) for answer in answers],
        )

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
                ),
                backend=engine.device.info.backend,
                server=f"fusewire {_version()}",
            ),
        )


class _UploadBroken(Exception):
    """An upload that stalled or is not what was declared; the text says which."""


async def _first(frames: RawFrames, message_bytes: int) -> pb.ClientFrame | None:
    try:
        async with asyncio.timeout(HELLO_DEADLINE_S):
            raw = await anext(aiter(frames), None)
    except TimeoutError:
        raise CaseError("out_of_turn", f"no hello came within {HELLO_DEADLINE_S} s") from None
    return None if raw is None else _parse(raw, message_bytes)


def _parse(raw: bytes, message_bytes: int) -> pb.ClientFrame:
    if len(raw) > message_bytes:
        raise CaseError("oversized_frame", f"a frame of {len(raw)} bytes; limits.message_bytes = {message_bytes}")
    try:
        return pb.ClientFrame.FromString(raw)
    except DecodeError as error:
        raise CaseError("undecodable_frame", str(error)) from None


def _goodbye(error: CaseError) -> pb.Goodbye:
    return pb.Goodbye(code=error.case.code, text=error.text)


def _result(answer: Answer) -> pb.Result:
    if answer.failure is not None:
        case, text, base, op_index = answer.failure
        return pb.Result(
            fetch=answer.fetch, failure=pb.Failure(code=case.code, text=text, base=base, op_index=op_index)
        )
    assert answer.data is not None, "an answer is a value or a failure"
    if answer.is_beside:
        return pb.Result(fetch=answer.fetch, beside_bytes=len(answer.data))
    return pb.Result(fetch=answer.fetch, inline=bytes(answer.data))


async def _abort(context: Context, case: str, text: str) -> NoReturn:
    status = grpc.StatusCode[BY_NAME[case].status]
    await context.abort(status, f"{case}: {text}")
    raise AssertionError("abort always raises")


def _as_it_is(raw: bytes) -> bytes:
    return raw


def _version() -> str:
    try:
        return version("fusewire")
    except PackageNotFoundError:
        return "0"
