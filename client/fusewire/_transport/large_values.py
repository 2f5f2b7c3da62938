"""Carries the large values of a session, each in a gRPC call of its own.

Large values use a second connection, so that they never delay a fetch. Behind a balancer the second connection may
reach another server than the stream, at first or when it is made anew. That server does not hold the session and
refuses the call. The client then repeats the call over the stream's connection, which leads to the session's server,
and uses this connection for all later values. It does the same if the second connection breaks and the stream's does
not. If the stream's connection breaks, all calls end, and are made again once there is a new one.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from contextlib import suppress
from typing import Any, TypeVar

import grpc
import grpc.aio
import numpy as np
import numpy.typing as npt

from fusewire._errors import FusewireError, QuotaExceeded, SessionLost
from fusewire._transport.interface import ConnectionCut
from fusewire._transport.local_channel import LocalCall
from fusewire._transport.upload_queue import UploadQueue
from fusewire_protos.errors import BY_NAME, Case, exception_of
from fusewire_protos.filling import Filling
from fusewire_protos.upload_call import HANDLE_HEADER, SESSION_HEADER
from fusewire_protos.v1 import fusewire_pb2 as wire

SERVICE = "/fusewire.v1.Fusewire/"
_BROKEN_OFF = "the connection broke while the value travelled"
_GOODBYE_S = 0.5  # how long after a failed call the stream may tell that its connection or its session has ended
_END: Any = grpc.aio.EOF
T = TypeVar("T")

# The types of gRPC channels and calls. gRPC's own type stubs do not fit, because they demand serialisers, which may be
# omitted.
Channel = Any
Call = Any
Metadata = tuple[tuple[str, str], ...]


class LargeValues:
    """The uploads and downloads of one session over one connection. Only the I/O thread uses this class.

    `stream_channel` is the channel of the session's stream. `open_channel` returns a new channel to the same target.
    `metadata` is sent with each call.
    """

    def __init__(self, stream_channel: Channel, open_channel: Callable[[], Channel], metadata: Metadata) -> None:
        self._stream_channel = stream_channel
        self._open_channel = open_channel
        self._metadata = metadata
        self._carrying: set[asyncio.Task[Any]] = set()
        self._has_ended = asyncio.Event()
        self._second_channel: Channel = None  # None before the first large value
        self._shares_stream_connection = False  # True once a call over the second connection was not accepted

    async def carrying(self, act: Coroutine[Any, Any, T]) -> T:
        """Carries a value, unless the connection ends first: then raises ConnectionCut."""
        task = asyncio.create_task(act)
        self._carrying.add(task)
        try:
            await asyncio.wait((task,))  # unlike `await task`, tells its cancellation from our own
        finally:
            self._carrying.discard(task)
            await _end(task)
        if task.cancelled():
            raise ConnectionCut(_BROKEN_OFF)
        return task.result()

    async def _see_whether_connected(self, within_s: float = 0.0) -> None:
        """Raises ConnectionCut if the connection has ended, or ends within this time.

        It may have ended although the current task goes on, because gRPC takes some cancellations for its own.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                await self._has_ended.wait()
            raise ConnectionCut(_BROKEN_OFF)

    async def upload(self, upload: UploadQueue, session_id: bytes, handle: int) -> bool:
        """Sends an upload. Returns False if its bytes must be put into a queue anew, because it does not keep them.

        If the server refuses the upload for a reason of its own, it lets every fetch of the handle fail.
        """
        own = ((SESSION_HEADER, session_id.hex()), (HANDLE_HEADER, str(handle)))
        if not self._shares_stream_connection:
            if await _send(self._upload_call(self._second(), own), upload):
                return True
            await self._see_whether_connected()
            self._shares_stream_connection = True
            if not upload.is_kept:
                return False
        if not await _send(self._upload_call(self._stream_channel, own), upload):
            await self._see_whether_connected(_GOODBYE_S)
        return True

    async def download(self, session_id: bytes, fetch: int, size_bytes: int) -> memoryview:
        """Returns the bytes of an answered fetch.

        Raises QuotaExceeded if a limit of the server forbids the download, SessionLost if the connection breaks or the
        bytes are not as declared, and MemoryError if there is no room for the value.
        """
        value = np.empty(size_bytes, np.uint8)
        request = wire.DownloadRequest(session_id=session_id, fetch=fetch).SerializeToString()
        try:
            filled = await self._receive(request, ((SESSION_HEADER, session_id.hex()),), value)
        except grpc.aio.AioRpcError as error:
            reason = _reason_of(error)
            if isinstance(reason, SessionLost):
                await self._see_whether_connected(_GOODBYE_S)
            raise reason from None
        except (asyncio.InvalidStateError, ValueError):
            filled = 0
        if filled < size_bytes:
            raise SessionLost(_BROKEN_OFF)
        return value.data

    async def close(self) -> None:
        """Ends what is being carried, and closes the second connection."""
        self._has_ended.set()
        await _end(*self._carrying)
        if self._second_channel is not None:
            await self._second_channel.close()

    def _second(self) -> Channel:
        if self._second_channel is None:
            self._second_channel = self._open_channel()
        return self._second_channel

    def _upload_call(self, channel: Channel, own: Metadata) -> Call:
        return channel.stream_unary(SERVICE + "Upload")(metadata=self._metadata + own)

    async def _receive(self, request: bytes, own: Metadata, value: npt.NDArray[np.uint8]) -> int:
        """Fills `value` from a download, and returns the number of bytes that came."""
        if not self._shares_stream_connection:
            try:
                return await _fill(self._download_call(self._second(), request, own), value)
            except grpc.aio.AioRpcError as error:
                if not _may_go_otherwise(error):
                    raise
                await self._see_whether_connected()
                self._shares_stream_connection = True
        return await _fill(self._download_call(self._stream_channel, request, own), value)

    def _download_call(self, channel: Channel, request: bytes, own: Metadata) -> Call:
        return channel.unary_stream(SERVICE + "Download")(request, metadata=self._metadata + own)


async def _send(call: Call, upload: UploadQueue) -> bool:
    """Sends an upload over a call. Returns whether it has an end: the server has it, or has refused it for good.

    A server that holds the session tells so in its initial metadata. The status of another's refusal is not looked at,
    because gRPC may lose the status while the client writes. The client sends before it knows whether the server holds
    the session, because waiting would take a round trip.
    """
    upload.send_again()
    writing = asyncio.create_task(_write(call, upload))
    try:
        if SESSION_HEADER not in await call.initial_metadata():
            return False
        with suppress(grpc.aio.AioRpcError, asyncio.InvalidStateError):
            await writing
        await call
    except grpc.aio.AioRpcError as error:
        return not _may_go_otherwise(error)
    else:
        return True
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)


async def _write(call: Call, upload: UploadQueue) -> None:
    while (pieces := await upload.next()) is not None:
        if isinstance(call, LocalCall):
            await call.write(*pieces)
        else:
            await call.write(pieces[0] if len(pieces) == 1 else b"".join(pieces))
    await call.done_writing()
    await call


async def _fill(call: Call, value: npt.NDArray[np.uint8]) -> int:
    """Fills `value` from the start. Returns the number of bytes that came. Raises ValueError for wrong chunks.

    Reads in a task of its own. If the download is cancelled, the read goes on until gRPC has ended the call, because
    the chunk that a cancelled read was to bring would never be freed.
    """
    filling = Filling(value.data)
    if isinstance(call, LocalCall):
        call.place_by(filling.place)
    reading = asyncio.create_task(_read_chunks(call, filling))
    try:
        await asyncio.wait((reading,))  # unlike `await reading`, passes no cancellation on
    except asyncio.CancelledError:
        call.cancel()
        await asyncio.gather(reading, return_exceptions=True)
        raise
    return reading.result()


async def _read_chunks(call: Call, filling: Filling) -> int:
    while (raw := await call.read()) is not _END:
        filling.take(raw)
    return filling.filled_bytes


async def _end(*tasks: asyncio.Task[Any]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _may_go_otherwise(error: grpc.aio.AioRpcError) -> bool:
    """Returns whether another connection may carry what this one did not: it broke, or led to another server."""
    return case_of(error.details()) in {None, BY_NAME["session_lost"]}


def case_of(details: str | None) -> Case | None:
    """Returns the case that the details of a call's status name, or None if they do not come from the server."""
    return BY_NAME.get((details or "").partition(": ")[0])


def _reason_of(error: grpc.aio.AioRpcError) -> FusewireError:
    """Returns why a download failed: the server's limit that the call's status names, or else a lost connection."""
    case = case_of(error.details())
    if case is not None and case.exception is QuotaExceeded:
        return exception_of(case.code, (error.details() or "").partition(": ")[2])
    return SessionLost(_BROKEN_OFF)
