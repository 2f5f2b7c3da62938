"""What a method raises ends its call: with the status of a case, or as a call that the client has broken off."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from fusewire_server.transport.call import Call, Messages
from fusewire_server.transport.refusal import aborting_on_cases
from tests.server.world import run


@pytest.mark.parametrize("fault", [grpc.aio.InternalError, grpc.aio.UsageError])
def test_what_grpc_raises_in_a_call_that_is_broken_off_is_no_error_of_the_server(fault: type[Exception]) -> None:
    async def write(_messages: Messages, _call: Call) -> None:
        raise fault

    async def test() -> None:
        nothing: Any = None  # which the method does not use
        with pytest.raises(asyncio.CancelledError):
            await aborting_on_cases(write, lambda _details, _call: None)(nothing, nothing)

    run(test())
