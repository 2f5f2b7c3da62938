"""Large values by local calls, which are received straight to their memory: up, down, and all that can be wrong."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import asynccontextmanager

import grpc
import pytest

from fusewire_protos.chunks import chunk_head, decode_chunk
from fusewire_protos.frames import Fetch
from fusewire_protos.local_calls.connection import LocalConnection, connect
from fusewire_protos.local_calls.parts import Opening, PartKind, Status, decode_status, encode_opening, head_of
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.upload_call import HANDLE_HEADER, SESSION_HEADER
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.config.settings import MIB
from tests.server.parts import upload_beside
from tests.server.wire import Peer, Watching, server
from tests.server.world import DEADLINE_S, run, until

MOST_BYTES = 8 * MIB
CHUNK_BYTES = 200_000  # long enough to be received to its place
VALUE = Spec(dtypes.uint8, (10 * CHUNK_BYTES,))
VALUE_BYTES = bytes(range(250)) * (VALUE.size_bytes // 250)
Chunk = tuple[int, bytes]


def chunks_of(data: bytes) -> list[Chunk]:
    return [(start, data[start : start + CHUNK_BYTES]) for start in range(0, len(data), CHUNK_BYTES)]


async def called(peer: Peer, method: str, metadata: Iterable[tuple[str, str]] = ()) -> LocalConnection:
    connection = await connect(peer.welcome.local_name, MOST_BYTES)
    opening = Opening(method, tuple(metadata), "", peer.welcome.local_secret)
    await connection.send(PartKind.OPEN, encode_opening(opening))
    return connection


async def upload_call(peer: Peer, handle: int) -> LocalConnection:
    return await called(peer, "Upload", [(SESSION_HEADER, peer.session_id.hex()), (HANDLE_HEADER, str(handle))])


@asynccontextmanager
async def uploading(peer: Peer, handle: int) -> AsyncIterator[LocalConnection]:
    connection = await upload_call(peer, handle)
    try:
        yield connection
    finally:
        connection.abort()


async def send_chunks(connection: LocalConnection, chunks: Sequence[Chunk]) -> None:
    for offset, data in chunks:
        await connection.send(PartKind.MESSAGE, chunk_head(offset, len(data)), data)
    await connection.send(PartKind.END)


async def status_of(connection: LocalConnection) -> Status:
    async with asyncio.timeout(DEADLINE_S):
        while (part := await connection.receive()) is not None:
            if part.kind is PartKind.STATUS:
                connection.close()
                return decode_status(part.raw)
    raise AssertionError("the call ended without a status")


async def upload(peer: Peer, handle: int, chunks: Sequence[Chunk]) -> Status:
    async with uploading(peer, handle) as connection:
        sending = asyncio.create_task(send_chunks(connection, chunks))
        status = await status_of(connection)
        await sending
    return status


async def download(peer: Peer, fetch: int) -> tuple[bytes, Status]:
    connection = await called(peer, "Download")
    request = pb.DownloadRequest(session_id=peer.session_id, fetch=fetch)
    await connection.send(PartKind.MESSAGE, request.SerializeToString())
    value, status = bytearray(), None
    async with asyncio.timeout(DEADLINE_S):
        while (part := await connection.receive()) is not None:
            if part.kind is PartKind.MESSAGE:
                value += decode_chunk(part.raw, len(value))
            elif part.kind is PartKind.STATUS:
                status = decode_status(part.raw)
                connection.close()
    assert status is not None
    return bytes(value), status


async def fetched(peer: Peer, fetch: int) -> bytes:
    assert (await peer.result(fetch)).beside_bytes == VALUE.size_bytes
    value, status = await download(peer, fetch)
    assert status.code == grpc.StatusCode.OK.value[0]
    return value


def test_a_large_value_goes_up_and_comes_down() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, VALUE), Fetch(1, 20))
            assert (await upload(peer, 20, chunks_of(VALUE_BYTES))).code == grpc.StatusCode.OK.value[0]
            assert await fetched(peer, 1) == VALUE_BYTES
            session = here.engine.sessions[peer.session_id]
            assert session.bytes_in > VALUE.size_bytes
            assert session.bytes_out > VALUE.size_bytes

    run(test())


def test_chunks_of_any_length_fill_a_value() -> None:
    lengths = [1, 70_000, 0, 3, 65_536, 300_000, 65_537, 1_000_000]
    starts = [sum(lengths[:count]) for count in range(len(lengths) + 1)]

    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, VALUE), Fetch(1, 20))
            ends = [*starts[1:], VALUE.size_bytes]
            await upload(peer, 20, [(start, VALUE_BYTES[start:end]) for start, end in zip(starts, ends, strict=True)])
            assert await fetched(peer, 1) == VALUE_BYTES

    run(test())


DISORDERS = {
    "two exchanged": [0, 1, 2, 4, 3, 5, 6, 7, 8, 9],
    "backwards": [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
    "one again": [0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9],
    "the first left out": [1, 2, 3, 4, 5, 6, 7, 8, 9],
    "all again": [*range(10), *range(10)],
}


@pytest.mark.parametrize("disorder", list(DISORDERS))
def test_chunks_out_of_order_fail_their_upload_only(disorder: str) -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, VALUE), Fetch(1, 20))
            chunks = chunks_of(VALUE_BYTES)
            status = await upload(peer, 20, [chunks[index] for index in DISORDERS[disorder]])
            assert status.details.startswith("chunk_order: ")
            assert await peer.failure(1) == "chunk_order"
            await peer.works(100)

    run(test())


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        (chunks_of(VALUE_BYTES + bytes(CHUNK_BYTES)), "more than the"),
        ([(0, VALUE_BYTES + b"x")], "more than the"),
        (chunks_of(VALUE_BYTES)[:-1], "bytes came for an upload declared as"),
        ([(1 << 40, VALUE_BYTES)], "chunk_order"),
    ],
)
def test_an_upload_that_lies_fails(chunks: Sequence[Chunk], text: str) -> None:
    async def test() -> None:
        async with server(upload_stall_s=2.0, resume_grace_s=0.1) as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, VALUE), Fetch(1, 20))
            assert text in (await upload(peer, 20, chunks)).details
            assert await peer.failure(1) in {"upload_failed", "chunk_order"}
            await peer.works(100)

    run(test())


@pytest.mark.parametrize("length", [0, 20_000, CHUNK_BYTES])
def test_a_head_that_does_not_match_its_chunk_fails_the_upload(length: int) -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, VALUE), Fetch(1, 20))
            async with uploading(peer, 20) as connection:
                first = chunks_of(VALUE_BYTES)[0]
                await connection.send(PartKind.MESSAGE, chunk_head(0, CHUNK_BYTES), first[1])
                await connection.send(PartKind.MESSAGE, chunk_head(CHUNK_BYTES, CHUNK_BYTES + 1), bytes(length))
                assert "does not match its head" in (await status_of(connection)).details
            assert await peer.failure(1) == "upload_failed"

    run(test())


def test_what_comes_after_the_end_changes_nothing() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, VALUE), Fetch(1, 20))
            async with uploading(peer, 20) as connection:
                await send_chunks(connection, chunks_of(VALUE_BYTES))
                for _ in range(3):
                    await connection.send(PartKind.MESSAGE, chunk_head(0, CHUNK_BYTES), bytes(CHUNK_BYTES))
                assert (await status_of(connection)).code == grpc.StatusCode.OK.value[0]
            assert await fetched(peer, 1) == VALUE_BYTES

    run(test())


def test_bytes_that_are_no_bools_fail_their_upload() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, Spec(dtypes.bool_, VALUE.shape)), Fetch(1, 20))
            status = await upload(peer, 20, chunks_of(bytes(VALUE.size_bytes - 1) + b"\x02"))
            assert "the byte of a bool must be 0 or 1" in status.details
            assert await peer.failure(1) == "upload_failed"

    run(test())


@pytest.mark.parametrize("leaves", [True, False], ids=["leaves", "stalls"])
def test_the_memory_of_an_upload_that_ends_within_a_chunk_is_freed(*, leaves: bool) -> None:
    async def test() -> None:
        device = Watching(memory_bytes=1 << 40)
        async with server(device=device, upload_stall_s=0.5, resume_grace_s=0.1) as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, VALUE), Fetch(1, 20))
            async with uploading(peer, 20) as connection:
                await until(lambda: here.engine.staging.staged_bytes == VALUE.size_bytes)
                head = chunk_head(0, CHUNK_BYTES)
                length = len(head) + CHUNK_BYTES
                connection._socket._socket.sendall(head_of(PartKind.MESSAGE, length) + head + bytes(CHUNK_BYTES // 2))
                if leaves:
                    connection.abort()
                else:
                    assert "limits.upload_stall_s = 0.5" in (await status_of(connection)).details
                assert await peer.failure(1) == "upload_failed"
                assert here.engine.staging.staged_bytes == 0
                await until(lambda: device.staged() is None)

    run(test())


def test_a_download_that_nobody_reads_is_given_up_and_told_why() -> None:
    async def test() -> None:
        async with server(unread_s=0.1) as here:
            peer = await here.peer()
            large = Spec(dtypes.uint8, (16 * MIB,))
            await peer.send(upload_beside(20, large), Fetch(1, 20))
            data = bytes(large.size_bytes)
            await upload(peer, 20, [(start, data[start : start + MIB]) for start in range(0, len(data), MIB)])
            assert (await peer.result(1)).beside_bytes == large.size_bytes
            connection = await called(peer, "Download")
            request = pb.DownloadRequest(session_id=peer.session_id, fetch=1)
            await connection.send(PartKind.MESSAGE, request.SerializeToString())
            session = here.engine.sessions[peer.session_id]
            await until(lambda: here.engine._bulk_calls.count(session) == 1)
            await until(lambda: here.engine._bulk_calls.count(session) == 0)
            status = await status_of(connection)
            assert status.details.startswith("slow_reader: ")
            assert "limits.unread_s = 0.1" in status.details

    run(test())
