"""Methods whose requests are short read no long ones."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.transport.grpc_server import SERVICE
from fusewire_server.transport.short_requests import MOST_BYTES
from tests.server.wire import server, status_of
from tests.server.world import run

METHODS = ["/grpc.health.v1.Health/Check", f"/{SERVICE}/Download"]


@pytest.mark.parametrize("method", METHODS)
def test_a_long_request_is_refused_and_the_server_goes_on(method: str) -> None:
    async def test() -> None:
        async with server() as here:
            bytes_channel: Any = here.channel  # whose serialisers the stubs do not let be left out
            call = bytes_channel.unary_unary(method)(b"\x0a\x00" * MOST_BYTES)
            code, _ = await status_of(call)
            assert code not in {grpc.StatusCode.OK, grpc.StatusCode.NOT_FOUND}
            peer = await here.peer()
            await peer.works(100)

    run(test())


def test_a_short_request_is_read() -> None:
    async def test() -> None:
        async with server() as here:
            bytes_channel: Any = here.channel
            request = pb.DownloadRequest(session_id=b"x" * 16, fetch=1).SerializeToString()
            code, text = await status_of(bytes_channel.unary_stream(METHODS[1])(request).read())
            assert code is grpc.StatusCode.NOT_FOUND
            assert text.startswith("session_lost")

    run(test())
