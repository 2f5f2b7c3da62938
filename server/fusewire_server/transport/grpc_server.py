"""Starts a gRPC server: the service's methods, health and reflection, behind the check of tokens."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

import grpc
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from fusewire_protos.errors import ConfigurationError
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.access.certificates import CertificateFiles, server_credentials
from fusewire_server.access.interceptor import Access, AccessInterceptor
from fusewire_server.config.config import Listen
from fusewire_server.config.settings import MIB
from fusewire_server.transport.call import Method
from fusewire_server.transport.short_requests import ShortRequests

SERVICE = "fusewire.v1.Fusewire"
METHODS = ("Session", "Upload", "Download")
# Calls of one connection at once; a client keeps the others back until some have ended.
MOST_STREAMS = 256
WINDOW_BYTES = 512 << 10  # of a call; its method asks for more when it reads a longer message
HANDSHAKE_MS = 5_000  # from accepting a connection to the end of its handshakes
IDLE_CONNECTION_MS = 15_000  # a connection without a call is closed after this time


class Serving(NamedTuple):
    """A server of gRPC that has started."""

    server: grpc.aio.Server
    port: int
    status: health.aio.HealthServicer


async def start_grpc(
    listen: Listen,
    methods: Mapping[str, Method],
    access: Access,
    certificate: CertificateFiles | None,
    *,
    message_bytes: int,
    count_refusal: Callable[[], None],
    shares_port: bool = False,
) -> Serving:
    """Serves the methods. A message has at most `message_bytes`. Raises ConfigurationError if it cannot listen.

    With `shares_port` other processes may listen on the same port, if all of them say so.
    """
    options = channel_options(listen, message_bytes, shares_port=shares_port)
    interceptors = [AccessInterceptor(access, count_refusal), ShortRequests()]
    server = grpc.aio.server(interceptors=interceptors, options=options)
    server.add_generic_rpc_handlers((handler_of(methods),))
    status = health.aio.HealthServicer()
    health_pb2_grpc.add_HealthServicer_to_server(status, server)
    await status.set("", health_pb2.HealthCheckResponse.SERVING)
    await status.set(SERVICE, health_pb2.HealthCheckResponse.SERVING)
    names = (pb.DESCRIPTOR.services_by_name["Fusewire"].full_name, health.SERVICE_NAME, reflection.SERVICE_NAME)
    reflection.enable_server_reflection(names, server)
    port = _add_port(server, listen, certificate)
    await server.start()
    return Serving(server, port, status)


def handler_of(methods: Mapping[str, Method]) -> grpc.GenericRpcHandler:
    """Returns the handler of these methods for `grpc.aio.Server.add_generic_rpc_handlers`.

    Messages go as bytes, because gRPC would parse them without looking at their length. On the wire a call with one
    message is no other than a stream.
    """
    return grpc.method_handlers_generic_handler(
        SERVICE, {name: grpc.stream_stream_rpc_method_handler(method) for name, method in methods.items()}
    )


def _add_port(server: grpc.aio.Server, listen: Listen, certificate: CertificateFiles | None) -> int:
    try:
        if certificate is None:
            return server.add_insecure_port(str(listen.grpc))
        return server.add_secure_port(str(listen.grpc), server_credentials(certificate))
    except RuntimeError as reason:
        raise ConfigurationError(f"cannot listen on listen.grpc = {listen.grpc}: {reason}") from None


def channel_options(listen: Listen, message_bytes: int, *, shares_port: bool = False) -> list[tuple[str, int]]:
    return [
        # A frame a little too long is refused in words, by its session; gRPC itself breaks off what is far too long.
        ("grpc.max_receive_message_length", longest_message(message_bytes)),
        ("grpc.max_send_message_length", -1),
        ("grpc.max_concurrent_streams", MOST_STREAMS),
        # With it a client that keeps to the number would be refused while a call that has ended is still cleared away.
        ("grpc.http.overload_protection", 0),
        ("grpc.so_reuseport", int(shares_port)),
        # A window that grows is memory that anyone can fill, because gRPC fills it before a token is checked.
        ("grpc.http2.bdp_probe", int(listen.adaptive_windows)),
        ("grpc.http2.lookahead_bytes", WINDOW_BYTES),
        ("grpc.server_handshake_timeout_ms", HANDSHAKE_MS),
        ("grpc.max_connection_idle_ms", IDLE_CONNECTION_MS),
        # A client that is stopped or cut off is noticed within seconds; one that pings as often is no offender.
        ("grpc.keepalive_time_ms", 8_000),
        ("grpc.keepalive_timeout_ms", 5_000),
        ("grpc.http2.ping_timeout_ms", 6_000),
        ("grpc.http2.max_pings_without_data", 0),
        ("grpc.http2.min_recv_ping_interval_without_data_ms", 1_000),
        ("grpc.http2.max_ping_strikes", 0),
    ]


def longest_message(message_bytes: int) -> int:
    """Returns the most bytes that a transport takes as one message: one a little too long is refused in words."""
    return message_bytes + MIB
