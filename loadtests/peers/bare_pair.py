"""A bare server and a bare client in processes of their own, with gRPC as it comes or told what Fusewire tells it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from loadtests.peers import bare_client, bare_server
from loadtests.workers import Worker

# A process of ours tells gRPC nothing where something stands already. Nothing at all is what gRPC takes by itself.
_AS_IT_COMES = {"GRPC_EXPERIMENTS": ""}


@contextmanager
def bare_pair(bulk_bytes: int = 0, *, is_told: bool = False) -> Iterator[Worker]:
    """The client; both have `bulk_bytes` to give."""
    with ExitStack() as running:
        with _environment({} if is_told else _AS_IT_COMES):
            server = running.enter_context(Worker(bare_server.serve, bulk_bytes))
            client = running.enter_context(Worker(bare_client.serve, server.answer(), bulk_bytes))
        yield client


@contextmanager
def _environment(changes: dict[str, str]) -> Iterator[None]:
    """What processes inherit that are started meanwhile."""
    before = dict(os.environ)
    os.environ.update(changes)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
