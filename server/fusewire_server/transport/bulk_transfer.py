"""Carries large values beside the stream: the gRPC methods Upload and Download.

A value travels as serialised `Chunk` messages. The server builds and reads these messages without protobuf's copies. A
call that makes too little progress is given up, and every call ends when its session ends.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import AbstractContextManager, nullcontext, suppress
from typing import Any, NoReturn

import grpc
from google.protobuf.message import DecodeError

from fusewire_kernels.devices.base import Staged
from fusewire_protos.chunks import ChunkOrderError, chunk_head, encode_chunk
from fusewire_protos.errors import CaseError, OutOfMemory
from fusewire_protos.filling import Filling
from fusewire_protos.upload_call import HANDLE_HEADER, SESSION_HEADER
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.access.interceptor import Access
from fusewire_server.config.config import Limits
from fusewire_server.device.orders import no_room_on_host
from fusewire_server.engine.engine import Engine
from fusewire_server.sessions.entries import validation as validate
from fusewire_server.sessions.session import Session, SessionState, Value
from fusewire_server.sessions.tables.answers import Beside
from fusewire_server.transport.call import Call, Messages
from fusewire_server.transport.local_calls import LocalCall
from fusewire_server.transport.on_time_clock import BEAT_S, OnTimeClock
from fusewire_server.transport.refusal import refuse

log = logging.getLogger("fusewire.bulk")

# An upload must bring so many bytes a second, or all that are left, within each limits.upload_stall_s. So a client that
# sends a few bytes at a time cannot hold the host memory of an upload for long.
LEAST_BYTES_A_SECOND = 64 << 10
REQUEST_DEADLINE_S = 10.0  # for the one message of a download call
MOST_REQUEST_BYTES = 1 << 10
_END: Any = grpc.aio.EOF
_NO_SESSION = "this server holds no such session"
_BROKEN_OFF = "the call that carried the bytes was broken off"


class Bulk:
    """Uploads and downloads of one engine's sessions."""

    def __init__(self, engine: Engine, access: Access) -> None:
        self._engine = engine
        self._access = access
        self._clock = OnTimeClock()

    @property
    def _limits(self) -> Limits:
        return self._engine.config.limits

    async def upload(self, _chunks: Messages, call: Call) -> None:
        """Receives the bytes of a value that the session's stream has declared or will declare soon.

        Reads the chunks from `call`, because gRPC's iterator of them cannot be left while it reads.
        """
        session, handle = self._addressee(call)
        if session is None or handle is None:
            await refuse(call, "session_lost", _NO_SESSION)
        await call.send_initial_metadata(((SESSION_HEADER, session.session_id.hex()),))
        await self._refuse_if_ended(session, call)
        try:
            with self._engine.carrying(session):
                value = await self._declared(session, handle)
                if value is None:
                    await refuse(call, "unknown_handle", f"handle {handle} names nothing in this session")
                await self._fill(session, value, call)
        except CaseError as refusal:
            self._engine.refuse_upload(session, handle, refusal)
            raise
        except asyncio.CancelledError:
            await self._refuse_if_ended(session, call)
            raise
        await call.write(pb.UploadReceipt(bytes=value.size_bytes).SerializeToString())

    async def download(self, _requests: Messages, call: Call) -> None:
        """Sends the bytes of an answered fetch, in chunks."""
        # The metadata is sent first, because gRPC cannot end a call with details while the call's first message waits
        # together with the metadata.
        await call.send_initial_metadata(())
        request = await _request(call)
        session = self._session_of(request.session_id, call)
        if session is None:
            await refuse(call, "session_lost", _NO_SESSION)
        beside = session.answers.begin_download(request.fetch)
        if beside is None:
            await refuse(call, "unknown_handle", f"fetch {request.fetch} has no answer to download")
        try:
            await self._carry_down(session, request.fetch, beside, call)
        except _Unread as unread:
            await refuse(call, "slow_reader", str(unread))  # the client gets this status after the unread chunk
        except asyncio.CancelledError:
            await self._refuse_if_ended(session, call)
            raise

    async def _refuse_if_ended(self, session: Session, call: Call) -> None:
        """Ends a cancelled call with a reason if the session has ended. Otherwise the client has cancelled the call."""
        if session.state is SessionState.CLOSED:
            await refuse(call, "session_lost", "the session has ended")

    async def _carry_down(self, session: Session, fetch: int, beside: Beside, call: Call) -> None:
        try:
            with self._engine.carrying(session):
                await self._send(session, beside, call)
        finally:
            self._engine.downloaded(session, fetch, beside)

    def _addressee(self, call: Call) -> tuple[Session | None, int | None]:
        metadata = dict(call.invocation_metadata() or ())
        try:
            session_id = bytes.fromhex(str(metadata.get(SESSION_HEADER, "")))
            handle = int(str(metadata.get(HANDLE_HEADER, "")))
        except ValueError:
            return None, None
        return self._session_of(session_id, call), handle

    def _session_of(self, session_id: bytes, call: Call) -> Session | None:
        """Returns the session if this server holds it and if it belongs to the tenant of the call."""
        session = self._engine.sessions.get(session_id)
        if session is not None and session.tenant != self._access.tenant(call.invocation_metadata()):
            return None
        return session

    async def _declared(self, session: Session, handle: int) -> Value | None:
        """Waits until the session's stream has declared the value of an upload, because the stream may be behind.

        Waits as long as a declared upload waits for its call: the stream may have fallen silent, and be made anew.
        Returns None if the stream does not declare the value meanwhile.
        """
        call = self._engine.claim_upload(session, handle)
        try:
            async with asyncio.timeout(self._engine.upload_wait_s):
                return await call
        except TimeoutError:
            return self._engine.give_up_upload(session, handle, call)
        except asyncio.CancelledError:
            value = self._engine.give_up_upload(session, handle, call)
            if value is not None:
                self._engine.upload_broken_off(session, value, _BROKEN_OFF)
            raise

    async def _fill(self, session: Session, value: Value, call: Call) -> None:
        is_reserved = is_received = False
        try:
            await self._engine.staging.reserve(session, value.size_bytes)
            is_reserved = True
            with self._clock.going():
                staged = await self._gather(session, value, call)
            is_received = True
        except _Incomplete as reason:
            self._engine.upload_broken_off(session, value, str(reason))
            await refuse(call, "upload_failed", str(reason))
        except OutOfMemory as error:
            text = self._engine.no_room(str(error), session.tenant)
            await self._fail(session, value, "out_of_memory", text, call)
        except MemoryError:
            await self._fail(session, value, "out_of_memory", no_room_on_host(value.size_bytes), call)
        except CaseError as error:
            await self._fail(session, value, error.case.name, error.text, call)
        except asyncio.CancelledError:
            self._engine.upload_broken_off(session, value, _BROKEN_OFF)
            raise
        except Exception as error:
            log.exception("the bytes of an upload could not be received")
            text = f"receiving the bytes failed: {type(error).__name__}"
            await self._fail(session, value, "server_fault", text, call)
        finally:
            if is_reserved and not is_received:
                self._engine.staging.give_back(session, value.size_bytes)
        self._engine.uploaded(session, value, staged)

    async def _fail(self, session: Session, value: Value, case: str, text: str, call: Call) -> NoReturn:
        """Fails the value of an upload, and ends the call."""
        self._engine.upload_failed(session, value, text, case=case)
        await refuse(call, case, text)

    async def _gather(self, session: Session, value: Value, call: Call) -> Staged:
        """Gathers an upload in one block of host memory.

        Raises MemoryError if there is no host memory, CaseError if the bytes are wrong or too many, and _Incomplete if
        they are too few or come too slowly, as when the connection breaks.
        """
        size_bytes = value.size_bytes
        staged = self._engine.device.stage(size_bytes)
        filling = Filling(staged.memory)
        with _placing(call, filling):
            await self._fill_from(call, filling, session)
        if filling.filled_bytes != size_bytes:
            raise _Incomplete(f"{filling.filled_bytes} bytes came for an upload declared as {size_bytes}")
        validate.check_uploaded(value.spec.dtype, staged.memory)
        return staged

    async def _fill_from(self, call: Call, filling: Filling, session: Session) -> None:
        """Takes all chunks. Raises CaseError if one is out of order, _Incomplete if they are slow."""
        stall_s = self._limits.upload_stall_s
        due_s, owed_bytes = self._clock.now_s + stall_s, _owed_bytes(stall_s)
        while (message := await self._next_chunk(call, due_s)) is not _END:
            count = _taken(filling, message)
            session.bytes_in += count
            owed_bytes -= count
            if owed_bytes <= 0:
                due_s, owed_bytes = self._clock.now_s + stall_s, _owed_bytes(stall_s)

    async def _next_chunk(self, call: Call, due_s: float) -> Any:
        """Returns a chunk, or `_END`. Reads in a task of its own, which goes on if the call is cancelled meanwhile.

        If a read of gRPC were cancelled, the chunk that it was to bring would never be freed.
        """
        reading = asyncio.ensure_future(call.read())
        reading.add_done_callback(_note_error)
        while (left_s := due_s - self._clock.now_s) > 0:
            with suppress(TimeoutError):
                async with asyncio.timeout(max(left_s, BEAT_S)):
                    return await asyncio.shield(reading)
        stall_s = self._limits.upload_stall_s
        text = f"neither the rest nor {_owed_bytes(stall_s)} bytes came within limits.upload_stall_s = {stall_s}"
        raise _Incomplete(text)

    async def _send(self, session: Session, beside: Beside, call: Call) -> None:
        data, step, unread_s = beside.data, self._limits.chunk_bytes, self._limits.unread_s
        for start in range(0, len(data), step):
            try:
                async with asyncio.timeout(unread_s):
                    await _write_chunk(call, start, data[start : start + step])
                session.bytes_out += len(data[start : start + step])
            except TimeoutError:
                raise _Unread(f"a chunk was not read for limits.unread_s = {unread_s}") from None


async def _request(call: Call) -> pb.DownloadRequest:
    """Returns the one message of a download call. Raises CaseError."""
    try:
        async with asyncio.timeout(REQUEST_DEADLINE_S):
            raw = await call.read()
    except TimeoutError:
        raise CaseError("out_of_turn", f"no request came within {REQUEST_DEADLINE_S} s") from None
    if raw is _END or len(raw) > MOST_REQUEST_BYTES:
        raise CaseError("undecodable_frame", f"a request has at most {MOST_REQUEST_BYTES} bytes")
    try:
        return pb.DownloadRequest.FromString(raw)
    except DecodeError as error:
        raise CaseError("undecodable_frame", str(error)) from None


def _owed_bytes(within_s: float) -> int:
    """Returns how many bytes an upload must bring within so many seconds."""
    return max(round(LEAST_BYTES_A_SECOND * within_s), 1)


def _note_error(reading: asyncio.Future[Any]) -> None:
    """Looks at the error of a read, which asyncio logs if nobody does, as when the call has ended meanwhile."""
    if not reading.cancelled():
        reading.exception()


class _Incomplete(Exception):
    """Raised when the call of an upload brings too few bytes."""


class _Unread(Exception):
    """Raised when a client does not read its download."""


def _taken(filling: Filling, message: Any) -> int:
    """Returns how many bytes a chunk has brought. Raises CaseError if it is out of order, malformed or too long."""
    try:
        return filling.take(message)
    except ChunkOrderError as error:
        raise CaseError("chunk_order", str(error)) from None
    except ValueError as error:
        raise CaseError("upload_failed", str(error)) from None


def _placing(call: Call, filling: Filling) -> AbstractContextManager[None]:
    """Has a local call receive chunks straight to their places. gRPC cannot."""
    return call.placing(filling.place) if isinstance(call, LocalCall) else nullcontext()


async def _write_chunk(call: Call, offset: int, data: memoryview) -> None:
    if isinstance(call, LocalCall):
        await call.write(chunk_head(offset, len(data)), data)
    else:
        await call.write(encode_chunk(offset, data))
