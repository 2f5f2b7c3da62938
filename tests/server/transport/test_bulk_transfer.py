"""Large values beside the stream, over real gRPC: in chunks, up and down, and all that can be wrong with them."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from typing import Any

import grpc
import pytest

from fusewire_kernels.devices.base import Staged
from fusewire_kernels.devices.null import NullDevice
from fusewire_protos.errors import OutOfMemory
from fusewire_protos.frames import Abandon, Fetch
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.upload_call import SESSION_HEADER
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.config.settings import KIB, MIB
from fusewire_server.sessions.session import SessionState
from tests.server.parts import upload_beside
from tests.server.wire import (
    LARGE,
    LARGE_BYTES,
    Peer,
    Watching,
    all_of,
    in_order,
    never,
    pieces,
    server,
    status_of,
    stream,
)
from tests.server.world import DEADLINE_S, run, until


def test_a_large_array_goes_up_and_comes_down_in_chunks() -> None:
    async def test() -> None:
        async with server(chunk_bytes=10 * KIB) as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            receipt = await asyncio.wait_for(peer.upload(20, pieces(LARGE_BYTES)), DEADLINE_S)
            assert receipt.bytes == LARGE.size_bytes
            assert (await peer.result(1)).beside_bytes == LARGE.size_bytes
            await peer.call.write(pb.ClientFrame(acknowledged=peer.received))
            await peer.works(100)
            session = here.engine.sessions[peer.session_id]
            sent_bytes = session.bytes_out
            assert await peer.download(1) == LARGE_BYTES
            assert await peer.download(1) == LARGE_BYTES  # as often as the client likes, until it says that it has it
            await peer.send(Abandon(1))
            await until(lambda: not session.answers.beside)
            assert session.bytes_in > LARGE.size_bytes
            assert session.bytes_out >= sent_bytes + LARGE.size_bytes  # a frame counts once it is written

    run(test())


def test_an_upload_is_accepted_before_its_bytes_come() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            call = peer.upload(20, never())
            received = await asyncio.wait_for(call.initial_metadata(), DEADLINE_S)
            assert received[SESSION_HEADER] == peer.session_id.hex()
            call.cancel()

    run(test())


def test_refused_uploads_and_downloads_are_in_the_audit_log(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with server() as here:
            stranger = Peer(here.channel, session_id=bytes(16))
            await status_of(stranger.upload(20, []))
            await status_of(stranger.download(1))

    with caplog.at_level("INFO", "fusewire.audit"):
        run(test())
    logged = [record.__dict__ for record in caplog.records if record.name == "fusewire.audit"]
    refused = "an upload or a download was refused: session_lost: this server holds no such session"
    assert [(one["message"], one["levelname"], one["case"]) for one in logged] == [
        (refused, "WARNING", "session_lost")
    ] * 2
    assert all(one["peer"] for one in logged)


def test_a_session_of_another_server_is_refused_as_lost_both_ways() -> None:
    async def test() -> None:
        async with server() as here:
            stranger = Peer(here.channel, session_id=bytes(16))
            call = stranger.upload(20, [])
            received = await asyncio.wait_for(call.initial_metadata(), DEADLINE_S)
            assert SESSION_HEADER not in received
            lost = (grpc.StatusCode.NOT_FOUND, "session_lost: this server holds no such session")
            assert [await status_of(call), await status_of(stranger.download(1))] == [lost, lost]

    run(test())


@pytest.mark.parametrize(
    ("chunks", "text", "stall_s"),
    [
        (lambda: pieces(LARGE_BYTES + b"x"), "more than the", DEADLINE_S),
        (lambda: pieces(LARGE_BYTES[:-1]), "bytes came for an upload declared as", 2.0),  # and no other call comes
        (list, "0 bytes came", 2.0),
        (never, "limits.upload_stall_s = 2.0", 2.0),  # much more than the calls take to meet
    ],
)
def test_an_upload_that_lies_or_stalls_fails_its_dependents_only(
    chunks: Callable[[], Any], text: str, stall_s: float
) -> None:
    async def test() -> None:
        async with server(upload_stall_s=stall_s, resume_grace_s=0.1) as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            status, details = await status_of(peer.upload(20, chunks()))
            assert (status, text in details) == (grpc.StatusCode.DATA_LOSS, True)
            assert await peer.failure(1) == "upload_failed"
            assert text in peer.results[1].failure.text
            await peer.works(100)

    run(test())


# By what is wrong: the order of an upload's ten chunks.
DISORDERS = {
    "two exchanged": [0, 1, 2, 4, 3, 5, 6, 7, 8, 9],
    "backwards": [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
    "one again": [0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9],
    "one again and one left out": [0, 1, 2, 2, 4, 5, 6, 7, 8, 9],
    "the first left out": [1, 2, 3, 4, 5, 6, 7, 8, 9],
    "one left out": [0, 1, 2, 3, 5, 6, 7, 8, 9],
    "all again": [*range(10), *range(10)],
}


@pytest.mark.parametrize("disorder", list(DISORDERS))
def test_an_upload_whose_chunks_are_out_of_order_fails_its_dependents_only(disorder: str) -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            chunks = [chunk async for chunk in in_order(pieces(LARGE_BYTES))]
            await status_of(peer.upload_chunks(20, stream([chunks[index] for index in DISORDERS[disorder]])))
            assert await peer.failure(1) == "chunk_order"
            await peer.works(100)

    run(test())


def test_chunks_of_one_upload_that_overlap_are_refused_though_every_byte_came() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            chunks = [pb.Chunk(data=LARGE_BYTES[:100]), pb.Chunk(offset=99, data=LARGE_BYTES[99:])]
            status, details = await status_of(peer.upload_chunks(20, stream(chunks)))
            assert (status, details) == (
                grpc.StatusCode.DATA_LOSS,
                "chunk_order: a chunk begins at byte 99 instead of byte 100",
            )
            assert await peer.failure(1) == "chunk_order"

    run(test())


def test_the_bytes_of_a_failed_upload_are_freed_when_its_call_ends() -> None:
    async def test() -> None:
        device = Watching()
        async with server(device=device) as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE))
            await status_of(peer.upload(20, pieces(LARGE_BYTES[:-1])))
            await until(lambda: device.staged() is None)

    gc.disable()
    try:
        run(test())
    finally:
        gc.enable()


@pytest.mark.parametrize("is_noticed", [True, False], ids=["the server notices", "the client notices first"])
def test_an_upload_whose_call_breaks_off_is_brought_by_the_next(is_noticed: bool) -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            broken = peer.upload(20, never())
            session, uploads = here.engine.sessions[peer.session_id], here.engine._uploads
            await until(lambda: session.uploading_bytes == LARGE.size_bytes)
            if is_noticed:
                broken.cancel()
                await until(lambda: 20 in uploads._of(session).declared)
            following = peer.upload(20, pieces(LARGE_BYTES))
            await until(lambda: here.engine._bulk_calls.count(session) == 2 - is_noticed)
            broken.cancel()
            assert (await asyncio.wait_for(following, DEADLINE_S)).bytes == LARGE.size_bytes
            assert (await peer.result(1)).beside_bytes == LARGE.size_bytes
            await until(lambda: here.engine._bulk_calls.count(session) == 0 and not uploads._of(session).called)

    run(test())


def test_an_upload_whose_call_breaks_off_and_that_nobody_brings_again_fails() -> None:
    async def test() -> None:
        async with server(upload_stall_s=1.0, resume_grace_s=1.0) as here:  # much more than the call takes to meet
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            call = peer.upload(20, never())
            session = here.engine.sessions[peer.session_id]
            await until(lambda: session.uploading_bytes == LARGE.size_bytes)
            call.cancel()
            assert await peer.failure(1) == "upload_failed"
            assert "was broken off" in peer.results[1].failure.text

    run(test())


async def drips() -> AsyncIterator[bytes]:
    """Never nothing, and never anything."""
    while True:
        yield b""
        await asyncio.sleep(0.005)


def test_chunks_that_bring_nothing_do_not_keep_an_upload_alive() -> None:
    async def test() -> None:
        async with server(upload_stall_s=0.1, resume_grace_s=0.1) as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            await status_of(peer.upload(20, drips()))  # gRPC tells the status or that the call broke while it wrote
            assert await peer.failure(1) == "upload_failed"

    run(test())


class Stageless(NullDevice):
    """Has no memory of the host for what is uploaded."""

    def __init__(self, fault: Exception) -> None:
        super().__init__()
        self.fault = fault

    def stage(self, size_bytes: int) -> Staged:
        raise self.fault


@pytest.mark.parametrize(
    ("fault", "status", "case", "text"),
    [
        (
            OutOfMemory("1 byte is too much"),
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "out_of_memory",
            f"1 byte is too much; device.memory_bytes = {1 << 40}",
        ),
        (
            MemoryError("1 byte is too much"),
            grpc.StatusCode.RESOURCE_EXHAUSTED,
            "out_of_memory",
            f"the host has no memory for a value of {LARGE.size_bytes} bytes",
        ),
        (OSError("no such page"), grpc.StatusCode.INTERNAL, "server_fault", "receiving the bytes failed: OSError"),
    ],
)
def test_an_upload_that_finds_no_memory_fails_its_dependents_only_and_says_whose_memory(
    fault: Exception, status: grpc.StatusCode, case: str, text: str
) -> None:
    async def test() -> None:
        async with server(device=Stageless(fault)) as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            assert await status_of(peer.upload(20, never())) == (status, f"{case}: {text}")
            assert await peer.failure(1) == case
            assert peer.results[1].failure.text == text
            await peer.works(100)

    run(test())


def test_a_second_call_for_an_upload_waits_for_the_first_and_is_turned_away() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            session = here.engine.sessions[peer.session_id]
            first = peer.upload(20, pieces(LARGE_BYTES))
            await until(lambda: here.engine._bulk_calls.count(session) == 1)
            second = peer.upload(20, never())
            await until(lambda: here.engine._bulk_calls.count(session) == 2)
            await peer.send(upload_beside(20, LARGE))
            assert (await asyncio.wait_for(first, DEADLINE_S)).bytes == LARGE.size_bytes
            assert (await status_of(second))[0] is grpc.StatusCode.NOT_FOUND
            assert not here.engine._uploads._of(session).called

    run(test())


def test_a_download_that_nobody_reads_is_given_up() -> None:
    async def test() -> None:
        spec = Spec(dtypes.uint8, (8 * MIB,))
        async with server(unread_s=0.1) as here:
            peer = await here.peer()
            await large_answer(peer, spec)
            call = peer.unread_download(1)
            session = here.engine.sessions[peer.session_id]
            await until(lambda: here.engine._bulk_calls.count(session) == 1)
            await until(lambda: here.engine._bulk_calls.count(session) == 0)
            status, details = await status_of(all_of(call))
            assert (status, "limits.unread_s = 0.1" in details) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True)
            assert session.state is SessionState.OPEN

    run(test())


async def large_answer(peer: Peer, spec: Spec) -> None:
    """Fetch 1 is answered with zeros that wait beside the stream."""
    await peer.send(upload_beside(20, spec), Fetch(1, 20))
    await asyncio.wait_for(peer.upload(20, pieces(bytes(spec.size_bytes), MIB)), DEADLINE_S)
    assert (await peer.result(1)).beside_bytes == spec.size_bytes


def test_the_calls_beside_its_stream_end_with_their_session() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await large_answer(peer, Spec(dtypes.uint8, (8 * MIB,)))
            calls = [peer.upload(30, never()), peer.upload(40, never()), all_of(peer.unread_download(1))]
            await peer.send(upload_beside(40, LARGE))
            session = here.engine.sessions[peer.session_id]
            await until(lambda: here.engine._bulk_calls.count(session) == 3)
            here.engine.end(session)
            await until(lambda: here.engine._bulk_calls.count(session) == 0)
            for call in calls:
                assert (await status_of(call))[0] is grpc.StatusCode.NOT_FOUND
            assert session.answers.beside == {}

    run(test())


def test_the_bytes_of_an_upload_count_while_they_arrive_and_until_they_are_written() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            session = here.engine.sessions[peer.session_id]
            may_go_on = asyncio.Event()

            async def halting() -> AsyncIterator[bytes]:
                first, *others = pieces(LARGE_BYTES)
                yield first
                await may_go_on.wait()
                for piece in others:
                    yield piece

            await peer.send(upload_beside(20, LARGE))
            call = peer.upload(20, halting())
            await until(lambda: session.uploading_bytes == LARGE.size_bytes)
            may_go_on.set()
            await asyncio.wait_for(call, DEADLINE_S)
            await until(lambda: session.uploading_bytes == 0)

    run(test())


def test_an_upload_that_nobody_brings_fails() -> None:
    async def test() -> None:
        async with server(upload_stall_s=0.05, resume_grace_s=0.05) as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            assert await peer.failure(1) == "upload_failed"

    run(test())


def test_bytes_that_are_no_bools_fail_their_upload() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, Spec(dtypes.bool_, (4,))), Fetch(1, 20))
            status, _ = await status_of(peer.upload(20, [b"\x00\x01\x02\x01"]))
            assert status is grpc.StatusCode.DATA_LOSS
            assert await peer.failure(1) == "upload_failed"

    run(test())


def test_an_upload_or_download_that_names_nothing_of_its_session_is_refused() -> None:
    async def test() -> None:
        async with server(upload_stall_s=0.05, resume_grace_s=0.05) as here:
            peer, other = await here.peer(), await here.peer()
            await other.send(upload_beside(20, LARGE))
            await until(lambda: 20 in here.engine.sessions[other.session_id].values)
            for handle in (10, 20, 999):
                status, details = await status_of(peer.upload(handle, pieces(LARGE_BYTES)))
                assert (status, details) == (
                    grpc.StatusCode.NOT_FOUND,
                    f"unknown_handle: handle {handle} names nothing in this session",
                )
            assert (await status_of(peer.upload(20, [b""], session_id=bytes(16))))[0] is grpc.StatusCode.NOT_FOUND
            assert (await status_of(peer.download(7)))[0] is grpc.StatusCode.NOT_FOUND

    run(test())
