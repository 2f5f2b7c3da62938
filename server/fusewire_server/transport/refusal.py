"""Ends a call with a case of the error table."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import wraps
from typing import NoReturn

import grpc

from fusewire_protos.errors import BY_NAME, CaseError, Unauthenticated
from fusewire_server.transport.call import Call, Messages, Method


async def refuse(call: Call, case: str, text: str) -> NoReturn:
    """Ends the call with the status of the case. The details of the status are the case's name and `text`."""
    try:
        await call.abort(_status(case), f"{case}: {text}")
    except grpc.aio.AbortError as abort:
        # gRPC keeps the exception in the call, which the frames of the exception before it refer to. So these frames,
        # and the bytes of an upload in them, would be kept until Python's garbage collector finds the cycle.
        abort.__context__ = None
        raise
    raise AssertionError("abort always raises")


def end_with(call: Call, case: str, text: str) -> None:
    """Sets the status of a call that has been served and is about to end. It does not count as refused."""
    call.set_code(_status(case))
    call.set_details(f"{case}: {text}")


def _status(case: str) -> grpc.StatusCode:
    return grpc.StatusCode[BY_NAME[case].status]


def case_in(details: str) -> str:
    """Returns the name of the case in the details of a status that `refuse` has made."""
    return details.partition(":")[0]


def aborting_on_cases(method: Method, note: Callable[[str, Call], None]) -> Method:
    """Wraps a method so that any case raised in it ends the call with the status of that case.

    A case may be raised late: a token, for example, may be revoked after the call was accepted. `note` is called with
    the details of the status for each call that `refuse` has ended.
    """

    @wraps(method)
    async def refusing(messages: Messages, call: Call) -> None:
        try:
            await answer(messages, call)
        except grpc.aio.AbortError:
            note(call.details(), call)
            raise

    async def answer(messages: Messages, call: Call) -> None:
        try:
            await method(messages, call)
        except Unauthenticated as refusal:
            await refuse(call, "unauthenticated", str(refusal))
        except CaseError as error:
            await refuse(call, error.case.name, error.text)
        except (grpc.aio.InternalError, grpc.aio.UsageError):
            # The client has broken the call off while the server wrote. gRPC logs any other exception as an error.
            raise asyncio.CancelledError from None

    return refusing
