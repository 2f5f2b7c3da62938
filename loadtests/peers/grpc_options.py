"""Fusewire's gRPC options, for the bare peers, so that no figure depends on different settings.

Fusewire's other settings are environment variables: importing `fusewire` sets them, and worker processes inherit them.
A test compares the options below to Fusewire's own.
"""

from __future__ import annotations

_KEEPALIVE = (
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.http2.max_pings_without_data", 0),
)
CLIENT_OPTIONS = (
    ("grpc.max_receive_message_length", -1),
    ("grpc.max_send_message_length", -1),
    ("grpc.use_local_subchannel_pool", 1),
    ("grpc.keepalive_time_ms", 5_000),
    ("grpc.http2.ping_timeout_ms", 10_000),
    ("grpc.enable_http_proxy", 0),
    *_KEEPALIVE,
)
SERVER_OPTIONS = (
    ("grpc.max_receive_message_length", 5 << 20),
    ("grpc.max_send_message_length", -1),
    ("grpc.max_concurrent_streams", 256),
    ("grpc.http.overload_protection", 0),
    ("grpc.so_reuseport", 0),
    ("grpc.http2.bdp_probe", 0),
    ("grpc.http2.lookahead_bytes", 512 << 10),
    ("grpc.server_handshake_timeout_ms", 5_000),
    ("grpc.max_connection_idle_ms", 15_000),
    ("grpc.keepalive_time_ms", 8_000),
    *_KEEPALIVE,
    ("grpc.http2.ping_timeout_ms", 6_000),
    ("grpc.http2.min_recv_ping_interval_without_data_ms", 1_000),
    ("grpc.http2.max_ping_strikes", 0),
)
