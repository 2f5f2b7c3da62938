"""Few bytes from a client take little host memory of the server, and all of it has an owner."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import grpc.aio
import numpy as np
import psutil
import pytest

import fusewire as fw
from fusewire.testing import ServerProcess
from fusewire_protos import frames
from fusewire_protos.frames import MAX_STORED, Cancel, Entry, Fetch, Free, NewProgram, Segment
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.v1 import fusewire_pb2 as pb
from tests.bounds import Bounded
from tests.faults.server import Inspector, serving
from tests.segments import loop_of
from tests.server.parts import chain, new, segment, upload_beside
from tests.server.wire import Peer, case_of
from tests.server.world import NEGATE

pytestmark = pytest.mark.faults

MIB = 1 << 20
A_BYTE, BASIS_BYTES = 64, MIB  # host memory that a byte from a client, and a client, may take
A_HANDLE, BLOCK_BYTES = 100, 64  # host memory of a live handle, and the memory of the smallest value
UNEXPLAINED_BYTES = 64 * MIB
GROWTH = "growth of the server's memory"
DEADLINE_S = 60.0
SESSIONS = 6
UNKNOWN = 999
LAST = 10**6  # the number of the fetch whose answer tells that everything before has been applied
LOOPS = 1000
WIDE = 8
WIDE_OPS = 4096
DEVICE_BYTES, UPLOAD = 160 * MIB, Spec(dtypes.uint8, (64 * MIB,))
HOST_BYTES = 32 * MIB


@dataclass
class Seen:
    """What the server's memory has grown by."""

    resident_bytes: int = 0
    unaccounted_bytes: int = 0

    def check(self, bounded: Bounded, most_bytes: int) -> None:
        bounded(GROWTH, self.resident_bytes, most_bytes, "B")
        bounded("growth of what has no known owner", self.unaccounted_bytes, UNEXPLAINED_BYTES, "B")


@contextmanager
def growth(server: ServerProcess, inspector: Inspector) -> Iterator[Seen]:
    """Looks at the server's memory before and after the `with` body."""
    process, seen = psutil.Process(server.pid), Seen()

    def unaccounted() -> int:
        found: int = inspector.ask("/v1/stats")["host_memory"]["unaccounted"]
        return found

    resident_bytes, unaccounted_bytes = process.memory_info().rss, unaccounted()
    yield seen
    seen.resident_bytes = process.memory_info().rss - resident_bytes
    seen.unaccounted_bytes = unaccounted() - unaccounted_bytes


@asynccontextmanager
async def peers(server: ServerProcess, token: str, count: int) -> AsyncIterator[list[Peer]]:
    """Opens sessions, each on a connection of its own."""
    options = (("grpc.use_local_subchannel_pool", 1),)
    async with AsyncExitStack() as stack:
        opened = []
        for _ in range(count):
            channel = await stack.enter_async_context(grpc.aio.insecure_channel(server.grpc, options=options))
            peer = Peer(channel, (("authorization", f"Bearer {token}"),))
            await peer.open()
            opened.append(peer)
        yield opened


def size_of(*entries: Entry) -> int:
    return len(frames.encode_entries(entries))


def failing_loops() -> list[Entry]:
    """Loops of as many kept results as there may be, of an input that nobody has made."""
    return [
        loop_of(Segment(NEGATE, MAX_STORED * number, (UNKNOWN,), (), (), ()), MAX_STORED, 1, (MAX_STORED,))
        for number in range(1, LOOPS + 1)
    ]


def failing_segments() -> list[Entry]:
    """Segments of thousands of results whose input nobody has made."""
    return [segment(WIDE, WIDE_OPS * number, UNKNOWN) for number in range(1, LOOPS + 1)]


def chains_of_failures() -> list[Entry]:
    """Segments of which each takes a result of the one before, and fails with it."""
    return [segment(WIDE, WIDE_OPS * number, WIDE_OPS * (number - 1)) for number in range(1, LOOPS + 1)]


def freed_failures() -> list[Entry]:
    """Handles of failed results, of which all but a few are freed one by one."""
    loops = failing_loops()[:30]
    freed = [Free(tuple(range(MAX_STORED * number, MAX_STORED * (number + 1) - 1))) for number in range(1, 31)]
    return [*loops, *freed]


def failing_fetches() -> list[Entry]:
    return [Fetch(number, UNKNOWN) for number in range(2, 5000)]


@pytest.mark.parametrize(
    "attack", [failing_loops, failing_segments, chains_of_failures, freed_failures, failing_fetches]
)
def test_what_fails_takes_little_for_each_byte_that_came(
    attack: Callable[[], list[Entry]], attacking: str, inspecting: str, token_file: Path, bounded: Bounded
) -> None:
    entries = attack()

    async def test(server: ServerProcess, seen: Callable[[], Any]) -> int:
        async with peers(server, attacking, SESSIONS) as opened:
            wide = new(WIDE, chain(("negative",) * WIDE_OPS, range(WIDE_OPS)))
            for peer in opened:
                await peer.send(programs=[wide])
                await peer.works(1)
            with seen():
                for peer in opened:
                    await peer.send(*entries)
                    await peer.send(Fetch(LAST, 10))
                    result = await asyncio.wait_for(peer.result(LAST), DEADLINE_S)
                    assert not result.HasField("failure"), result
        return SESSIONS * size_of(*entries)

    sent_bytes, seen = run(test, token_file, inspecting)
    seen.check(bounded, A_BYTE * sent_bytes + SESSIONS * BASIS_BYTES)


async def fill(peer: Peer, loops: int) -> None:
    """Makes loops of as many kept results as there may be."""
    for number in range(1, loops + 1):
        first = Segment(NEGATE, MAX_STORED * number, (10,), (), (), ())
        await peer.send(loop_of(first, MAX_STORED, 1, (MAX_STORED,)), Fetch(number, MAX_STORED * (number + 1) - 1))
        await peer.result(number)
        # At the limit, a further value comes to the host only once the client has those before.
        await peer.call.write(pb.ClientFrame(acknowledged=peer.received))


def test_a_live_handle_takes_little_beside_its_memory(
    attacking: str, inspecting: str, token_file: Path, bounded: Bounded
) -> None:
    async def test(server: ServerProcess, seen: Callable[[], Any]) -> int:
        async with peers(server, attacking, SESSIONS) as opened:
            with seen():
                for peer in opened:
                    await asyncio.wait_for(fill(peer, 100), DEADLINE_S)
            assert not opened[-1].results[100].HasField("failure")
        return SESSIONS * 100 * MAX_STORED

    handles, seen = run(test, token_file, inspecting)
    seen.check(bounded, (A_HANDLE + BLOCK_BYTES) * handles + SESSIONS * BASIS_BYTES)


def programs_of_many_ops(number: int) -> NewProgram:
    return new(number, chain(("exp", "negative") * 1000, [number]))


def programs_of_many_results(number: int) -> NewProgram:
    return new(number, chain(("negative",) * 1000, range(900 - number, 1000)))


@pytest.mark.parametrize("program", [programs_of_many_ops, programs_of_many_results])
def test_programs_and_their_plans_are_counted(
    program: Callable[[int], NewProgram], attacking: str, inspecting: str, token_file: Path, bounded: Bounded
) -> None:
    programs = [program(100 + number) for number in range(100)]

    async def test(server: ServerProcess, seen: Callable[[], Any]) -> int:
        inspector = Inspector(server, inspecting)
        async with peers(server, attacking, 1) as (peer,):
            with seen():
                for number, each in enumerate(programs):
                    base = 10**6 * (number + 1)
                    await peer.send(segment(each.number, base, 10), Cancel(), programs=[each])
                await peer.send(Fetch(LAST, 10))
                await asyncio.wait_for(peer.result(LAST), DEADLINE_S)
            counted = await asyncio.to_thread(inspector.ask, "/v1/stats")
            (tenant,) = (await asyncio.to_thread(inspector.ask, "/v1/tenants"))["tenants"]
            assert tenant["host_bytes"] >= counted["host_memory"]["programs"] / 2
        return sum(len(each.raw) for each in programs)

    sent_bytes, seen = run(test, token_file, inspecting)
    seen.check(bounded, A_BYTE * sent_bytes + BASIS_BYTES + UNEXPLAINED_BYTES)


def test_live_handles_stay_within_the_limit_of_their_tenant(
    attacking: str, inspecting: str, token_file: Path, bounded: Bounded
) -> None:
    async def test(server: ServerProcess, seen: Callable[[], Any]) -> int:
        async with peers(server, attacking, SESSIONS) as opened:
            with seen():
                for peer in opened:
                    await asyncio.wait_for(fill(peer, 200), DEADLINE_S)
            last = opened[-1].results[200]
            assert case_of(last.failure.code) == "quota_host_bytes", last
            assert f"limits.tenant_host_bytes = {HOST_BYTES}" in last.failure.text
        return 0

    _, seen = run(test, token_file, inspecting, {"FUSEWIRE_LIMITS__TENANT_HOST_BYTES": str(HOST_BYTES)})
    bounded(GROWTH, seen.resident_bytes, HOST_BYTES + SESSIONS * BASIS_BYTES + UNEXPLAINED_BYTES, "B")


def test_uploads_that_have_come_and_values_fit_in_the_devices_memory(
    attacking: str, inspecting: str, token_file: Path, bounded: Bounded
) -> None:
    sent: list[int] = []
    both_sent = asyncio.Event()

    async def all_but_the_end(chunk: bytes) -> AsyncIterator[pb.Chunk]:
        for offset in range(0, UPLOAD.size_bytes - MIB, MIB):
            yield pb.Chunk(offset=offset, data=chunk)
        sent.append(UPLOAD.size_bytes)
        if len(sent) == 2:
            both_sent.set()
        await asyncio.Event().wait()

    async def test(server: ServerProcess, seen: Callable[[], Any]) -> int:
        inspector = Inspector(server, inspecting)
        async with peers(server, attacking, SESSIONS) as opened:
            with seen():
                calls = []
                for peer in opened:
                    await peer.send(upload_beside(20, UPLOAD))
                    calls.append(peer.upload_chunks(20, all_but_the_end(bytes(MIB))))
                async with asyncio.timeout(DEADLINE_S):
                    await both_sent.wait()
                stats = await asyncio.to_thread(inspector.ask, "/v1/stats")
                assert stats["session_bytes"]["uploading"] == 2 * UPLOAD.size_bytes
            for call in calls:
                call.cancel()
        return 0

    _, seen = run(test, token_file, inspecting, {"FUSEWIRE_DEVICE__MEMORY_BYTES": str(DEVICE_BYTES)})
    seen.check(bounded, DEVICE_BYTES + UNEXPLAINED_BYTES)


def test_a_tenant_that_takes_all_memory_leaves_room_for_another(token: str, attacking: str, token_file: Path) -> None:
    environment = {"FUSEWIRE_DEVICE__MEMORY_BYTES": str(DEVICE_BYTES)}
    with serving(token_file, environment=environment) as server, fw.connect(server.grpc, token=attacking) as hog:
        held = [hog.array(np.ones(MIB // 4, np.float32)) for _ in range(DEVICE_BYTES // MIB)]
        with pytest.raises(fw.OutOfMemory, match=r"limits.tenant_reserve = 0.125"):
            (held[0] + held[-1]).numpy(timeout=DEADLINE_S)
        with fw.connect(server.grpc, token=token) as other:
            assert float(other.array(np.ones((), np.float32)) + 1.0) == 2.0


def run(
    test: Callable[[ServerProcess, Callable[[], Any]], Awaitable[int]],
    token_file: Path,
    inspecting: str,
    environment: dict[str, str] | None = None,
) -> tuple[int, Seen]:
    """Runs an attack on a server. Returns what the attack returns, and the growth while it looked."""
    found: list[Seen] = []
    with serving(token_file, environment=environment) as server:

        @contextmanager
        def looking() -> Iterator[None]:
            with growth(server, Inspector(server, inspecting)) as seen:
                found.append(seen)
                yield

        async def whole() -> int:
            return await test(server, looking)

        sent_bytes = asyncio.run(whole())
    return sent_bytes, found[0]
