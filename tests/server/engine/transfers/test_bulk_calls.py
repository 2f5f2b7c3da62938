"""How many calls a session and a connection may have at once, over real gRPC."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from fusewire_protos.errors import BY_CODE
from fusewire_protos.frames import Fetch
from fusewire_server.engine.transfers import bulk_calls as carriers
from fusewire_server.sessions.session import Session, Value
from fusewire_server.sessions.tables import answers
from fusewire_server.transport import grpc_server
from tests.server.parts import upload_beside
from tests.server.wire import LARGE, LARGE_BYTES, never, pieces, server, status_of
from tests.server.world import DEADLINE_S, run, until


def test_a_session_has_a_bounded_number_of_calls_and_one_more_is_refused_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(carriers, "MOST_CALLS", 2)

    async def test() -> None:
        async with server() as here:
            peer, neighbour = await here.peer(), await here.peer()
            own = here.engine.sessions[peer.session_id]
            uploads = [peer.upload(handle, pieces(LARGE_BYTES)) for handle in (20, 21)]
            await until(lambda: here.engine._bulk_calls.count(own) == 2)
            status, text = await status_of(peer.upload(22, pieces(LARGE_BYTES)))
            assert status is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert text.startswith("too_many_calls: 2 calls of this session")
            others = neighbour.upload(20, pieces(LARGE_BYTES))
            await neighbour.send(upload_beside(20, LARGE))
            await peer.send(upload_beside(20, LARGE), upload_beside(21, LARGE))
            for call in (*uploads, others):
                assert (await asyncio.wait_for(call, DEADLINE_S)).bytes == LARGE.size_bytes

    run(test())


def test_a_new_stream_ends_the_calls_of_the_connection_before_it() -> None:
    """The server may not have noticed that the connection of these calls is lost."""

    async def test() -> None:
        async with server(upload_stall_s=2 * DEADLINE_S) as here:
            peer = await here.peer()
            own = here.engine.sessions[peer.session_id]
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            lost = peer.upload(20, never())
            await until(lambda: own.uploading_bytes == LARGE.size_bytes)
            await peer.resume()
            await until(lambda: own.uploading_bytes == here.engine._bulk_calls.count(own) == 0)
            call = peer.upload(20, pieces(LARGE_BYTES))
            assert (await asyncio.wait_for(call, DEADLINE_S)).bytes == LARGE.size_bytes
            assert (await peer.result(1)).beside_bytes == LARGE.size_bytes
            lost.cancel()

    run(test())


@pytest.mark.parametrize("is_declared_first", [True, False])
def test_an_upload_whose_call_is_refused_fails_at_once_with_the_reason(
    is_declared_first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(carriers, "MOST_CALLS", 0)

    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            own = here.engine.sessions[peer.session_id]
            if is_declared_first:
                await peer.send(upload_beside(20, LARGE))
                await until(lambda: 20 in own.values)
            assert (await status_of(peer.upload(20, pieces(LARGE_BYTES))))[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
            if not is_declared_first:
                await peer.send(upload_beside(20, LARGE))
            await peer.send(Fetch(1, 20))
            failure = (await asyncio.wait_for(peer.result(1), DEADLINE_S)).failure
            assert BY_CODE[failure.code].name == "too_many_calls"
            assert failure.text == "0 calls of this session are running, the most it may have"

    run(test())


def test_one_answer_is_carried_by_a_bounded_number_of_calls_and_one_more_is_refused_in_words(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(answers, "MOST_DOWNLOADS", 0)

    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            upload = peer.upload(20, pieces(LARGE_BYTES))
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            await asyncio.wait_for(upload, DEADLINE_S)
            assert (await peer.result(1)).beside_bytes == LARGE.size_bytes
            status, text = await status_of(peer.download(1))
            assert status is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert text.startswith("too_many_calls: 0 calls carry the answer to fetch 1")

    run(test())


def test_a_connection_carries_a_bounded_number_of_calls_and_then_the_next(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_server, "MOST_STREAMS", 8)

    async def test() -> None:
        async with server() as here:
            peer = await here.peer()  # whose stream is one of them
            own, counts = here.engine.sessions[peer.session_id], [0]
            claim = here.engine._uploads.claim

            def watched(session: Session, handle: int) -> asyncio.Future[Value | None]:
                counts.append(here.engine._bulk_calls.count(session))
                return claim(session, handle)

            monkeypatch.setattr(here.engine._uploads, "claim", watched)
            handles = range(20, 50)
            uploads = [peer.upload(handle, pieces(LARGE_BYTES)) for handle in handles]
            await until(lambda: max(counts) == 7)
            await peer.send(*[upload_beside(handle, LARGE) for handle in handles])
            for call in uploads:
                assert (await asyncio.wait_for(call, DEADLINE_S)).bytes == LARGE.size_bytes
            assert (max(counts), here.engine._bulk_calls.count(own)) == (7, 0)

    run(test())
