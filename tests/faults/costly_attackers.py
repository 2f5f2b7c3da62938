"""Processes that send costly frames to a server, each a client of its own. They start once, and are told what to send.

The frames are made before they are sent, so that sending them takes little time of the processors, which are the
server's too.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import cycle
from multiprocessing import get_context
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import grpc
import grpc.aio

from fusewire_protos.v1 import fusewire_pb2 as pb
from tests.front_end_processes import are_connected
from tests.patience import HANGS_S
from tests.server.costs.choosing import Round
from tests.server.costs.draft import Draft, bytes_of
from tests.server.costs.kinds import BY_NAME
from tests.server.wire import SERVICE, hello

_CANCELLED_AGAIN_S = 1.0
_NICENESS = 10  # attackers on other machines would not take the server's processors
_MOST_ROUNDS, _MOST_BYTES = 8, 1 << 18  # of a script
_CALLS = 64
_REFUSED_PAUSE_S = 0.05
_OPTIONS = (("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1))


class Script(NamedTuple):
    """What one session sends: messages, and how many segments each of them brings.

    If there is a `method`, each message is the first of a call of that method, and there is no session.
    """

    messages: list[tuple[bytes, int]]
    method: str = ""


class Order(NamedTuple):
    """What an attacker does: whose token it has, the names of the scripts that it repeats, and how fast it sends.

    `front_end` is the process that is to serve its connection; 0 for any.
    """

    target: str
    token: str
    scripts: tuple[str, ...]
    most_bytes_a_s: float
    front_end: int = 0


# Calls that the server refuses, or that end at once.
CALLS = {
    "call: a download of nothing": Script(
        [(pb.DownloadRequest(session_id=bytes(16), fetch=1).SerializeToString(), 0)] * _CALLS, "Download"
    ),
    "call: an upload to no session": Script([(pb.Chunk(data=b"1").SerializeToString(), 0)] * _CALLS, "Upload"),
}


def script_of(round_: Round) -> Script:
    """As many rounds of a kind as a session sends before it makes room."""
    kind, messages = BY_NAME[round_.name], list[tuple[bytes, int]]()
    drafts: list[Draft] = [*kind.before(round_.size)]
    round_bytes = sum([len(bytes_of(draft, 1, 0)) for draft in kind.sent(round_.size, 0)])
    rounds = 1 if kind.ends else max(min(_MOST_ROUNDS, kind.rounds, _MOST_BYTES // max(round_bytes, 1)), 1)
    for turn in range(rounds):
        drafts += kind.sent(round_.size, turn)
    number = 1
    for draft in drafts:
        messages.append((bytes_of(draft, number, 0), draft.segments))
        number += draft.is_numbered and not draft.is_sent_again
    return Script(messages, "Session" if kind.opens else "")


class Attackers:
    """Attacking processes that wait for orders."""

    def __init__(self, pipes: Sequence[Connection]) -> None:
        self._pipes = pipes

    @contextmanager
    def sending(self, order: Order, count: int) -> Iterator[list[int]]:
        """Has `count` attackers send while the `with` body runs. The list then gets the bytes that each has sent.

        Each attacker begins with another script.
        """
        sent_bytes: list[int] = []
        pipes, scripts = self._pipes[:count], order.scripts
        for number, pipe in enumerate(pipes):
            first = number % len(scripts)
            pipe.send(order._replace(scripts=scripts[first:] + scripts[:first]))
        try:
            yield sent_bytes
        finally:
            for pipe in pipes:
                pipe.send(None)
            sent_bytes += [_answer(pipe) for pipe in pipes]


def _answer(pipe: Connection) -> Any:
    assert pipe.poll(HANGS_S), "an attacker does not answer"
    return pipe.recv()


@contextmanager
def attackers(count: int, scripts: Mapping[str, Script], folder: Path) -> Iterator[Attackers]:
    """Starts processes that know the scripts, and ends them."""
    file = folder / "scripts"
    file.write_bytes(pickle.dumps(dict(scripts)))
    context = get_context("forkserver")  # which imports once what all of them need
    context.set_forkserver_preload([__name__])
    with ExitStack() as running:
        pipes = []
        for _ in range(count):
            own, other = context.Pipe()
            process = context.Process(target=_obey, args=(other, file), daemon=True)
            process.start()
            running.callback(process.join, HANGS_S)
            running.callback(process.kill)
            pipes.append(own)
        for pipe in pipes:
            _answer(pipe)
        yield Attackers(pipes)


def _obey(pipe: Connection, file: Path) -> None:
    os.nice(_NICENESS)
    scripts: dict[str, Script] = pickle.loads(file.read_bytes())  # noqa: S301 - the test has written it
    pipe.send("ready")
    with suppress(EOFError):  # the test has ended
        asyncio.run(_follow(pipe, scripts))


async def _follow(pipe: Connection, scripts: Mapping[str, Script]) -> None:
    while True:
        order = await asyncio.to_thread(pipe.recv)
        attacker = _Attacker(order, [scripts[name] for name in order.scripts])
        attack = asyncio.create_task(attacker.attack())
        await asyncio.to_thread(pipe.recv)
        while not attack.done():
            attack.cancel()  # again, because a call of gRPC may lose it, and then waits for ever
            await asyncio.wait((attack,), timeout=_CANCELLED_AGAIN_S)
        pipe.send(attacker.sent_bytes)


class _Attacker:
    """Sends one script after another, each in a session of its own, until it is cancelled."""

    def __init__(self, order: Order, scripts: Sequence[Script]) -> None:
        self._order = order
        self._scripts = scripts
        self._began_s = time.monotonic()
        self.sent_bytes = 0

    async def attack(self) -> None:
        async with await self._connected() as channel:
            for script in cycle(self._scripts):
                if script.method:
                    for raw, _ in script.messages:
                        with suppress(grpc.RpcError, asyncio.InvalidStateError):
                            await self._begin(self._call(channel, script.method), raw)
                else:
                    with suppress(grpc.RpcError, asyncio.InvalidStateError):
                        await self._play(_Stream(self._call(channel, "Session")), script)

    async def _connected(self) -> grpc.aio.Channel:
        """Returns a channel to the wanted front end. The system chooses one for each connection, so many are tried."""
        while True:
            channel = grpc.aio.insecure_channel(self._order.target, options=_OPTIONS)
            if not self._order.front_end:
                return channel
            await channel.channel_ready()
            if are_connected(os.getpid(), self._order.front_end):
                return channel
            await channel.close()

    def _call(self, channel: grpc.aio.Channel, name: str) -> Any:
        method: Any = channel.stream_stream(SERVICE + name)
        return method(metadata=(("authorization", f"Bearer {self._order.token}"),))

    async def _begin(self, call: Any, raw: bytes) -> None:
        await call.write(raw)
        await self._count(raw)
        await call.done_writing()
        await call.read()

    async def _play(self, stream: _Stream, script: Script) -> None:
        reading = asyncio.create_task(stream.read())
        try:
            await stream.call.write(hello().SerializeToString())
            await stream.has_opened.wait()
            for raw, segments in script.messages:
                await stream.call.write(raw)
                await self._count(raw)
                await stream.completes(segments)
            await stream.call.write(pb.ClientFrame(goodbye=pb.Goodbye()).SerializeToString())
            await stream.call.done_writing()
            await reading
        finally:
            reading.cancel()
            stream.call.cancel()
            await asyncio.wait((reading,))
            if not stream.has_welcome:
                await asyncio.sleep(_REFUSED_PAUSE_S)

    async def _count(self, raw: bytes) -> None:
        self.sent_bytes += len(raw)
        due_s = self._began_s + self.sent_bytes / self._order.most_bytes_a_s
        await asyncio.sleep(max(due_s - time.monotonic(), 0))


class _Stream:
    """One session's stream, and what its server has told."""

    def __init__(self, call: Any) -> None:
        self.call = call
        self.has_opened = asyncio.Event()  # or has been refused
        self.has_welcome = False
        self._has_news = asyncio.Event()
        self._sent_segments = self._completed_segments = 0
        self._is_over = False

    async def read(self) -> None:
        """Reads what the server sends, to its end."""
        try:
            while isinstance(raw := await self.call.read(), bytes):
                self._take(pb.ServerFrame.FromString(raw))
        except grpc.RpcError:
            pass
        finally:
            self._is_over = True
            self.has_opened.set()
            self._has_news.set()

    def _take(self, frame: pb.ServerFrame) -> None:
        if frame.HasField("welcome"):
            self.has_welcome = True
            self.has_opened.set()
        if frame.HasField("completed"):
            self._completed_segments = frame.completed.segments
            self._has_news.set()

    async def completes(self, segments: int) -> None:
        """Waits until all segments are completed that have been sent, these included: else they would exceed credit."""
        self._sent_segments += segments
        while segments and self._completed_segments < self._sent_segments and not self._is_over:
            self._has_news.clear()
            await self._has_news.wait()
