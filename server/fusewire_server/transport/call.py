"""Defines a call as the methods of the service see it: one of gRPC, or a local one."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, NoReturn, Protocol

import grpc


class Call(Protocol):
    """The side of a call that answers. A part of gRPC's interface, with messages as bytes."""

    def invocation_metadata(self) -> Any:
        """Returns the metadata of the client, pairs of texts."""

    def peer(self) -> str:
        """Returns where the client is."""

    async def send_initial_metadata(self, initial_metadata: Any, /) -> None:
        """Sends metadata, before the first message."""

    async def read(self) -> Any:
        """Returns the next message as bytes, or `grpc.aio.EOF`."""

    async def write(self, message: bytes, /) -> None:
        """Sends a message. Waits while the client does not read."""

    async def abort(self, code: grpc.StatusCode, details: str = "", /) -> NoReturn:
        """Ends the call with a status. Raises grpc.aio.AbortError, which the method lets pass."""

    def set_code(self, code: grpc.StatusCode, /) -> None:
        """Sets the code of the status with which the call will end when the method returns."""

    def set_details(self, details: str, /) -> None:
        """Sets the details of that status."""

    def details(self) -> Any:
        """Returns the details of the status."""


Messages = AsyncIterator[bytes]  # those of the client, in order
Method = Callable[[Messages, Call], Awaitable[None]]
