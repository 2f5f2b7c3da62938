"""Uploads beside the stream: the entry that declares one and the call that brings it, in either order."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest

from fusewire_protos.errors import BY_NAME, CaseError
from fusewire_protos.frames import Fetch, Upload
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.upload_call import HANDLE_HEADER, SESSION_HEADER
from fusewire_server.access.interceptor import OPEN_TENANT, Access
from fusewire_server.engine.engine import Engine
from fusewire_server.engine.transfers import uploads
from fusewire_server.programs.failure import Failure
from fusewire_server.sessions.session import Session, ValueState
from fusewire_server.transport.bulk_transfer import Bulk
from tests.server.parts import segment, upload_beside
from tests.server.wire import stream
from tests.server.world import DATA, NEGATE, run, staged, until, world


def test_an_upload_may_come_before_its_declaration() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            claim = here.engine._uploads.claim(client.session, 20)
            client.send(upload_beside(20), segment(NEGATE, 100, 20), Fetch(1, 100))
            value = await claim
            assert value is not None
            here.engine.uploaded(client.session, value, staged(here.engine.device))
            assert await client.value(1) == [-0.0, -1.0, -2.0, -3.0]

    run(test())


def test_calls_for_one_upload_wait_in_line_and_the_last_have_nothing_to_bring() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            first, second, third = (here.engine._uploads.claim(client.session, 20) for _ in range(3))
            client.send(upload_beside(20))
            value = await first
            assert value is not None
            assert not second.done()
            here.engine.upload_broken_off(client.session, value, "cut")
            assert await second is value
            here.engine.uploaded(client.session, value, staged(here.engine.device))
            assert await third is None
            assert await here.engine._uploads.claim(client.session, 20) is None
            await client.idle()

    run(test())


def test_an_upload_waits_for_a_call_while_its_session_has_no_stream_and_anew_from_then_on() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            client.send(upload_beside(20), Fetch(1, 20))
            waiting = here.engine._uploads
            here.engine.detach(client.session, 1)
            waiting._fail_declared(
                client.session, client.session.values[20], Failure(BY_NAME["upload_failed"], "late", 0, 0)
            )
            assert client.session.values[20].state is ValueState.AWAITED
            waiting.wait_s = 0.01
            here.engine.resume(client.session.session_id, here.engine.instance, client.session.tenant, 0)
            assert await client.failure(1) == "upload_failed"

    run(test())


def test_a_call_that_comes_after_a_refused_one_brings_the_upload() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            here.engine._uploads.refuse(client.session, 20, CaseError("too_many_calls", "one too many"))
            call = here.engine._uploads.claim(client.session, 20)
            client.send(upload_beside(20), Fetch(1, 20))
            value = await call
            assert value is not None
            here.engine.uploaded(client.session, value, staged(here.engine.device))
            assert (await client.fetched(1)).failure is None

    run(test())


def test_a_refused_call_takes_no_upload_from_another() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            early = here.engine._uploads.claim(client.session, 20)
            client.send(upload_beside(21))
            timely = here.engine._uploads.claim(client.session, 21)
            for handle in (20, 21):
                here.engine._uploads.refuse(client.session, handle, CaseError("too_many_calls", "one too many"))
            client.send(upload_beside(20))
            assert [await early, await timely] == [client.session.values[20], client.session.values[21]]

    run(test())


def test_a_bounded_number_of_refused_calls_is_remembered(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(uploads, "MOST_REFUSED", 1)

    async def test() -> None:
        async with world(upload_stall_s=0.01, resume_grace_s=0.01) as here:
            client = here.client()
            for handle in (20, 21):
                here.engine._uploads.refuse(client.session, handle, CaseError("too_many_calls", "one too many"))
            client.send(upload_beside(20), upload_beside(21), Fetch(1, 20), Fetch(2, 21))
            assert (await client.failure(1), await client.failure(2)) == ("too_many_calls", "upload_failed")

    run(test())


def test_a_call_that_gives_up_in_the_turn_of_its_declaration_is_told_what_to_fill() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            early, timely = (here.engine._uploads.claim(client.session, handle) for handle in (20, 21))
            assert here.engine._uploads.give_up(client.session, 20, early) is None
            client.send(upload_beside(20), upload_beside(21))
            assert here.engine._uploads.give_up(client.session, 21, timely) is client.session.values[21]

    run(test())


class Context:
    """A call that brings the bytes of an upload, as far as `Bulk` asks of it."""

    def __init__(self, session: Session, handle: int) -> None:
        self.metadata = ((SESSION_HEADER, session.session_id.hex()), (HANDLE_HEADER, str(handle)))

    def invocation_metadata(self) -> tuple[tuple[str, str], ...]:
        return self.metadata

    async def send_initial_metadata(self, _: tuple[tuple[str, str], ...]) -> None:
        pass


class LateContext(Context):
    """A call whose session ends while the call's metadata are sent."""

    def __init__(self, engine: Engine, session: Session, handle: int) -> None:
        super().__init__(session, handle)
        self._engine, self._session = engine, session

    async def send_initial_metadata(self, _: tuple[tuple[str, str], ...]) -> None:
        self._engine.end(self._session)

    async def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise grpc.aio.AbortError(details)


def test_an_upload_whose_session_ends_before_the_call_waits_is_refused_at_once() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client(tenant=OPEN_TENANT)
            context: Any = LateContext(here.engine, client.session, 20)
            with pytest.raises(grpc.aio.AbortError, match="session_lost"):
                await asyncio.wait_for(Bulk(here.engine, Access(None)).upload(stream([DATA]), context), 10)
            assert here.engine._uploads.sessions == 0

    run(test())


def test_an_upload_whose_call_breaks_off_in_the_turn_of_its_declaration_fails() -> None:
    async def test() -> None:
        async with world() as here:
            here.engine._uploads.wait_s = 0.01
            client = here.client(tenant=OPEN_TENANT)
            context: Any = Context(client.session, 20)
            call = asyncio.create_task(Bulk(here.engine, Access(None)).upload(stream([DATA]), context))
            await until(lambda: here.engine._bulk_calls.count(client.session) == 1)
            client.send(upload_beside(20), segment(NEGATE, 100, 20), Fetch(1, 100))
            call.cancel()
            assert await client.failure(1) == "upload_failed"
            await client.idle()

    run(test())


class SlowContext(Context):
    """A call whose first chunk comes when `chunk` is done. gRPC frees no chunk whose read has been cancelled."""

    def __init__(self, session: Session, handle: int) -> None:
        super().__init__(session, handle)
        self.chunk: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()
        self.is_read = False

    async def read(self) -> bytes:
        self.is_read = True
        return await self.chunk

    async def abort(self, code: grpc.StatusCode, details: str) -> None:
        raise grpc.aio.AbortError(details)


def test_the_read_of_a_chunk_goes_on_when_its_session_ends() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client(tenant=OPEN_TENANT)
            client.send(upload_beside(20))
            slow = SlowContext(client.session, 20)
            context: Any = slow
            call = asyncio.create_task(Bulk(here.engine, Access(None)).upload(stream([]), context))
            await until(lambda: slow.is_read)
            here.engine.end(client.session)
            with pytest.raises(grpc.aio.AbortError, match="session_lost"):
                await asyncio.wait_for(call, 10)
            assert not slow.chunk.cancelled()

    run(test())


def test_a_call_whose_upload_the_stream_may_not_declare_gets_no_value() -> None:
    async def test() -> None:
        async with world(array_bytes=16) as here:
            client = here.client()
            call = here.engine._uploads.claim(client.session, 20)
            client.send(Upload(20, Spec(dtypes.float32, (5,)), None), Fetch(1, 20))
            assert await asyncio.wait_for(call, 10) is None
            failure = (await client.fetched(1)).failure
            assert failure is not None
            assert failure.case.name == "quota_array_bytes"

    run(test())


def test_an_upload_that_nobody_brings_fails_in_time() -> None:
    async def test() -> None:
        async with world(upload_stall_s=0.01, resume_grace_s=0.01) as here:
            client = here.client()
            client.send(upload_beside(20), segment(NEGATE, 100, 20), Fetch(1, 100))
            assert await client.failure(1) == "upload_failed"
            await client.idle()

    run(test())


def test_a_call_that_waits_for_a_declaration_is_let_go_when_the_session_ends() -> None:
    async def test() -> None:
        async with world() as here:
            client = here.client()
            claim = here.engine._uploads.claim(client.session, 20)
            here.engine.end(client.session)
            assert await claim is None

    run(test())
