"""Attacks on a server. Each function runs in a process of its own until it is ended."""

from __future__ import annotations

import asyncio
import selectors
import socket
import time
from contextlib import suppress
from typing import Any

import grpc
import grpc.aio

import fusewire as fw
from fusewire_protos.address import read_address

_MESSAGE = bytes(4 << 20)
_CALLS = 64
_CONNECTIONS = 8
_SERVICE = "/fusewire.v1.Fusewire/"
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))  # with an empty SETTINGS frame
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

    await asyncio.gather(*(push(channels[number % _CONNECTIONS]) for number in range(_CALLS)))


def connect_and_say_nothing(target: str, _token: str) -> None:
    """Opens connections and sends nothing."""
    _hold(target, b"")


def connect_and_only_greet(target: str, _token: str) -> None:
    """Opens connections, begins HTTP/2 on each, and sends nothing more."""
    _hold(target, _PREFACE)


def _hold(target: str, greeting: bytes) -> None:
    held = []
    with suppress(OSError):
        for _ in range(250):
            connection = socket.create_connection(read_address(target), timeout=1.0)
            connection.sendall(greeting)
            held.append(connection)
    time.sleep(3600)


def hold_a_session(target: str, token: str) -> None:
    """Opens a session and leaves it open."""
    with fw.connect(target, token=token) as session:
        session.array([1.0]).numpy()
        time.sleep(3600)


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
            if len(opened) > _CALLS:
                opened.pop(0).close()
            connections.select(0.002)
