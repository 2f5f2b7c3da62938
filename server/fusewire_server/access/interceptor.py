"""Checks the token of every gRPC call before the call reaches its method."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import grpc

from fusewire_protos.errors import Unauthenticated
from fusewire_server.access.tokens import Authenticator, Scope, bearer

OPEN_TENANT = "public"  # the tenant of every call if no tokens are configured
METADATA_KEY = "authorization"
# If a Python client is refused while it writes its first message, it may see an internal error instead of the refusal
# (https://github.com/grpc/grpc/issues/36066). So a refusal waits up to this long for the first message.
FIRST_MESSAGE_S = 0.2

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

    def __init__(self, access: Access) -> None:
        self._access = access

    async def intercept_service(
        self, continuation: Continue, handler_call_details: Details
    ) -> grpc.RpcMethodHandler[Any, Any] | None:
        handler = await continuation(handler_call_details)
        try:
            self._access.tenant(handler_call_details.invocation_metadata)
        except Unauthenticated as refusal:
            return _refusing(handler, str(refusal))
        return handler


def _token(metadata: Any) -> str | None:
    return bearer(dict(metadata or ()).get(METADATA_KEY))


def _refusing(handler: grpc.RpcMethodHandler[Any, Any] | None, text: str) -> grpc.RpcMethodHandler[Any, Any]:
    """Returns a handler that refuses every call. It takes and gives single messages or streams, as `handler` does."""

    async def abort(_request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, text)

    async def abort_answers(request: Any, context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        await abort(request, context)
        yield b""  # never reached; makes this an async generator, which a streaming method must be

    async def abort_requests(requests: AsyncIterator[Any], context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        await _first(requests)
        await abort(requests, context)

    async def abort_both(requests: AsyncIterator[Any], context: grpc.aio.ServicerContext[Any, Any]) -> Any:
        await abort_requests(requests, context)
        yield b""

    if handler is None or not (handler.request_streaming or handler.response_streaming):
        return grpc.unary_unary_rpc_method_handler(abort)
    if handler.request_streaming and handler.response_streaming:
        return grpc.stream_stream_rpc_method_handler(abort_both)
    if handler.request_streaming:
        return grpc.stream_unary_rpc_method_handler(abort_requests)
    return grpc.unary_stream_rpc_method_handler(abort_answers)


async def _first(requests: AsyncIterator[Any]) -> None:
    with suppress(TimeoutError):
        async with asyncio.timeout(FIRST_MESSAGE_S):
            await anext(requests, None)
