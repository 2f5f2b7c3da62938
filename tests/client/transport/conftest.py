"""The server that tests of the transport connect to."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing

import pytest

from tests.client.transport.grpc_server import Server


@pytest.fixture
def server() -> Iterator[Server]:
    with closing(Server()) as started:
        yield started
