"""Host memory of large uploads: reserved before their bytes come, and no more of it than fits on the device."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest

from fusewire_protos.errors import CaseError
from fusewire_server.engine.transfers.staging import Staging
from fusewire_server.sessions.session import Session
from tests.server.parts import session
from tests.server.world import run

ONE, SAME, OTHER = "lab", "lab", "others"


def staging(memory_bytes: int = 100, values_bytes: int = 0) -> tuple[Staging, Session, Session]:
    return Staging(memory_bytes, lambda: values_bytes), session("a", tenant=ONE), session("b", tenant=OTHER)


def begin(reserving: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    return asyncio.ensure_future(reserving)


async def turns() -> None:
    """Lets tasks that may go on do so."""
    for _ in range(5):
        await asyncio.sleep(0)


def test_uploads_hold_no_more_than_the_device_has_room_for() -> None:
    async def test() -> None:
        memory, one, _ = staging(values_bytes=30)
        await memory.reserve(one, 40)
        await memory.reserve(one, 30)
        late = begin(memory.reserve(one, 1))
        await turns()
        assert (late.done(), memory.staged_bytes, one.uploading_bytes) == (False, 70, 70)
        memory.give_back(one, 30)
        await late
        assert (memory.staged_bytes, one.uploading_bytes) == (41, 41)

    run(test())


def test_each_tenant_may_have_one_upload_though_the_device_is_full() -> None:
    async def test() -> None:
        memory, one, other = staging(values_bytes=100)
        await memory.reserve(one, 50)
        await memory.reserve(other, 60)
        assert memory.staged_bytes == 110
        waiting = begin(memory.reserve(session("c", tenant=SAME), 1))
        memory.give_back(other, 60)
        await turns()
        assert not waiting.done()
        memory.give_back(one, 50)
        await waiting

    run(test())


def test_uploads_of_a_tenant_begin_in_their_order() -> None:
    async def test() -> None:
        memory, one, _ = staging()
        await memory.reserve(one, 60)
        large, small = begin(memory.reserve(one, 50)), begin(memory.reserve(one, 10))
        await turns()
        assert (large.done(), small.done()) == (False, False)
        memory.give_back(one, 60)
        await asyncio.gather(large, small)

    run(test())


def test_what_the_device_could_never_hold_is_refused_at_once() -> None:
    async def test() -> None:
        memory, one, _ = staging()
        with pytest.raises(CaseError, match=r"out_of_memory.*101 bytes; device.memory_bytes = 100"):
            await memory.reserve(one, 101)
        assert (memory.staged_bytes, one.uploading_bytes) == (0, 0)

    run(test())


def test_an_upload_that_is_given_up_while_it_waits_reserves_nothing() -> None:
    async def test() -> None:
        memory, one, _ = staging()
        await memory.reserve(one, 60)
        large, small = begin(memory.reserve(one, 50)), begin(memory.reserve(one, 10))
        await turns()
        large.cancel()
        await small
        memory.give_back(one, 10)
        memory.give_back(one, 60)
        assert (memory.staged_bytes, one.uploading_bytes) == (0, 0)

    run(test())


def test_an_upload_that_is_given_up_as_it_begins_gives_its_memory_back() -> None:
    async def test() -> None:
        memory, one, _ = staging()
        await memory.reserve(one, 60)
        waiting = begin(memory.reserve(one, 50))
        await turns()
        memory.give_back(one, 60)
        waiting.cancel()
        await turns()
        assert (waiting.cancelled(), memory.staged_bytes, one.uploading_bytes) == (True, 0, 0)

    run(test())
