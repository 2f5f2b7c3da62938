"""Sessions behind a TCP balancer that gives each new connection to the next of two servers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from itertools import cycle

import numpy as np
import numpy.typing as npt
import pytest

import fusewire as fw
from fusewire.testing import serve_subprocess
from fusewire_protos.address import Address, read_address
from tests.patience import HANGS_S

DEADLINE_S = HANGS_S
LARGE = 1 << 20  # bytes: carried beside the stream
HUGE = 24 << 20  # bytes: more than a client queues for its uploads


class Balancer:
    """Joins each connection that comes to `target` with the next server. Looks at no byte."""

    def __init__(self, servers: list[Address]) -> None:
        self.target = ""
        self.reached: list[Address] = []  # by which connection, in order of their coming
        self._next = cycle(servers)
        self._loop = asyncio.new_event_loop()
        self._writers: list[tuple[asyncio.StreamWriter, asyncio.StreamWriter]] = []  # to the client, to the server
        self._have_ended: list[threading.Event] = []
        self._thread = threading.Thread(target=self._loop.run_forever, name="balancer")

    def start(self) -> None:
        self._thread.start()
        listening = asyncio.run_coroutine_threadsafe(asyncio.start_server(self._join, "127.0.0.1", 0), self._loop)
        self._listening = listening.result(DEADLINE_S)
        self.target = f"127.0.0.1:{self._listening.sockets[0].getsockname()[1]}"

    def stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._end(), self._loop).result(DEADLINE_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(DEADLINE_S)
        self._loop.close()

    def cut(self, connection: int) -> None:
        """Ends a connection, and returns when the client has closed its end too."""
        self._loop.call_soon_threadsafe(self._cut, *self._writers[connection])
        assert self._have_ended[connection].wait(DEADLINE_S)

    @staticmethod
    def _cut(to_client: asyncio.StreamWriter, to_server: asyncio.StreamWriter) -> None:
        """Ends what goes to the client. What the server still sends is not carried."""
        to_client.write_eof()
        to_server.close()

    async def _join(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        server = next(self._next)
        self.reached.append(server)
        server_reader, server_writer = await asyncio.open_connection(server.host, server.port)
        self._writers.append((writer, server_writer))
        has_ended = threading.Event()
        self._have_ended.append(has_ended)
        await asyncio.gather(_copy(reader, server_writer), _copy(server_reader, writer))
        has_ended.set()

    async def _end(self) -> None:
        self._listening.close()
        for pair in self._writers:
            for writer in pair:
                writer.close()
        await asyncio.gather(*(asyncio.all_tasks() - {asyncio.current_task()}), return_exceptions=True)


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()
    writer.close()


@contextmanager
def balanced(order: list[int]) -> Iterator[Balancer]:
    """Two servers, and a balancer that takes them in this order, again and again."""
    with ExitStack() as stack:
        servers = [read_address(stack.enter_context(serve_subprocess("cpu")).grpc) for _ in range(2)]
        balancer = Balancer([servers[which] for which in order])
        balancer.start()
        stack.callback(balancer.stop)
        yield balancer


def values_of(seed: int, size_bytes: int) -> npt.NDArray[np.float32]:
    return np.random.default_rng(seed).standard_normal(size_bytes // 4, np.float32)


def check_values(session: fw.Session, seed: int, sizes_bytes: list[int]) -> None:
    """Large values go up, are computed with and come down as they must."""
    sent = [values_of(seed + index, size_bytes) for index, size_bytes in enumerate(sizes_bytes)]
    arrays = [session.array(each) for each in sent]
    for array, each in zip(arrays, sent, strict=True):
        np.testing.assert_array_equal((array + array).numpy(timeout=DEADLINE_S), each + each)


@pytest.fixture(scope="module")
def alternating() -> Iterator[Balancer]:
    with balanced([0, 1]) as balancer:
        yield balancer


def test_large_values_reach_the_server_of_their_session(alternating: Balancer) -> None:
    before = len(alternating.reached)
    with fw.connect(alternating.target, timeout=DEADLINE_S, local=False) as session:
        check_values(session, 1, [LARGE, HUGE, LARGE])
        check_values(session, 9, [LARGE])
    stream, second = alternating.reached[before:]
    assert stream != second


def test_a_download_alone_finds_the_server_of_its_session(alternating: Balancer) -> None:
    before = len(alternating.reached)
    with fw.connect(alternating.target, timeout=DEADLINE_S, local=False) as session:
        computed = (session.array(np.arange(1000, dtype=np.float32)).reshape(1000, 1) + fw.zeros(1000)).numpy(
            timeout=DEADLINE_S
        )
    np.testing.assert_array_equal(computed, np.arange(1000, dtype=np.float32).reshape(1000, 1) + np.zeros(1000, "f"))
    assert len(alternating.reached) - before == 2


def test_sessions_that_connect_at_the_same_time_keep_their_values_apart(alternating: Balancer) -> None:
    def work(seed: int) -> None:
        with fw.connect(alternating.target, timeout=DEADLINE_S, local=False) as session:
            check_values(session, seed, [LARGE] * 4)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(work, range(100, 500, 100), timeout=2 * DEADLINE_S))


def test_a_second_connection_that_is_made_anew_may_reach_another_server() -> None:
    with balanced([0, 0, 1]) as balancer, fw.connect(balancer.target, timeout=DEADLINE_S, local=False) as session:
        check_values(session, 1, [LARGE])
        assert balancer.reached[0] == balancer.reached[1]
        balancer.cut(1)
        check_values(session, 2, [HUGE, LARGE])
        assert balancer.reached[0] != balancer.reached[2]
