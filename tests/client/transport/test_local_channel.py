"""Calls on a Unix socket that nobody listens on any more: they fail, and asyncio logs nothing."""

from __future__ import annotations

import asyncio
import gc
import secrets
from typing import Any

import grpc
import pytest

from fusewire._transport.local_channel import LocalChannel, LocalOffer
from fusewire_protos.local_calls.parts import NAME_PREFIX


@pytest.mark.parametrize("waits", [True, False])
def test_a_call_to_a_server_that_has_ended_fails_and_is_not_logged(*, waits: bool) -> None:
    """`waits`: for the call's outcome; else it is cancelled once it has failed, as at the end of a session."""

    async def call_it() -> list[dict[str, Any]]:
        logged: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _loop, context: logged.append(context))
        channel = LocalChannel(LocalOffer(NAME_PREFIX + secrets.token_hex(), b"", 1024))
        call = channel.stream_stream("/Session")()
        if waits:
            with pytest.raises(grpc.aio.AioRpcError, match="Connection refused"):
                await call
        else:
            await asyncio.wait((call._opened,))
            await channel.close()
            call.cancel()
        del call
        gc.collect()
        return logged

    assert asyncio.run(call_it()) == []
