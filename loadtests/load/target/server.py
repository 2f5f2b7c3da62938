"""Describes the server under load. The load test starts this server, or somebody else runs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from fusewire.testing import serve_subprocess
from loadtests.system.service import CACHE_VARIABLE, Service


class Access(NamedTuple):
    """How to connect to a server. Without `local`, over gRPC, as from another machine."""

    target: str
    token: str | None = None
    tls_ca: Path | None = None
    local: bool = False


class ServerUnderLoad(NamedTuple):
    """A server. `service` is None if the address of its inspection is unknown; `pid` is None if we did not start it."""

    access: Access
    service: Service | None
    pid: int | None


@contextmanager
def own_server(backend: str, *, local: bool = False) -> Iterator[ServerUnderLoad]:
    """Starts a server with default settings and an empty cache of kernels, and stops it at the end of the block."""
    with TemporaryDirectory() as folder, serve_subprocess(backend, environment={CACHE_VARIABLE: folder}) as server:
        yield ServerUnderLoad(Access(server.grpc, local=local), Service(server.grpc, server.http), server.pid)


def given_server(access: Access, http: str | None, http_token: str | None = None) -> ServerUnderLoad:
    """Describes a server that somebody else runs. `http` is the address of its inspection.

    `http_token` is the token for inspection. If it is None, inspection gets the token for sessions.
    """
    token = http_token or access.token
    service = None if http is None else Service(access.target, http, token=token, tls_ca=access.tls_ca)
    return ServerUnderLoad(access, service, None)
