"""Checks the token of every gRPC call before the call reaches its method."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

import grpc

from fusewire_protos.errors import Unauthenticated
from fusewire_server.access.tokens import Authenticator, Scope, bearer

_audit = logging.getLogger("fusewire.audit")

OPEN_TENANT = "public"  # the tenant of every call if no tokens are configured
METADATA_KEY = "authorization"
# If a Python client is refused while it writes its first message, it may see an internal error instead of the refusal
# (https://github.com/grpc/grpc/issues/36066). So a refusal comes this long after the call, when a short first message
# has been written. Only so many refusals wait at once; the others come without delay.
FIRST_MESSAGE_S = 0.2
MOST_WAITING = 64

if TYPE_CHECKING:
    # gRPC's classes take type parameters in their type stubs (.pyi), but not at run time.
    Details = grpc.HandlerCallDetails
    Continue = Callable[[Details], Awaitable[grpc.RpcMethodHandler[Any, Any] | None]]


class Access:
    """Finds the tenant of a call. Without an authenticator all calls belong to one tenant."""

    def __init__(self, authenticator: Authenticator | None) -> None:
        self._authenticator = authenticator

    def tenant(self, metadata: Any) -> str:
        """Returns the tenant of a call. Raises Unauthenticated unless its token may use the service."""
        if self._authenticator is None:
            return OPEN_TENANT
        return self._authenticator.check_again(_token(metadata), Scope.USE).tenant

    def check_newcomer(self, metadata: Any) -> None:
        """Raises Unauthenticated unless the call's token may open a session now."""
        if self._authenticator is not None:
            self._authenticator.check(_token(metadata), Scope.USE)


class AccessInterceptor(grpc.aio.ServerInterceptor):
    """Refuses every method, health and reflection included, to a call without a valid token."""

    def __init__(self, access: Access, count_refusal: Callable[[], None]) -> None:
        """`count_refusal` is called on the thread of the event loop for each refused call."""
        self._access = access
        self._count_refusal = count_refusal
        self._waiting = asyncio.Semaphore(MOST_WAITING)

    async def intercept_service(
        self, continuation: Continue, handler_call_details: Details
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        try:
            self._access.tenant(handler_call_details.invocation_metadata)
        except Unauthenticated as refusal:
            self._count_refusal()
            return _refusing(str(refusal), self._waiting)
        return await continuation(handler_call_details)


def _token(metadata: Any) -> str | None:
    return bearer(dict(metadata or ()).get(METADATA_KEY))


def _refusing(text: str, waiting: asyncio.Semaphore) -> grpc.RpcMethodHandler[Any, Any]:
    """Returns a handler that refuses every call, and reads nothing that the client sends.

    gRPC reads the message of a unary call before it calls the method. So the handler is one of streams; a client cannot
    notice this.
    """

    async def abort(_requests: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        if not waiting.locked():
            async with waiting:
                await asyncio.sleep(FIRST_MESSAGE_S)
        _audit.warning("a call was refused: %s", text, extra={"peer": context.peer()})
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, text)
        yield b""  # never reached; makes this an async generator, which a streaming method must be

    return grpc.stream_stream_rpc_method_handler(abort)
