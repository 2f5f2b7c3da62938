"""Attacks on a server. Each function runs in a process of its own until it is ended."""

from __future__ import annotations

import asyncio
import selectors
import socket
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import suppress
from itertools import cycle, product
from typing import Any

import grpc
import grpc.aio
import msgpack
import numpy as np

import fusewire as fw
from fusewire_protos.address import read_address
from fusewire_protos.frames import INLINE_BYTES, MAX_HANDLE, MAX_ITERATIONS, Fetch, NewProgram
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.codec import encode
from fusewire_protos.programs.program import ProgramOp, build
from tests.server.parts import new, pair, segment, upload, upload_beside
from tests.server.wire import Peer
from tests.server.world import NEGATE

MESSAGE_BYTES = 4 << 20
_MESSAGE = bytes(MESSAGE_BYTES)
CALLS = 64
_USES = 4  # one more than a program needs to be compiled
_EMPTY, _HUGE = Spec(dtypes.float32, (7, 5, 0)), Spec(dtypes.float32, (2**31 - 1, 2**31 - 1, 0))
_INLINE = Spec(dtypes.uint8, (INLINE_BYTES,))
UNREAD_BYTES = 32 << 20  # half of what a session may leave unread
_LONG = 10_000  # rows and columns of matrices whose product takes two cores about half a minute
_CONNECTIONS = 8
_HELD = 250
_SERVICE = "/fusewire.v1.Fusewire/"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))  # with an empty SETTINGS frame
_FOREIGN_REQUEST = b"GET /v1/stats HTTP/1.1\r\nHost: evil.example\r\n\r\n"
_SLOW_REQUEST = b"GET /v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\nX-Slow: " + 4096 * b"x"
_REQUESTS = 2000 * b"GET /v1/stats HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n"


def push_sessions(target: str, token: str) -> None:
    """Opens streams of sessions and sends long messages on them."""
    asyncio.run(_push(target, token, "Session"))


def push_downloads(target: str, token: str) -> None:
    """Calls a method that takes a single message, with long messages."""
    asyncio.run(_push(target, token, "Download"))


def push_undeclared_uploads(target: str, token: str) -> None:
    """Uploads long messages to handles that no session has declared."""
    asyncio.run(_push(target, token, "Upload"))


async def _push(target: str, token: str, method: str) -> None:
    metadata = (("authorization", f"Bearer {token}"),) if token else ()
    options = (("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1))
    channels: list[Any] = [grpc.aio.insecure_channel(target, options=options) for _ in range(_CONNECTIONS)]

    async def push(channel: Any) -> None:
        while True:
            with suppress(grpc.RpcError, asyncio.InvalidStateError, TimeoutError):
                call = channel.stream_stream(_SERVICE + method)(metadata=metadata)
                while True:
                    await asyncio.wait_for(call.write(_MESSAGE), 1.0)
            await asyncio.sleep(0.01)

    await asyncio.gather(*(push(channels[number % _CONNECTIONS]) for number in range(CALLS)))


def connect_and_say_nothing(target: str, _token: str) -> None:
    """Keeps many connections open and sends nothing."""
    _hold(target, b"")


def connect_and_only_greet(target: str, _token: str) -> None:
    """Keeps many connections open, begins HTTP/2 on each, and sends nothing more."""
    _hold(target, _PREFACE)


def _hold(target: str, greeting: bytes) -> None:
    """Opens another connection for each that the server closes."""
    with selectors.DefaultSelector() as connections:
        while True:
            while len(connections.get_map()) < _HELD:
                try:
                    connection = socket.create_connection(read_address(target), timeout=1.0)
                    connection.sendall(greeting)
                    connections.register(connection, selectors.EVENT_READ)
                except OSError:
                    time.sleep(0.01)
            for key, _ in connections.select():
                assert isinstance(key.fileobj, socket.socket)
                if _has_ended(key.fileobj):
                    connections.unregister(key.fileobj)
                    key.fileobj.close()


def _has_ended(connection: socket.socket) -> bool:
    try:
        return not connection.recv(1 << 12)
    except OSError:
        return True


def hold_a_session(target: str, token: str) -> None:
    """Opens a session and leaves it open."""
    with fw.connect(target, token=token) as session:
        session.array([1.0]).numpy()
        time.sleep(3600)


def record_and_read_nothing(target: str, token: str) -> None:
    """Records ops as fast as the server takes them, and reads no value. Waits for ever when the server has ended."""
    with suppress(fw.SessionLost, fw.SessionClosed), fw.connect(target, token=token) as session:
        x = session.array([0.5] * 1024)
        while True:
            x = fw.tanh(x * 0.5 + 0.25)
    time.sleep(3600)


def run_a_loop_without_end(target: str, token: str) -> None:
    """Asks for as many iterations as a loop may have. Waits for ever when the server has ended."""
    with suppress(fw.SessionLost, fw.SessionClosed), fw.connect(target, token=token) as session:
        x = session.array([0.5] * 4096)
        fw.fori_loop(MAX_ITERATIONS - 1, lambda _, each: fw.tanh(each * 0.5 + 0.25), x).numpy()
    time.sleep(3600)


def run_one_long_launch(target: str, token: str) -> None:
    """Asks for one product that takes a CPU long, and whose launch nothing interrupts.

    Waits for ever when the server has ended.
    """
    with suppress(fw.SessionLost, fw.SessionClosed), fw.connect(target, token=token) as session:
        x = session.array(np.ones((_LONG, _LONG), np.uint8))
        (x @ x).numpy()
    time.sleep(3600)


def ask_for_values_and_read_none(target: str, token: str) -> None:
    """Asks for UNREAD_BYTES of values, and never reads the stream."""
    asyncio.run(_read_none(target, token))


async def _read_none(target: str, token: str) -> None:
    async with grpc.aio.insecure_channel(target) as channel:
        peer = Peer(channel, (("authorization", f"Bearer {token}"),))
        await peer.open()
        await peer.send(upload(20, _INLINE), tensors=[bytes(_INLINE.size_bytes)])
        for first in range(1, UNREAD_BYTES // _INLINE.size_bytes + 1, 8):
            await peer.send(*(Fetch(fetch, 20) for fetch in range(first, first + 8)))
        await asyncio.sleep(3600)


def send_new_programs(target: str, token: str) -> None:
    """Keeps a server's compilers busy: uses one new program after another until each is to be compiled.

    Waits for ever when the server has ended.
    """
    functions = (fw.tanh, fw.exp, fw.sin, fw.cos, fw.sqrt)
    with suppress(fw.SessionLost, fw.SessionClosed), fw.connect(target, token=token) as session:
        for names in product(functions, repeat=8):
            for _ in range(_USES):
                x = session.array([0.5] * 8)
                for function in names:
                    x = function(x) * 0.5
                x.numpy()
    time.sleep(3600)


def declare_huge_empty_arrays(target: str, token: str) -> None:
    """Sends arrays without elements whose other dims multiply to 2^62, as uploads and inside programs."""
    raw = encode(build([_EMPTY], [], [ProgramOp(BY_NAME["negative"], (0,), ())], (0,)))
    fields = msgpack.unpackb(raw)
    inputs = next(field for field in fields if isinstance(field, list))
    inputs[0][1:] = _HUGE.shape
    huge_raw = msgpack.packb(fields)
    asyncio.run(
        _be_refused(
            target,
            token,
            lambda peer: peer.send(upload(20, _HUGE), tensors=[b""]),
            lambda peer: peer.send(upload_beside(20, _HUGE)),
            lambda peer: peer.send(segment(9, 100, 10), Fetch(1, 100), programs=[NewProgram(9, False, huge_raw)]),
        )
    )


def name_handles_beyond_the_largest(target: str, token: str) -> None:
    """Sends segments whose results would get handles of 2^63 and more."""
    asyncio.run(
        _be_refused(
            target,
            token,
            lambda peer: peer.send(segment(9, MAX_HANDLE - 1, 10, 10), programs=[new(9, pair())]),
            lambda peer: peer.send(segment(NEGATE, MAX_HANDLE + 1, 10)),
            lambda peer: peer.send(segment(NEGATE, 2**64 - 1, 10)),
        )
    )


async def _be_refused(target: str, token: str, *frames: Callable[[Peer], Coroutine[Any, Any, None]]) -> None:
    """Sends each frame in a session of its own, again and again. Fails if the server does not refuse a frame."""
    async with grpc.aio.insecure_channel(target) as channel:
        for send in cycle(frames):
            peer = Peer(channel, (("authorization", f"Bearer {token}"),))
            await peer.open()
            await send(peer)
            frame = await peer.next()
            while not (frame.results or frame.HasField("goodbye")):
                frame = await peer.next()
            assert frame.HasField("goodbye") or frame.results[0].HasField("failure"), frame
            peer.call.cancel()


def ask_by_a_foreign_name(target: str, _token: str) -> None:
    """Sends requests for another host, as a page of a domain that points to this machine would."""
    while True:
        with socket.create_connection(read_address(target), timeout=10.0) as connection:
            connection.sendall(_FOREIGN_REQUEST)
            assert connection.recv(64).startswith(b"HTTP/1.1 421 ")


def ask_slowly(target: str, _token: str) -> None:
    """Keeps many connections to the inspection open, and sends a request on each a byte at a time (slow loris)."""
    opened: list[tuple[socket.socket, Iterator[int]]] = []
    while True:
        with suppress(OSError):
            opened.append((socket.create_connection(read_address(target), timeout=1.0), iter(_SLOW_REQUEST)))
        opened = [each for each in opened if _sends_a_byte(*each)]
        time.sleep(0.001)


def _sends_a_byte(connection: socket.socket, request: Iterator[int]) -> bool:
    try:
        connection.sendall(bytes((next(request),)))
    except (OSError, StopIteration):
        connection.close()
        return False
    return True


def ask_and_read_nothing(target: str, _token: str) -> None:
    """Keeps opening connections to the inspection, sends many requests at once on each, and reads no answer."""
    with selectors.DefaultSelector() as connections:
        opened: list[socket.socket] = []
        while True:
            with suppress(OSError):
                connection = socket.create_connection(read_address(target), timeout=1.0)
                opened.append(connection)
                connection.setblocking(False)
                connection.send(_REQUESTS)
            if len(opened) > CALLS:
                opened.pop(0).close()
            connections.select(0.002)
