"""The client of the bare server: a process with one thread, in which only gRPC runs.

No thread waits for another while a round trip is timed. Messages are made before they are timed, and received bytes are
dropped, so nothing is copied.
"""

from __future__ import annotations

import asyncio
from multiprocessing.connection import Connection
from time import perf_counter_ns
from typing import Any

import grpc

from loadtests.measuring.errors import WrongResult
from loadtests.measuring.workers import answer_commands
from loadtests.peers.bare_server import SERVICE, chunks_of
from loadtests.peers.event_loop import new_event_loop
from loadtests.peers.grpc_options import CLIENT_OPTIONS

FRAME = b"\x08\x01" * 30  # as long as a frame with one fetch
_OPENING_DEADLINE_S = 20.0


def serve(connection: Connection, port: int, bulk_bytes: int, chunk_bytes: int) -> None:
    """Answers the commands `echo ROUNDS REST_S`, `upload` and `download` with times in ns."""
    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        client = runner.run(_open(port, chunks_of(bulk_bytes, chunk_bytes)))
        answer_commands(
            connection,
            {
                "echo": lambda rounds, rest_s=0.0: runner.run(client.echo(rounds, rest_s)),
                "upload": lambda: runner.run(client.upload()),
                "download": lambda: runner.run(client.download()),
            },
        )


async def _open(port: int, bulk: list[bytes]) -> _BareClient:
    channel = grpc.aio.insecure_channel(f"127.0.0.1:{port}", options=CLIENT_OPTIONS)
    await asyncio.wait_for(channel.channel_ready(), _OPENING_DEADLINE_S)
    return _BareClient(channel, bulk)


class _BareClient:
    def __init__(self, channel: Any, bulk: list[bytes]) -> None:
        self._channel = channel
        self._bulk = bulk
        self._bulk_bytes = sum(map(len, bulk))
        self._echo = channel.stream_stream(f"/{SERVICE}/Echo")()

    async def echo(self, rounds: int, rest_s: float) -> list[int]:
        """Returns the time of each round trip, in ns. Rests before each."""
        times = []
        for _ in range(rounds):
            if rest_s:
                await asyncio.sleep(rest_s)
            began_ns = perf_counter_ns()
            await self._echo.write(FRAME)
            answer = await self._echo.read()
            times.append(perf_counter_ns() - began_ns)
            _check(len(answer), len(FRAME))
        return times

    async def upload(self) -> int:
        began_ns = perf_counter_ns()
        call = self._channel.stream_unary(f"/{SERVICE}/Sink")()
        for chunk in self._bulk:
            await call.write(chunk)
        await call.done_writing()
        taken_bytes = int(await call)
        elapsed_ns = perf_counter_ns() - began_ns
        _check(taken_bytes, self._bulk_bytes)
        return elapsed_ns

    async def download(self) -> int:
        began_ns = perf_counter_ns()
        taken_bytes = 0
        async for chunk in self._channel.unary_stream(f"/{SERVICE}/Source")(b""):
            taken_bytes += len(chunk)
        elapsed_ns = perf_counter_ns() - began_ns
        _check(taken_bytes, self._bulk_bytes)
        return elapsed_ns


def _check(actual_bytes: int, expected_bytes: int) -> None:
    if actual_bytes != expected_bytes:
        raise WrongResult(f"bare gRPC returned {actual_bytes} bytes instead of {expected_bytes}")
