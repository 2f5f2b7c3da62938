"""A transport that also writes what passes through it to a file."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from fusewire._replay.records import Answer, LargeUpload, Outcome, RecordWriter, SentFrame
from fusewire._stream.credit import amount_of
from fusewire._transport.interface import Attempt, ConnectionCut, Peer, Receiver, Transport
from fusewire._transport.local_channel import LocalOffer
from fusewire_protos.credit import Amount
from fusewire_protos.errors import FusewireError
from fusewire_protos.v1 import fusewire_pb2 as wire


class RecordingTransport:
    """Passes all calls on to another transport. The recording begins when the transport is opened."""

    def __init__(self, inner: Transport, writer: RecordWriter) -> None:
        self._inner = inner
        self._writer = writer
        self._began_ns = 0

    def open(self, peer: Peer) -> None:
        self._began_ns = time.monotonic_ns()
        self._inner.open(_RecordedPeer(peer, self._writer, self._at_ns))

    def wake(self) -> None:
        self._inner.wake()

    def wait(self, receiver: Receiver, timeout_s: float | None) -> bool:
        return self._inner.wait(receiver, timeout_s)

    def call(self, act: Callable[[], object]) -> None:
        self._inner.call(act)

    def want_tick(self) -> None:
        self._inner.want_tick()

    def is_own_thread(self) -> bool:
        return self._inner.is_own_thread()

    def upload(self, session_id: bytes, handle: int, chunks: Sequence[memoryview]) -> None:
        at_ns = self._at_ns()
        self._inner.upload(session_id, handle, chunks)
        if self._writer.keeps_values:
            self._writer.write(LargeUpload(at_ns, handle, b"".join(chunks)))

    def download(self, session_id: bytes, fetch: int, size_bytes: int) -> None:
        self._inner.download(session_id, fetch, size_bytes)

    def close(self, farewell: bytes | None) -> None:
        self._inner.close(farewell)

    def wait_closed(self, timeout_s: float) -> None:
        self._inner.wait_closed(timeout_s)

    def _at_ns(self) -> int:
        return time.monotonic_ns() - self._began_ns


class _RecordedPeer:
    """Stands between the inner transport and the session, and records."""

    def __init__(self, peer: Peer, writer: RecordWriter, at_ns: Callable[[], int]) -> None:
        self._peer = peer
        self._writer = writer
        self._at_ns = at_ns
        self._completed = Amount()
        self._last_number = 0  # of the frames that are in the recording

    def hello(self) -> bytes:
        return self._peer.hello()

    def next_frame(self) -> bytes | None:
        raw = self._peer.next_frame()
        if raw is not None:
            self._record_sent(wire.ClientFrame.FromString(raw))
        return raw

    def on_frame(self, raw: bytes) -> bool:
        frame = wire.ServerFrame.FromString(raw)
        if frame.HasField("completed"):
            self._completed = amount_of(frame.completed)
        for result in frame.results:
            kind = result.WhichOneof("answer")
            if kind != "beside_bytes":
                self._record_answer(result.fetch, result.inline if kind == "inline" else None)
        return self._peer.on_frame(raw)

    def is_awaited(self) -> bool:
        return self._peer.is_awaited()

    def on_tick(self) -> float:
        return self._peer.on_tick()

    def on_download(self, fetch: int, raw: bytearray | memoryview) -> None:
        self._record_answer(fetch, raw)
        self._peer.on_download(fetch, raw)

    def on_download_failed(self, fetch: int, reason: Exception) -> None:
        self._record_answer(fetch, None)
        self._peer.on_download_failed(fetch, reason)

    def on_cut(self, reason: ConnectionCut) -> Attempt | None:
        return self._peer.on_cut(reason)

    def local_offer(self) -> LocalOffer | None:
        return self._peer.local_offer()

    def on_lost(self, error: FusewireError) -> None:
        self._writer.end(self._at_ns())
        self._peer.on_lost(error)

    def _record_sent(self, frame: wire.ClientFrame) -> None:
        if frame.number <= self._last_number:
            return  # a frame that is sent again, or a heartbeat; a replay sends its own heartbeats
        self._last_number = frame.number
        if not self._writer.keeps_values:
            tensors = len(frame.tensors)
            del frame.tensors[:]
            frame.tensors.extend([b""] * tensors)
        self._writer.write(SentFrame(self._at_ns(), self._completed, frame.SerializeToString()))

    def _record_answer(self, fetch: int, value: bytes | bytearray | memoryview | None) -> None:
        is_kept = value is not None and self._writer.keeps_values
        outcome: Outcome = bytes(value or b"") if is_kept else value is not None
        self._writer.write(Answer(self._at_ns(), fetch, outcome))
