"""Uploads beside the stream: the entry that declares one and the call that brings it, in either order."""

from __future__ import annotations

from fusewire_protos.frames import Fetch
from tests.server.parts import segment, upload_beside
from tests.server.world import NEGATE, run, staged, world


def test_an_upload_may_come_before_its_declaration() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            claim = here.engine.uploads.claim(client.session, 20)
            client.send(upload_beside(20), segment(NEGATE, 100, 20), Fetch(1, 100))
            value = await claim
            assert value is not None
            here.engine.uploaded(client.session, value, staged(here.engine.device))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]

    run(test())


def test_a_second_call_for_an_upload_is_refused() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            first, second = (here.engine.uploads.claim(client.session, 20) for _ in range(2))
            client.send(upload_beside(20))
            assert await first is not None
            assert await second is None
            assert await here.engine.uploads.claim(client.session, 20) is None

    run(test())


def test_an_upload_that_nobody_brings_fails_in_time() -> None:
    async def test() -> None:
        async with world(upload_stall_s=0.01) as here:
            client = here.client()
            client.send(upload_beside(20), segment(NEGATE, 100, 20), Fetch(1, 100))
            assert await client.failure(1) == "upload_failed"
            await client.idle()

    run(test())


def test_a_call_that_waits_for_a_declaration_is_let_go_when_the_session_ends() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            claim = here.engine.uploads.claim(client.session, 20)
            here.engine.end(client.session)
            assert await claim is None

    run(test())
