"""The transport over gRPC: one thread and event loop a process, two connections a session.

Bulk bytes travel on the second connection, so that a large upload never stands before a fetch. Messages pass gRPC
as bytes, both ways: what is in them is the session's business.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections import deque
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio
import numpy as np

from fusewire._errors import FusewireError, SessionLost, Unauthenticated
from fusewire._transport import ChunkSink, Peer
from fusewire_protos.chunks import decode_chunk, encode_chunk
from fusewire_protos.v1 import fusewire_pb2 as wire

# gRPC's own handlers for forks crash a child now and then while our I/O thread is inside gRPC. Without them a child
# must leave the connection alone, which is what sessions make sure of. Read when gRPC is first used, not imported.
os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "false")

_SERVICE = "/fusewire.v1.Fusewire/"
_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),  # else gRPC would share one connection between the two channels
    ("grpc.keepalive_time_ms", 10_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
)
_PARTING_S = 0.5
_END: Any = grpc.aio.EOF

# gRPC's stubs leave out that serialisers may be left out, and more.
Call = Any


def new_event_loop() -> asyncio.AbstractEventLoop:
    """uvloop's where it is installed: its turns are shorter."""
    try:
        import uvloop  # noqa: PLC0415 - no dependency of the client
    except ImportError:
        return asyncio.new_event_loop()
    loop: asyncio.AbstractEventLoop = uvloop.new_event_loop()
    return loop


class IoThread:
    """The thread that owns the sockets of this process's sessions, and its event loop, which never ends.

    gRPC has one poller a process: what it brings for a loop that was closed would be raised in another's, and what
    it brought with it would be lost.
    """

    def __init__(self) -> None:
        self.loop = new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever, name="fusewire-io", daemon=True)
        self.thread.start()


_io_threads: dict[int, IoThread] = {}  # by process: a fork has the parent's entry, and not its thread
_starting = threading.Lock()


def io_thread() -> IoThread:
    """This process's I/O thread."""
    with _starting:
        process = os.getpid()
        if process not in _io_threads:
            _io_threads[process] = IoThread()
        return _io_threads[process]


class GrpcTransport:
    """Connects to `target` (host:port or unix:path). Without TLS credentials the connection is in the clear."""

    def __init__(
        self, target: str, *, token: str | None = None, credentials: grpc.ChannelCredentials | None = None
    ) -> None:
        self._target = target
        self._credentials = credentials
        self._metadata: tuple[tuple[str, str], ...] = (("authorization", f"Bearer {token}"),) if token else ()
        self._io_thread = io_thread()
        self._loop = self._io_thread.loop
        self._has_ended = threading.Event()
        self._has_ended.set()  # until it is opened
        self._farewell: bytes | None = None
        self._is_asleep = False  # set by the I/O thread, cleared by whoever wakes it first
        # From here on the I/O thread's alone.
        self._awake = asyncio.Event()
        self._is_ending = False
        self._bulk: Any = None  # a channel, once it is needed
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, peer: Peer) -> None:
        self._peer = peer
        self._has_ended.clear()
        self._call(lambda: self._start(self._run()))

    def wake(self) -> None:
        if self._is_asleep:
            self._is_asleep = False
            self._call(self._awake.set)

    def upload(self, session_id: bytes, handle: int) -> ChunkSink:
        upload = _Upload(self._loop)
        metadata = (("fusewire-session", session_id.hex()), ("fusewire-handle", str(handle)))
        self._call(lambda: self._start(self._carry_upload(upload, metadata)))
        return upload

    def download(self, session_id: bytes, fetch: int, size_bytes: int) -> None:
        self._call(lambda: self._start(self._carry_download(session_id, fetch, size_bytes)))

    def close(self, farewell: bytes | None, timeout_s: float) -> None:
        self._farewell = farewell
        self._call(self._begin_to_end)
        if threading.current_thread() is not self._io_thread.thread:
            self._has_ended.wait(timeout_s)

    def _call(self, function: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed: the session learns of its end by itself
            self._loop.call_soon_threadsafe(function)

    # ---- the I/O thread ----

    async def _run(self) -> None:
        try:
            await self._converse()
        finally:
            self._has_ended.set()

    async def _converse(self) -> None:
        channel = self._channel()
        call = channel.stream_stream(_SERVICE + "Session")(metadata=self._metadata)
        writing = asyncio.create_task(self._write(call))
        reading = asyncio.create_task(self._read(call))
        await asyncio.wait((writing, reading), return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            await asyncio.wait((reading,), timeout=_PARTING_S)  # the server's own farewell, or the reason it left
        reason = await _reason(call, self._target) if reading.done() else SessionLost("the server did not part")
        await _end(writing, reading, *(self._tasks - {asyncio.current_task()}))
        call.cancel()
        for used in (channel, self._bulk):
            if used is not None:
                await used.close()
        self._peer.on_lost(reason)

    async def _write(self, call: Call) -> None:
        await call.write(self._peer.hello())
        while not self._is_ending:
            await self._write_all(call)  # what is posted goes before what time demands
            delay_s = self._peer.on_tick()
            await self._write_all(call)
            await self._sleep(delay_s)
        if self._farewell is not None:
            await call.write(self._farewell)
        await call.done_writing()

    async def _write_all(self, call: Call) -> None:
        while (frame := self._peer.next_frame()) is not None:
            await call.write(frame)

    async def _sleep(self, delay_s: float) -> None:
        """Until woken. Whoever posts first and wakes then is never missed: the peer is asked once more below."""
        self._is_asleep = True
        timer = self._loop.call_later(delay_s, self._awake.set)
        await self._awake.wait()
        timer.cancel()
        self._is_asleep = False
        self._awake.clear()

    async def _read(self, call: Call) -> None:
        while (raw := await call.read()) is not _END:
            if self._peer.on_frame(raw):
                self.wake()

    def _begin_to_end(self) -> None:
        self._is_ending = True
        self._awake.set()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _carry_upload(self, upload: _Upload, metadata: tuple[tuple[str, str], ...]) -> None:
        call = self._bulk_channel().stream_unary(_SERVICE + "Upload")(metadata=self._metadata + metadata)
        try:
            async for chunk in upload.chunks():
                await call.write(encode_chunk(chunk))
            await call.done_writing()
            await call
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            upload.drop()  # the server fails the handle, and tells whoever fetches it

    async def _carry_download(self, session_id: bytes, fetch: int, size_bytes: int) -> None:
        request = wire.DownloadRequest(session_id=session_id, fetch=fetch).SerializeToString()
        call = self._bulk_channel().unary_stream(_SERVICE + "Download")(request, metadata=self._metadata)
        value = np.empty(size_bytes, np.uint8)
        filled = 0
        try:
            while (raw := await call.read()) is not _END:
                chunk = np.frombuffer(decode_chunk(raw), np.uint8)
                np.copyto(value[filled : filled + len(chunk)], chunk)  # lets other threads run, and refuses too much
                filled += len(chunk)
        except (grpc.aio.AioRpcError, ValueError):
            filled = -1
        self._peer.on_download(fetch, value.data if filled == size_bytes else None)

    def _channel(self) -> Any:
        if self._credentials is None:
            return grpc.aio.insecure_channel(self._target, options=_CHANNEL_OPTIONS)
        return grpc.aio.secure_channel(self._target, self._credentials, options=_CHANNEL_OPTIONS)

    def _bulk_channel(self) -> Any:
        if self._bulk is None:
            self._bulk = self._channel()
        return self._bulk


class _Upload:
    """Chunks on their way from the thread that copies them to the I/O thread. None ends them."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._chunks: deque[memoryview | None] = deque()
        self._arrived = asyncio.Event()
        self._is_dropped = False

    def put(self, chunk: memoryview) -> None:
        if not self._is_dropped:
            self._chunks.append(chunk)
            self._tell()

    def finish(self) -> None:
        self._chunks.append(None)
        self._tell()

    async def chunks(self) -> AsyncIterator[memoryview]:
        while True:
            self._arrived.clear()
            if not self._chunks:
                await self._arrived.wait()
                continue
            chunk = self._chunks.popleft()
            if chunk is None:
                return
            yield chunk

    def drop(self) -> None:
        """Nobody takes the chunks any more."""
        self._is_dropped = True
        self._chunks.clear()

    def _tell(self) -> None:
        with suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._arrived.set)


async def _reason(call: Call, target: str) -> FusewireError:
    """Why the stream has ended, in our words."""
    code, details = await call.code(), await call.details()
    if code is grpc.StatusCode.UNAUTHENTICATED:
        return Unauthenticated(f"{target}: {details}")
    if code is grpc.StatusCode.OK:
        return SessionLost(f"{target} ended the session")
    return SessionLost(f"{target}: {code.name.lower()}: {details}")


async def _end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
