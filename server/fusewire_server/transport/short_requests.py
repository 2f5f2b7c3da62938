"""Reads no long request of a method whose requests are short, such as those of health and reflection.

gRPC limits the length of messages only for all methods together, and protobuf parses a message of megabytes in one
call, in which no session is served. The methods that take long messages take them as bytes.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import grpc

MOST_BYTES = 16 << 10

if TYPE_CHECKING:
    # gRPC's classes take type parameters in their type stubs (.pyi), but not at run time.
    Details = grpc.HandlerCallDetails
    Continue = Callable[[Details], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]]


class ShortRequests(grpc.aio.ServerInterceptor):
    """Has requests that are parsed refused if they are longer than `MOST_BYTES`."""

    async def intercept_service(
        self, continuation: Continue, handler_call_details: Details
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler: Any = await continuation(handler_call_details)  # a named tuple, which the stubs do not say
        if handler is None or handler.request_deserializer is None:
            return handler  # type: ignore[no-any-return]
        return handler._replace(request_deserializer=_short(handler.request_deserializer))  # type: ignore[no-any-return]


def _short(parse: Callable[[bytes], Any]) -> Callable[[bytes], Any]:
    def parse_if_short(raw: bytes) -> Any:
        if len(raw) > MOST_BYTES:
            raise ValueError(f"a request of {len(raw)} bytes; the most is {MOST_BYTES}")
        return parse(raw)

    return parse_if_short
