"""The other end of the bare server: a process whose gRPC lives in one private thread, as Fusewire's client's does.

Round trips are timed in two places: within the private thread, where no thread waits for another, and in a user's
thread that hands its frame over and waits for the answer. The server answers the latter from its loop, or after it has
handed the frame to a thread of its own and taken it back.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Coroutine
from multiprocessing.connection import Connection
from time import perf_counter_ns
from typing import Any

import grpc
import numpy as np

from loadtests.figure import WrongResult
from loadtests.peers.bare_server import SERVICE, UNLIMITED
from loadtests.peers.loops import new_loop
from loadtests.workers import answer_commands

FRAME = b"\x08\x01" * 30  # as long as a fetch with its frame
_OPENING_DEADLINE_S = 20.0


def serve(connection: Connection, port: int, bulk_bytes: int) -> None:
    """Answers `echo`, `echo_to_user` and `echo_through_threads` ROUNDS, `upload` and `download` CHUNK_BYTES, in ns."""
    client = _BareClient(port, bulk_bytes)
    commands = (client.echo, client.echo_to_user, client.echo_through_threads, client.upload, client.download)
    answer_commands(connection, {command.__name__: command for command in commands})


class _BareClient:
    def __init__(self, port: int, bulk_bytes: int) -> None:
        self._bulk = memoryview(np.random.default_rng(1).bytes(bulk_bytes))
        self._loop = new_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()
        self._run(self._open(port))
        self._by_loop = _WaitingUser(self._loop, self._to_user)
        self._by_thread = _WaitingUser(self._loop, self._through_threads)

    def _run(self, act: Coroutine[Any, Any, Any]) -> Any:
        return asyncio.run_coroutine_threadsafe(act, self._loop).result()

    async def _open(self, port: int) -> None:
        self._channel = _channel(port)
        await asyncio.wait_for(self._channel.channel_ready(), _OPENING_DEADLINE_S)
        self._echo = self._channel.stream_stream(f"/{SERVICE}/Echo")()
        self._to_user = self._channel.stream_stream(f"/{SERVICE}/Echo")()
        self._through_threads = self._channel.stream_stream(f"/{SERVICE}/EchoThroughThread")()

    def echo(self, rounds: int) -> list[int]:
        """Round trips without any hand-off."""
        times: list[int] = self._run(self._echo_rounds(rounds))
        return times

    async def _echo_rounds(self, rounds: int) -> list[int]:
        times = []
        for _ in range(rounds):
            began_ns = perf_counter_ns()
            await self._echo.write(FRAME)
            answer = await self._echo.read()
            times.append(perf_counter_ns() - began_ns)
            _check(len(answer), len(FRAME))
        return times

    def echo_to_user(self, rounds: int) -> list[int]:
        """Round trips user thread → I/O thread → server's loop, and back the same way."""
        return _ask_often(self._by_loop, rounds)

    def echo_through_threads(self, rounds: int) -> list[int]:
        """Round trips user thread → I/O thread → server's loop → server's device thread, and back the same way."""
        return _ask_often(self._by_thread, rounds)

    def upload(self, chunk_bytes: int) -> int:
        began_ns = perf_counter_ns()
        taken_bytes = self._run(self._send(chunk_bytes))
        elapsed_ns = perf_counter_ns() - began_ns
        _check(int(taken_bytes), len(self._bulk))
        return elapsed_ns

    async def _send(self, chunk_bytes: int) -> bytes:
        call = self._channel.stream_unary(f"/{SERVICE}/Sink")()
        for start in range(0, len(self._bulk), chunk_bytes):
            await call.write(bytes(self._bulk[start : start + chunk_bytes]))
        await call.done_writing()
        taken: bytes = await call
        return taken

    def download(self, chunk_bytes: int) -> int:
        began_ns = perf_counter_ns()
        taken_bytes = self._run(self._receive(chunk_bytes))
        elapsed_ns = perf_counter_ns() - began_ns
        _check(taken_bytes, len(self._bulk))
        return elapsed_ns

    async def _receive(self, chunk_bytes: int) -> int:
        call = self._channel.unary_stream(f"/{SERVICE}/Source")(str(chunk_bytes).encode())
        taken_bytes = 0
        async for chunk in call:
            taken_bytes += len(chunk)
        return taken_bytes


class _WaitingUser:
    """A stream used from a user's thread: a parked writer is woken, and a reader wakes the user."""

    def __init__(self, loop: asyncio.AbstractEventLoop, call: Any) -> None:
        self._loop = loop
        self._call = call
        self._to_send: deque[bytes] = deque()
        self._answers: deque[bytes] = deque()
        self._answered = threading.Lock()  # held while there is no answer: the cheapest thing to wait on
        self._answered.acquire()
        self._is_owed = asyncio.Event()
        for task in (self._write(), self._read()):
            asyncio.run_coroutine_threadsafe(task, loop)

    def ask(self, frame: bytes) -> bytes:
        self._to_send.append(frame)
        self._loop.call_soon_threadsafe(self._is_owed.set)
        self._answered.acquire()
        return self._answers.popleft()

    async def _write(self) -> None:
        while True:
            await self._is_owed.wait()
            self._is_owed.clear()
            while self._to_send:
                await self._call.write(self._to_send.popleft())

    async def _read(self) -> None:
        async for answer in self._call:
            self._answers.append(answer)
            self._answered.release()


def _ask_often(user: _WaitingUser, rounds: int) -> list[int]:
    """How long each answer took, in ns."""
    times = []
    for _ in range(rounds):
        began_ns = perf_counter_ns()
        answer = user.ask(FRAME)
        times.append(perf_counter_ns() - began_ns)
        _check(len(answer), len(FRAME))
    return times


def _channel(port: int) -> Any:  # used as its stubs do not describe it
    return grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=UNLIMITED)


def _check(actual_bytes: int, expected_bytes: int) -> None:
    if actual_bytes != expected_bytes:
        raise WrongResult(f"{actual_bytes} bytes came back from bare gRPC instead of {expected_bytes}")
