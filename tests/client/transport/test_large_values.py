"""Large values when the second connection reaches another server: what is sent over which connection."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from grpc.aio import AioRpcError, Metadata

from fusewire import QuotaExceeded, SessionLost
from fusewire._transport import large_values
from fusewire._transport.interface import ConnectionCut
from fusewire._transport.large_values import LargeValues
from fusewire._transport.upload_queue import ByteBudget, UploadQueue
from fusewire_protos.chunks import encode_chunk
from fusewire_protos.upload_call import SESSION_HEADER

SESSION = b"s" * 16
CHUNK = bytes(10)
CHUNKS = [encode_chunk(start, CHUNK) for start in (0, 10, 20)]
UNKNOWN_SESSION = "session_lost: this server holds no such session"


def refusal(details: str) -> AioRpcError:
    return AioRpcError(grpc.StatusCode.NOT_FOUND, Metadata(), Metadata(), details)


class Upload:
    """An upload call. A server that refuses it does so once it has taken `taken_chunks`."""

    def __init__(self, *, is_known: bool, taken_chunks: int) -> None:
        self._is_known = is_known
        self._taken_chunks = taken_chunks
        self._is_answered = asyncio.Event()
        self.messages: list[bytes] = []
        if is_known or not taken_chunks:
            self._is_answered.set()

    async def initial_metadata(self) -> Metadata:
        await self._is_answered.wait()
        return Metadata((SESSION_HEADER, SESSION.hex())) if self._is_known else Metadata()

    async def write(self, message: bytes) -> None:
        if not self._is_known and len(self.messages) == self._taken_chunks:
            raise refusal("Internal error from Core")
        self.messages.append(message)
        if len(self.messages) == self._taken_chunks:
            self._is_answered.set()

    async def done_writing(self) -> None:
        pass

    def __await__(self) -> Any:
        if not self._is_known:
            raise refusal(UNKNOWN_SESSION)
        yield from ()


class Download:
    """A download call, which brings these messages and then ends with an error or in order."""

    def __init__(self, messages: list[bytes], error: AioRpcError | None = None) -> None:
        self._messages = list(messages)
        self._error = error

    async def read(self) -> Any:
        if self._messages:
            return self._messages.pop(0)
        if self._error is not None:
            raise self._error
        return grpc.aio.EOF


class EndlessDownload:
    """A download call whose read ends only when the call is cancelled. gRPC frees no chunk of a cancelled read."""

    def __init__(self) -> None:
        self.chunk: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self.is_read = asyncio.Event()

    async def read(self) -> Any:
        self.is_read.set()
        return await self.chunk

    def cancel(self) -> None:
        self.chunk.set_result(grpc.aio.EOF)


class Channel:
    """A connection to a server that holds the session or does not."""

    def __init__(self, *, is_known: bool, taken_chunks: int = 0, error: AioRpcError | None = None) -> None:
        self._is_known = is_known
        self._taken_chunks = taken_chunks
        self._error = error if is_known or error else refusal(UNKNOWN_SESSION)
        self.uploads: list[Upload] = []
        self.downloads: list[Download] = []
        self.is_closed = False

    def stream_unary(self, _method: str) -> Callable[..., Upload]:
        def call(**_: Any) -> Upload:
            self.uploads.append(Upload(is_known=self._is_known, taken_chunks=self._taken_chunks))
            return self.uploads[-1]

        return call

    def unary_stream(self, _method: str) -> Callable[..., Download]:
        def call(*_: Any, **__: Any) -> Download:
            self.downloads.append(Download([] if self._error else CHUNKS, self._error))
            return self.downloads[-1]

        return call

    async def close(self) -> None:
        self.is_closed = True


async def upload(values: LargeValues, budget: ByteBudget | None = None) -> list[bool]:
    """Uploads three chunks as often as it takes, and checks that all the room is given back.

    Returns what each attempt said.
    """
    budget, said = budget or ByteBudget(100), list[bool]()
    while not (said and said[-1]):
        queue = UploadQueue(asyncio.get_running_loop(), budget, 3 * len(CHUNK))
        async with asyncio.timeout(10):
            copying = asyncio.to_thread(_copy, queue)
            _, is_sent = await asyncio.gather(copying, _carry(values, queue))
        said.append(is_sent)
    assert budget._queued_bytes.total() == 0
    return said


def _copy(queue: UploadQueue) -> None:
    queue.fill([memoryview(CHUNK)] * 3)
    queue.finish()


async def _carry(values: LargeValues, queue: UploadQueue) -> bool:
    is_sent = await values.upload(queue, SESSION, 7)
    queue.end(is_cut=not is_sent)
    await queue.drain()
    return is_sent


def test_an_upload_uses_the_second_connection_only() -> None:
    async def test() -> None:
        stream, second = Channel(is_known=True), Channel(is_known=True)
        values = LargeValues(stream, lambda: second, ())
        await upload(values)
        await upload(values)
        assert [call.messages for call in second.uploads] == [CHUNKS, CHUNKS]
        assert not stream.uploads

    asyncio.run(test())


@pytest.mark.parametrize("taken_chunks", [0, 1, 2, 3])
def test_an_upload_that_another_server_refuses_is_sent_again_whole_over_the_connection_of_the_stream(
    taken_chunks: int,
) -> None:
    async def test() -> None:
        stream, second = Channel(is_known=True), Channel(is_known=False, taken_chunks=taken_chunks)
        await upload(LargeValues(stream, lambda: second, ()))
        assert [call.messages for call in stream.uploads] == [CHUNKS]
        assert second.uploads[0].messages == CHUNKS[:taken_chunks]

    asyncio.run(test())


def test_an_upload_that_is_not_kept_is_copied_anew_once_it_is_refused() -> None:
    async def test() -> None:
        stream, second = Channel(is_known=True), Channel(is_known=False, taken_chunks=1)
        assert await upload(LargeValues(stream, lambda: second, ()), ByteBudget(10)) == [False, True]
        assert [call.messages for call in (*second.uploads, *stream.uploads)] == [CHUNKS[:1], CHUNKS]

    asyncio.run(test())


def test_after_one_refusal_all_large_values_use_the_connection_of_the_stream() -> None:
    async def test() -> None:
        stream, second = Channel(is_known=True), Channel(is_known=False)
        values = LargeValues(stream, lambda: second, ())
        await upload(values)
        await upload(values)
        assert bytes(await values.download(SESSION, 1, 30)) == 3 * CHUNK
        assert (len(second.uploads), len(second.downloads)) == (1, 0)
        assert (len(stream.uploads), len(stream.downloads)) == (2, 1)

    asyncio.run(test())


def test_a_download_that_another_server_refuses_comes_over_the_connection_of_the_stream() -> None:
    async def test() -> None:
        stream, second = Channel(is_known=True), Channel(is_known=False)
        values = LargeValues(stream, lambda: second, ())
        assert bytes(await values.download(SESSION, 1, 30)) == 3 * CHUNK
        assert bytes(await values.download(SESSION, 2, 30)) == 3 * CHUNK
        assert (len(second.downloads), len(stream.downloads)) == (1, 2)

    asyncio.run(test())


@pytest.mark.parametrize("is_stream_broken", [True, False])
def test_a_download_whose_connection_breaks_comes_over_that_of_the_stream_if_it_can(
    is_stream_broken: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(large_values, "_GOODBYE_S", 0.0)

    async def test() -> None:
        broken = refusal("Connection reset by peer")
        stream = Channel(is_known=True, error=broken if is_stream_broken else None)
        values = LargeValues(stream, lambda: Channel(is_known=True, error=broken), ())
        if is_stream_broken:
            with pytest.raises(SessionLost, match="while the value travelled"):
                await values.download(SESSION, 1, 30)
        else:
            assert bytes(await values.download(SESSION, 1, 30)) == 3 * CHUNK
        assert len(stream.downloads) == 1

    asyncio.run(test())


def test_what_is_carried_when_the_connection_ends_is_cut() -> None:
    async def test() -> None:
        call = EndlessDownload()
        channel = SimpleNamespace(
            unary_stream=lambda _method: lambda *_, **__: call, close=Channel(is_known=True).close
        )
        values = LargeValues(channel, lambda: channel, ())
        carrying = asyncio.create_task(values.carrying(values.download(SESSION, 1, 30)))
        await call.is_read.wait()
        await values.close()
        with pytest.raises(ConnectionCut):
            await carrying

    asyncio.run(test())


def test_a_download_that_is_refused_for_another_reason_is_not_repeated() -> None:
    async def test() -> None:
        stream = Channel(is_known=True)
        second = Channel(is_known=True, error=refusal("too_many_calls: 512 calls of this session are running"))
        with pytest.raises(QuotaExceeded, match="512 calls"):
            await LargeValues(stream, lambda: second, ()).download(SESSION, 1, 30)
        assert not stream.downloads

    asyncio.run(test())


def test_a_download_that_is_cancelled_ends_its_call_and_lets_the_read_go_on() -> None:
    async def test() -> None:
        call = EndlessDownload()
        channel = SimpleNamespace(unary_stream=lambda _method: lambda *_, **__: call)
        download = asyncio.create_task(LargeValues(channel, lambda: channel, ()).download(SESSION, 1, 30))
        await call.is_read.wait()
        download.cancel()
        with pytest.raises(asyncio.CancelledError):
            await download
        assert call.chunk.result() is grpc.aio.EOF

    asyncio.run(test())


def test_a_session_that_no_server_holds_loses_the_download_after_one_repetition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(large_values, "_GOODBYE_S", 0.0)

    async def test() -> None:
        stream, second = Channel(is_known=False), Channel(is_known=False)
        with pytest.raises(SessionLost, match="while the value travelled"):
            await LargeValues(stream, lambda: second, ()).download(SESSION, 1, 30)
        assert (len(second.downloads), len(stream.downloads)) == (1, 1)

    asyncio.run(test())


def test_a_session_that_no_server_holds_leaves_no_upload_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_values, "_GOODBYE_S", 0.0)

    async def test() -> None:
        stream, second = Channel(is_known=False), Channel(is_known=False)
        await upload(LargeValues(stream, lambda: second, ()), ByteBudget(10))
        assert (len(second.uploads), len(stream.uploads)) == (1, 1)

    asyncio.run(test())


def test_the_second_connection_is_made_for_the_first_large_value_and_closed_in_the_end() -> None:
    async def test() -> None:
        opened: list[Channel] = []

        def open_channel() -> Channel:
            opened.append(Channel(is_known=True))
            return opened[-1]

        values = LargeValues(Channel(is_known=True), open_channel, ())
        await values.close()
        assert not opened
        await upload(values)
        await upload(values)
        await values.close()
        assert [channel.is_closed for channel in opened] == [True]

    asyncio.run(test())
