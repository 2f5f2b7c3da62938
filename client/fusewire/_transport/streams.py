"""Defines a session's stream as its transport sees it, and the stream over gRPC."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import grpc
import grpc.aio

from fusewire._transport.interface import Peer

_END: Any = grpc.aio.EOF
# The type of a gRPC call. gRPC's own type stubs do not fit, because they demand serialisers, which may be omitted.
Call = Any


class Stream(Protocol):
    """A connection that carries frames. Only the I/O thread uses it, but for what `LocalStream` says otherwise."""

    async def write(self, frame: bytes) -> None:
        """Sends a frame. Waits while the server does not read."""

    async def send_next(self) -> bool:
        """Sends the peer's next frame. Returns False if nothing waits."""

    async def done_writing(self) -> None:
        """Tells the server that no more frames will come."""

    async def read(self, on_frame: Callable[[bytes], None]) -> None:
        """Hands over each frame that comes, until the stream ends."""

    def on_tick(self) -> None:
        """Does the periodic work that is due."""

    def cancel(self) -> None:
        """Ends the stream at once."""

    async def code(self) -> grpc.StatusCode:
        """Returns the code of the status with which the stream has ended."""

    async def details(self) -> str:
        """Returns the details of that status."""


class GrpcStream:
    """The stream as a call of gRPC."""

    def __init__(self, call: Call, peer: Peer) -> None:
        self._call = call
        self._peer = peer
        self.code = call.code
        self.details = call.details
        self.done_writing = call.done_writing
        self.cancel = call.cancel

    async def write(self, frame: bytes) -> None:
        await self._call.write(frame)

    async def send_next(self) -> bool:
        frame = self._peer.next_frame()
        if frame is not None:
            await self._call.write(frame)
        return frame is not None

    async def read(self, on_frame: Callable[[bytes], None]) -> None:
        while (raw := await self._call.read()) is not _END:
            on_frame(raw)

    def on_tick(self) -> None:
        pass
