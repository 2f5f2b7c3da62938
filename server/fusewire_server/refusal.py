"""Ends a gRPC call with a case of the error table."""

from __future__ import annotations

from typing import Any, NoReturn

import grpc

from fusewire_protos.errors import BY_NAME

Context = grpc.aio.ServicerContext[Any, Any]


async def refuse(context: Context, case: str, text: str) -> NoReturn:
    """Ends the call with the case's status; the details are its name and `text`."""
    status = grpc.StatusCode[BY_NAME[case].status]
    await context.abort(status, f"{case}: {text}")
    raise AssertionError("abort always raises")
