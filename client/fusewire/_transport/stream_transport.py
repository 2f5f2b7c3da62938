"""A session's transport: its stream and its large values, by gRPC or local calls.

A session has up to two connections of gRPC. If its server is on this machine, it goes on by local calls once the server
has welcomed it.

The second connection is for large values, and is opened for the first of them. This code passes frames as bytes between
gRPC and the session, and the session encodes and decodes the frames. If the connection breaks, the session says when to
make it again, and the large values that were on their way wait and travel anew.
"""

from __future__ import annotations

import asyncio
import socket
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import grpc
import grpc.aio

from fusewire._errors import (
    FusewireError,
    SessionLost,
    Unauthenticated,
)
from fusewire._transport.interface import ConnectionCut, Peer, Receiver
from fusewire._transport.io_thread import PARTING_S, io_thread
from fusewire._transport.large_values import SERVICE, LargeValues, Metadata, case_of
from fusewire._transport.local_channel import LocalChannel, LocalOffer
from fusewire._transport.local_stream import LocalStream, drives_here, left_s_until
from fusewire._transport.streams import GrpcStream, Stream
from fusewire._transport.upload_queue import ByteBudget, UploadQueue
from fusewire_protos.local_calls.parts import Opening

# A server that is stopped or cut off is noticed after this time, or, if gRPC awaits nothing of it, _IDLE_MS later: a
# ping may wait so long, whatever `keepalive_timeout_ms` says. A busy machine shall not look like that.
_SILENT_MS = 10_000
_IDLE_MS = 5_000
_SILENT = "ping timeout"  # gRPC's words
_CHANNEL_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),  # otherwise the two channels would share one connection
    ("grpc.keepalive_time_ms", _IDLE_MS),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", _SILENT_MS),
    ("grpc.http2.max_pings_without_data", 0),
)
# Otherwise gRPC would send what is not encrypted, the token included, to the proxy that `http_proxy` names.
_CLEAR_CHANNEL_OPTIONS = (*_CHANNEL_OPTIONS, ("grpc.enable_http_proxy", 0))
# The most bytes of uploads that are copied and that the server has not yet got. (Of an upload that is larger than this:
# that the connection has not yet taken.) For this many bytes the allocator reuses memory. For more bytes the operating
# system would have to clear new pages, which takes longer than copying.
_QUEUED_BYTES = 16 << 20
_MOVED_WITHIN_S = 5.0  # until the server answers a session that moves
_PAUSE_S = 0.1  # before a large value is carried again
T = TypeVar("T")


class _Moves(ConnectionCut):
    """The session goes on at once over local calls, or over gRPC if there is no `offer`. Nothing has broken."""

    def __init__(self, offer: LocalOffer | None) -> None:
        super().__init__("the session moves to another connection")
        self.offer = offer


class _StreamEnded(ConnectionCut):
    """The server has ended the stream, in order, and said nothing."""


class StreamTransport:
    """Connects to `target` (host:port or unix:path).

    Without TLS credentials the connection is not encrypted, and uses no proxy. `find_token` is called for each
    connection, because a token may have been replaced since the last one.
    """

    def __init__(
        self,
        target: str,
        *,
        find_token: Callable[[], str] = lambda: "",
        credentials: grpc.ChannelCredentials | None = None,
        local: bool = True,
    ) -> None:
        self._target = target
        self._credentials = credentials
        self._find_token = find_token
        self._io_thread = io_thread()
        self._loop = self._io_thread.loop
        self._has_ended = threading.Event()
        self._has_ended.set()  # until the transport is opened
        self._byte_budget = ByteBudget(_QUEUED_BYTES)
        self._farewell: bytes | None = None
        self._local_stream: LocalStream | None = None  # once the server has welcomed us over it; the I/O thread sets it
        self._is_asleep = False  # set by the I/O thread, cleared by the first thread that wakes the I/O thread
        self._is_tick_wanted = True  # set by any thread, cleared by the I/O thread
        # Only the I/O thread uses the fields below.
        self._is_ending = False
        self._is_over = False  # whether no connection is made any more
        self._may_go_local = local and sys.platform == "linux"  # others have no abstract sockets
        self._is_moving = False  # whether the session leaves the connection that it has
        self._awakening: asyncio.Future[None] | None = None  # the sleeping I/O thread awaits this future
        self._is_to_end = asyncio.Event()
        self._is_given_up = asyncio.Event()
        self._large_values: LargeValues  # of the connection that is made or used
        self._connected: asyncio.Future[LargeValues] = self._loop.create_future()  # done while the server answers
        self._tasks: set[asyncio.Task[None]] = set()

    def open(self, peer: Peer) -> None:
        self._peer = peer
        self._has_ended.clear()
        self._call(lambda: self._start(self._run()))

    def wake(self) -> None:
        self._have_thread_listen()
        self._awaken_thread()

    def wait(self, receiver: Receiver, timeout_s: float | None) -> bool:
        try:
            return self._wait(receiver, timeout_s)
        except BaseException:
            self.want_tick()  # for what a signal handler that raised has left undone
            raise

    def _wait(self, receiver: Receiver, timeout_s: float | None) -> bool:
        stream = self._local_stream  # which the I/O thread may replace meanwhile
        if stream is not None:
            ends_s = None if timeout_s is None else time.monotonic() + timeout_s
            if stream.drive(receiver, ends_s):
                return True
            timeout_s = left_s_until(ends_s)
        if stream is None or stream.is_over:
            self._awaken_thread()
        return receiver.has_settled_within(timeout_s)

    def call(self, act: Callable[[], object]) -> None:
        if threading.get_ident() == self._io_thread.ident:
            act()
        else:
            self._call(act)

    def _have_thread_listen(self) -> None:
        stream = self._local_stream
        if stream is not None:
            stream.listen()

    def _awaken_thread(self) -> None:
        if self._is_asleep:
            self._is_asleep = False
            self._call(self._awaken)

    def want_tick(self) -> None:
        self._is_tick_wanted = True
        self._awaken_thread()

    def is_own_thread(self) -> bool:
        return threading.get_ident() == self._io_thread.ident or drives_here()

    def upload(self, session_id: bytes, handle: int, chunks: Sequence[memoryview]) -> None:
        size_bytes, is_to_be_sent = sum(chunk.nbytes for chunk in chunks), True
        while is_to_be_sent:
            upload = UploadQueue(self._loop, self._byte_budget, size_bytes)
            try:
                self._call(partial(self._begin_upload, upload, session_id, handle))
                upload.fill(chunks, is_copied=upload.is_kept or self._local_stream is None)
                upload.finish()
                is_to_be_sent = upload.is_cut()
            except BaseException:
                upload.give_up()
                raise

    def download(self, session_id: bytes, fetch: int, size_bytes: int) -> None:
        self._have_thread_listen()  # the I/O thread brings the value, and whoever waits for it is not to receive
        self._call(lambda: self._start(self._carry_download(session_id, fetch, size_bytes)))

    def close(self, farewell: bytes | None) -> None:
        self._farewell = farewell
        self._byte_budget.end()
        self._have_thread_listen()
        self._call(self._begin_to_end)

    def wait_closed(self, timeout_s: float) -> None:
        if not self.is_own_thread():
            self._has_ended.wait(timeout_s)

    def _call(self, function: Callable[[], object]) -> None:
        with suppress(RuntimeError):  # the loop is closed; then the session ends too
            self._loop.call_soon_threadsafe(function)

    # ---- the I/O thread ----

    async def _run(self) -> None:
        """Runs the connections. However the last one ends, calls the session's `on_lost` with the reason."""
        reason: FusewireError = SessionLost("the I/O thread was stopped")
        try:
            reason = await self._connect()
        except FusewireError as error:
            reason = error
        except Exception as error:  # noqa: BLE001 - a defect of ours, or a target that gRPC cannot parse
            reason = SessionLost(f"{self._target}: {error!r}")
        finally:
            self._is_over = True
            self._byte_budget.end()
            await _end(*(self._tasks - {asyncio.current_task()}))
            self._peer.on_lost(reason)
            self._has_ended.set()

    async def _connect(self) -> FusewireError:
        """Connects, and connects again for as long as the session wants to. Returns the reason of the last end."""
        reason = await self._converse(None)
        while isinstance(reason, ConnectionCut):
            if isinstance(reason, _Moves):
                reason = await self._converse(_MOVED_WITHIN_S, reason.offer)
                continue
            attempt = self._peer.on_cut(reason)
            if attempt is None or await self._is_given_up_within(attempt.delay_s):
                await self._say_farewell_again(reason)
                return SessionLost(str(reason))
            reason = await self._converse(attempt.within_s)
        return reason

    async def _say_farewell_again(self, reason: ConnectionCut) -> None:
        """Says farewell over one more connection, if the last one broke and may not have carried it."""
        if self._farewell is not None and not isinstance(reason, _StreamEnded):
            await self._converse(PARTING_S)

    async def _is_given_up_within(self, delay_s: float) -> bool:
        with suppress(TimeoutError):
            async with asyncio.timeout(delay_s):
                await self._is_to_end.wait()
        return self._is_given_up.is_set()

    async def _converse(self, within_s: float | None, offer: LocalOffer | None = None) -> FusewireError:
        """Reads and writes frames until the connection ends, or if no frame has come `within_s`.

        Returns the reason of the end.
        """
        token = self._find_token()
        metadata = (("authorization", f"Bearer {token}"),) if token else ()
        open_channel = self._channel if offer is None else partial(LocalChannel, offer)
        channel = open_channel()
        stream: GrpcStream | LocalStream
        try:
            stream = self._stream(channel, metadata) if offer is None else self._local(offer, metadata)
        except OSError:
            return self._stays()
        self._large_values = LargeValues(channel, open_channel, metadata)
        self._is_moving = False
        try:
            reason = await self._talk(stream, within_s)
        finally:
            was_connected = self._connected.done()
            if was_connected:
                self._connected = self._loop.create_future()
            self._local_stream = None
            stream.cancel()
            await self._large_values.close()
            await channel.close()
        if offer is None or type(reason) is not ConnectionCut:
            return reason
        if not was_connected:
            return self._stays()
        return _Moves(offer) if isinstance(stream, LocalStream) and stream.is_interrupted else reason

    def _stays(self) -> ConnectionCut:
        """Has the session stay on gRPC: the server has no local socket here, or does not answer there."""
        self._may_go_local = False
        return _Moves(None)

    async def _talk(self, stream: GrpcStream | LocalStream, within_s: float | None) -> FusewireError:
        """Reads and writes until the stream ends or the session moves. Returns the reason."""
        writing = asyncio.create_task(self._write(stream))
        reading = asyncio.create_task(self._read(stream))
        giving_up = asyncio.create_task(self._give_up())
        ends = (writing, reading, giving_up)
        try:
            done, _ = await asyncio.wait(
                (*ends, self._connected), timeout=within_s, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                return ConnectionCut(f"{self._target} has not answered for {within_s:.0f} s")
            if isinstance(stream, LocalStream) and self._connected.done():
                self._local_stream = stream
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if giving_up.done():
                return SessionLost("the connection was given up")
            if not reading.done() and _failure(writing) is None:
                await asyncio.wait((reading,), timeout=PARTING_S)  # for the server's goodbye or error
            return await self._reason(stream, reading, writing)
        finally:
            await _end(*ends)

    def _stream(self, channel: Any, metadata: Metadata) -> GrpcStream:
        return GrpcStream(channel.stream_stream(SERVICE + "Session")(metadata=metadata), self._peer)

    def _local(self, offer: LocalOffer, metadata: Metadata) -> LocalStream:
        return LocalStream(offer, Opening("Session", metadata, "", offer.secret), self._peer)

    def _reachable_offer(self) -> LocalOffer | None:
        """Returns the server's offer of local calls, if the session goes on and this process reaches the socket."""
        offer = self._peer.local_offer() if self._may_go_local and not self._is_ending else None
        if offer is None:
            return None
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
            probe.setblocking(False)
            return offer if probe.connect_ex(f"\0{offer.name}") == 0 else None

    async def _reason(self, stream: Stream, reading: asyncio.Task[None], writing: asyncio.Task[None]) -> FusewireError:
        """Returns why the connection ended.

        A failure in the client is looked for first, because the call then is still open and has no status.
        """
        failure = _failure(reading) or _failure(writing)
        if isinstance(failure, FusewireError):
            return failure
        if failure is not None:
            return SessionLost(f"the client failed: {failure!r}")
        if not reading.done():
            return SessionLost(f"{self._target} did not end the stream")  # after the farewell
        return await _reason_of(stream, self._target)

    async def _write(self, stream: Stream) -> None:
        await stream.write(self._peer.hello())
        due_s = 0.0
        while not self._is_ending:
            if await self._send_next(stream):  # posted entries are sent before the tick's work
                continue
            if self._is_tick_wanted or self._loop.time() >= due_s:
                self._is_tick_wanted = False
                due_s = self._loop.time() + self._peer.on_tick()
                stream.on_tick()
            else:
                await self._sleep(stream, due_s)
        if self._farewell is not None:
            await stream.write(self._farewell)
        await stream.done_writing()

    async def _send_next(self, stream: Stream) -> bool:
        """Sends a frame, unless it is to travel over the connection to which the session moves."""
        return not self._is_moving and await stream.send_next()

    async def _sleep(self, stream: Stream, due_s: float) -> None:
        """Sleeps until another thread wakes the I/O thread, or until the next tick is due.

        After setting `_is_asleep`, looks for a frame once more. A thread that posted before `_is_asleep` was set did
        not wake the I/O thread, so without this look its entries would wait.
        """
        self._is_asleep = True
        if await self._send_next(stream) or self._is_tick_wanted or self._is_ending:
            self._is_asleep = False
            return
        self._awakening = self._loop.create_future()
        timer = self._loop.call_at(due_s, self._on_due)
        await self._awakening
        timer.cancel()
        self._is_asleep = False

    def _on_due(self) -> None:
        """Wakes the I/O thread for a tick that is due.

        Sets `_is_tick_wanted`, because the clock of uvloop counts whole milliseconds and may not show the due time yet.
        """
        self._is_tick_wanted = True
        self._awaken()

    def _awaken(self) -> None:
        if self._awakening is not None and not self._awakening.done():
            self._awakening.set_result(None)

    async def _read(self, stream: Stream) -> None:
        can_move = isinstance(stream, GrpcStream)
        await stream.read(partial(self._on_frame, can_move=can_move))

    def _on_frame(self, raw: bytes, *, can_move: bool) -> None:
        """Takes a frame. The first one of a connection comes in the I/O thread. Raises _Moves if the session moves."""
        has_news = self._peer.on_frame(raw)
        if not self._connected.done():
            offer = self._reachable_offer() if can_move else None
            if offer is not None:
                self._is_moving = True
                raise _Moves(offer)
            self._connected.set_result(self._large_values)
        if has_news:
            self.want_tick()

    async def _give_up(self) -> None:
        await self._is_given_up.wait()

    def _begin_to_end(self) -> None:
        """Makes the stream end after the farewell is sent, which the next attempt does if there is no connection now.

        Without a farewell the stream ends at once, because no session may have begun.
        """
        self._is_ending = True
        self._is_to_end.set()
        self._is_asleep = False
        self._awaken()
        if self._farewell is None:
            self._is_given_up.set()

    def _start(self, work: Coroutine[Any, Any, None]) -> None:
        task = self._loop.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def _begin_upload(self, upload: UploadQueue, session_id: bytes, handle: int) -> None:
        self._start(self._carry_upload(upload, session_id, handle))

    async def _carry_upload(self, upload: UploadQueue, session_id: bytes, handle: int) -> None:
        is_sent = True  # if the session ends meanwhile, nothing is sent again
        try:
            is_sent = await self._carry(
                lambda large_values: large_values.upload(upload, session_id, handle), is_repeated=upload.is_kept
            )
        except ConnectionCut:
            is_sent = False
        finally:
            upload.end(is_cut=not is_sent)
        await upload.drain()

    async def _carry_download(self, session_id: bytes, fetch: int, size_bytes: int) -> None:
        try:
            value = await self._carry(lambda large_values: large_values.download(session_id, fetch, size_bytes))
        except Exception as reason:  # noqa: BLE001 - every error must reach the thread that waits for the value
            self._peer.on_download_failed(fetch, reason)
        else:
            self._peer.on_download(fetch, value)

    async def _carry(self, act: Callable[[LargeValues], Coroutine[Any, Any, T]], *, is_repeated: bool = True) -> T:
        """Carries a large value over the connection that there is, or that comes.

        If that connection breaks meanwhile, does it again or raises ConnectionCut.
        """
        if self._is_over:
            raise SessionLost("the connection has ended")
        while True:
            large_values = await asyncio.shield(self._connected)
            try:
                return await large_values.carrying(act(large_values))
            except ConnectionCut:
                if not is_repeated:
                    raise
                await asyncio.sleep(_PAUSE_S)

    def _channel(self) -> Any:
        if self._credentials is None:
            return grpc.aio.insecure_channel(_address_of(self._target), options=_CLEAR_CHANNEL_OPTIONS)
        return grpc.aio.secure_channel(_address_of(self._target), self._credentials, options=_CHANNEL_OPTIONS)


def _address_of(target: str) -> str:
    """Returns the target with a scheme. Without a scheme gRPC might read the host's name as a scheme."""
    return target if target.startswith("unix:") else "dns:///" + target.replace("%", "%25")


async def _reason_of(stream: Stream, target: str) -> FusewireError:
    """Returns why the stream has ended, as one of the errors in `fusewire_protos.errors`."""
    code, details = await stream.code(), await stream.details()
    if code is grpc.StatusCode.UNAUTHENTICATED:
        return Unauthenticated(f"{target}: {details}")
    if case_of(details) is not None:
        return SessionLost(f"{target}: {code.name.lower()}: {details}")
    if code is grpc.StatusCode.OK:
        return _StreamEnded(f"{target} ended the session")
    if _SILENT in details:
        return ConnectionCut(f"{target} has not answered for {_SILENT_MS // 1000} s: it is stopped, or cut off")
    return ConnectionCut(f"{target}: {code.name.lower()}: {details}")


def _failure(task: asyncio.Task[None]) -> BaseException | None:
    """Returns the exception that stopped a task.

    Returns None if the end of the call stopped the task, because the call's status then tells the reason.
    """
    if not task.done() or task.cancelled():
        return None
    failure = task.exception()
    return None if isinstance(failure, grpc.aio.AioRpcError | asyncio.InvalidStateError) else failure


async def _end(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
