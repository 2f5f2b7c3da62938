"""What a method raises ends its call: with the status of a case, or as a call that the client has broken off."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from fusewire_server.transport.refusal import Context, aborting_on_cases
from tests.server.world import run


@pytest.mark.parametrize("fault", [grpc.aio.InternalError, grpc.aio.UsageError])
def test_what_grpc_raises_in_a_call_that_is_broken_off_is_no_error_of_the_server(fault: type[Exception]) -> None:
    async def write(_request: None, _context: Context) -> None:
        raise fault

    async def test() -> None:
        context: Context = None  # type: ignore[assignment]  # which the method does not use
        with pytest.raises(asyncio.CancelledError):
            await aborting_on_cases(write, lambda _details, _context: None)(None, context)

    run(test())
