"""Starts a gRPC server and a gRPC client without Fusewire, each in its own process, with Fusewire's gRPC settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import fusewire as fw  # noqa: F401 - sets gRPC's environment variables, which the processes below inherit
from loadtests.measuring.workers import Worker
from loadtests.peers import bare_client, bare_server


@contextmanager
def bare_pair(bulk_bytes: int = 0, chunk_bytes: int = 1 << 20) -> Iterator[Worker]:
    """Yields the client, which takes commands. An upload or download has `bulk_bytes`, in messages of `chunk_bytes`."""
    with (
        Worker(bare_server.serve, bulk_bytes, chunk_bytes) as server,
        Worker(bare_client.serve, server.answer(), bulk_bytes, chunk_bytes) as client,
    ):
        yield client
