"""A client that sends more than its credit: it tells its user the server's reason, though it still writes then."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

import grpc
import numpy as np
import pytest

import fusewire as fw
from fusewire._transport.stream_transport import StreamTransport
from fusewire._transport.streams import Call, GrpcStream, Stream
from fusewire_protos.credit import Amount
from fusewire_protos.frames import INLINE_BYTES
from fusewire_protos.v1 import fusewire_pb2 as wire
from tests.contract.service import Service, serving
from tests.patience import HANGS_S

CREDIT_SEGMENTS = 3
TOLD = rf"limits\.credit_segments = {CREDIT_SEGMENTS}$"
DEADLINE_S = HANGS_S
CLIENTS = 8
BOUNDLESS = Amount(1 << 60, 1 << 60, 1 << 60)
VALUE = np.zeros(INLINE_BYTES, np.uint8)  # the largest that travels within the stream


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """A server whose device takes no work, so that no credit returns."""
    environment = {"FUSEWIRE_LIMITS__CREDIT_SEGMENTS": str(CREDIT_SEGMENTS)}
    cache: Path = tmp_path_factory.mktemp("cache")
    with serving("null", cache=cache, environment=environment) as started, started.held():
        yield started


def overdraw(session: fw.Session) -> None:
    """Sends segments until the session ends, and raises its reason."""
    session._state.credit.limit = BOUNDLESS
    ends_at_s = monotonic() + DEADLINE_S
    while monotonic() < ends_at_s:
        (session.array(VALUE) + 1).future()


@pytest.mark.parametrize("client", range(CLIENTS))
@pytest.mark.parametrize("local", [True, False])
def test_who_overdraws_and_goes_on_writing_is_told_the_limit(service: Service, client: int, *, local: bool) -> None:
    with service.connect(local=local) as session, pytest.raises(fw.ProtocolError, match=TOLD):
        overdraw(session)


class LateCall(NamedTuple):
    """A call whose goodbye is read, and handed on only when writing has failed."""

    call: Call
    has_failed: asyncio.Event

    async def write(self, frame: bytes) -> None:
        await self.call.write(frame)

    async def read(self) -> Any:
        raw = await self.call.read()
        if isinstance(raw, bytes) and wire.ServerFrame.FromString(raw).HasField("goodbye"):
            async with asyncio.timeout(DEADLINE_S):
                await self.has_failed.wait()
        return raw


def test_whose_connection_breaks_before_the_goodbye_is_handled_is_told_the_limit(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    make, write, has_failed = StreamTransport._stream, StreamTransport._write, asyncio.Event()

    async def write_until_it_fails(self: StreamTransport, stream: Stream) -> None:
        try:
            await write(self, stream)
        except (grpc.aio.AioRpcError, asyncio.InvalidStateError):
            has_failed.set()
            raise

    def make_late(self: StreamTransport, *arguments: Any) -> GrpcStream:
        stream = make(self, *arguments)
        stream._call = LateCall(stream._call, has_failed)
        return stream

    monkeypatch.setattr(StreamTransport, "_write", write_until_it_fails)
    monkeypatch.setattr(StreamTransport, "_stream", make_late)
    with service.connect(local=False) as session, pytest.raises(fw.ProtocolError, match=TOLD):
        overdraw(session)
    assert has_failed.is_set()
