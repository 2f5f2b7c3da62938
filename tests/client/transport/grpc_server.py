"""A server of this process behind gRPC, whose answers a test arranges."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from queue import SimpleQueue
from typing import Any

import grpc
import numpy as np

from fusewire.testing.memory_server import MemoryServer
from fusewire_protos.chunks import decode_chunk, encode_chunk
from fusewire_protos.upload_call import HANDLE_HEADER, SESSION_HEADER
from fusewire_protos.v1 import fusewire_pb2 as wire
from tests.patience import HANGS_S

A = np.linspace(-1, 1, 12, dtype=np.float32).reshape(3, 4)


LARGE = np.arange(100_000, dtype=np.float64)


class Server:
    """A MemoryServer behind gRPC, until it is closed."""

    def __init__(self, credentials: grpc.ServerCredentials | None = None, place: str = "127.0.0.1:0") -> None:
        self.memory = MemoryServer()
        self.farewells: list[wire.ServerFrame] = []  # once there are any, they are all the client is told
        self.metadata: list[dict[str, Any]] = []  # of every call
        self.alter: Callable[[bytes], bytes] = lambda value: value  # what becomes of a value on its way down
        self.arrange: Callable[[list[bytes]], list[bytes]] = lambda chunks: chunks  # and of its chunks
        self.refusal: tuple[grpc.StatusCode, str] | None = None  # of every download
        self.has_parted = threading.Event()  # whether a client has said goodbye
        self.take_upload: Callable[[], object] = lambda: None  # comes before the bytes of each upload are read
        self._owed: SimpleQueue[bytes | None] = SimpleQueue()
        self._declared = threading.Event()
        self.listening = grpc.server(ThreadPoolExecutor(8))
        self.listening.add_generic_rpc_handlers((self._handler(),))
        port = self._add_port(place, credentials)
        self.target = place.removesuffix(":0") + f":{port}" if place.endswith(":0") else place
        self.listening.start()

    def close(self) -> None:
        self.listening.stop(None).wait(HANGS_S)

    def _add_port(self, place: str, credentials: grpc.ServerCredentials | None) -> int:
        if credentials is None:
            return self.listening.add_insecure_port(place)
        return self.listening.add_secure_port(place, credentials)

    def _handler(self) -> Any:
        methods: dict[str, grpc.RpcMethodHandler[Any, Any]] = {
            "Session": grpc.stream_stream_rpc_method_handler(self._session),
            "Upload": grpc.stream_unary_rpc_method_handler(self._upload),
            "Download": grpc.unary_stream_rpc_method_handler(self._download),
        }
        return grpc.method_handlers_generic_handler("fusewire.v1.Fusewire", methods)

    def _session(self, frames: Iterator[bytes], context: Any) -> Iterator[bytes]:
        self.metadata.append(dict(context.invocation_metadata()))
        reader = threading.Thread(target=self._read, args=(frames,))
        reader.start()
        yield from iter(self._owed.get, None)
        reader.join(10)

    def _read(self, frames: Iterator[bytes]) -> None:
        with suppress(grpc.RpcError):  # the client has gone
            for raw in frames:
                is_last = wire.ClientFrame.FromString(raw).HasField("goodbye")
                if is_last:
                    self.has_parted.set()
                if self.farewells or is_last:
                    break
                self._owe(self.memory.receive(raw))
                if self.memory.awaited:
                    self._declared.set()
        self._owe([farewell.SerializeToString() for farewell in self.farewells])
        self.farewells.clear()
        self._owed.put(None)

    def _upload(self, chunks: Iterator[bytes], context: Any) -> bytes:
        own = dict(context.invocation_metadata())
        self.metadata.append(own)
        context.send_initial_metadata(((SESSION_HEADER, own[SESSION_HEADER]),))
        self.take_upload()
        raw = b""
        for chunk in chunks:
            raw += decode_chunk(chunk, len(raw))
        assert self._declared.wait(HANGS_S)
        self._owe(self.memory.upload(int(own[HANDLE_HEADER]), raw))
        return wire.UploadReceipt(bytes=len(raw)).SerializeToString()

    def _download(self, raw: bytes, context: Any) -> Iterator[bytes]:
        if self.refusal is not None:
            context.abort(*self.refusal)
        value = self.alter(self.memory.beside[wire.DownloadRequest.FromString(raw).fetch])
        chunks = [encode_chunk(start, value[start : start + 4096]) for start in range(0, len(value), 4096)]
        yield from self.arrange(chunks)

    def _owe(self, frames: list[bytes]) -> None:
        for raw in frames:
            self._owed.put(raw)
