"""The service over real gRPC: every case of the error table that a client can cause, bulk transfer, tokens.

A second session works beside each fault and must notice nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import grpc
import msgpack
import numpy as np
import pytest
from google.protobuf.descriptor import MethodDescriptor
from grpc_health.v1 import health, health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2, reflection_pb2_grpc

from fusewire_kernels.devices.base import Device
from fusewire_kernels.devices.cpu import CpuDevice
from fusewire_kernels.devices.null import NullDevice
from fusewire_protos import catalogue, dtypes, frames
from fusewire_protos.errors import BY_NAME, CASES, Reach
from fusewire_protos.frames import INLINE_BYTES, PROTOCOL_VERSION, Cancel, Entry, Fetch, Free, NewProgram, Segment
from fusewire_protos.shapes import MAX_DIM, Spec
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server import config, rpc
from fusewire_server.app import drain, start_grpc
from fusewire_server.auth import Authenticator, Scope, mint, revoke
from fusewire_server.config import Config
from fusewire_server.engine import Engine
from fusewire_server.inspect.api import create_app
from fusewire_server.programs import ProgramEntry
from fusewire_server.publisher import Publisher
from fusewire_server.session import SessionState
from fusewire_server.settings import KIB, MIB, Address
from tests.server.inspect.examples import Client, RememberingControl
from tests.server.parts import SIZE_BYTES, chain, new, segment, upload, upload_beside

if TYPE_CHECKING:
    Stream = grpc.aio.StreamStreamCall[pb.ClientFrame, pb.ServerFrame]

DEADLINE_S = 10.0
SERVICE = "/fusewire.v1.Fusewire/"
Message = TypeVar("Message", bytes, pb.Chunk)
NEGATE, BAD = 1, 9
DATA = np.arange(4, dtype=np.float32).tobytes()
LARGE = Spec(dtypes.uint8, (3 * INLINE_BYTES + 5,))
LARGE_BYTES = bytes(range(256)) * (LARGE.size_bytes // 256) + bytes(LARGE.size_bytes % 256)


def code(op: str) -> int:
    return catalogue.BY_NAME[op].code


@dataclass
class Peer:
    """One client by hand. `metadata` goes with every call."""

    channel: grpc.aio.Channel
    metadata: tuple[tuple[str, str], ...] = ()
    number: int = 0
    received: int = 0
    session_id: bytes = b""
    farewell: str = ""  # what the server said when it ended the session
    welcome: pb.Welcome = field(default_factory=pb.Welcome)
    results: dict[int, pb.Result] = field(default_factory=dict)

    def connect(self) -> Stream:
        method: Any = self.channel.stream_stream(
            SERVICE + "Session",
            request_serializer=pb.ClientFrame.SerializeToString,
            response_deserializer=pb.ServerFrame.FromString,
        )
        call: Stream = method(None, metadata=self.metadata)
        self.call = call
        return call

    async def open(self, **resumed: Any) -> None:
        """Connects, and numbers a program and uploads 10 if the session is new."""
        await self.connect().write(hello(acknowledged=self.received, **resumed))
        self.welcome = (await self.frame()).welcome
        self.session_id = self.welcome.session_id
        if not resumed:
            await self.send(upload(10), programs=[new(NEGATE, chain())])

    async def resume(self) -> None:
        await self.open(session_id=self.session_id, server_instance=self.welcome.server_instance)

    async def send(
        self, *entries: Entry, programs: Sequence[NewProgram] = (), tensors: Sequence[bytes] = (DATA,), skip: int = 0
    ) -> None:
        self.number += 1 + skip
        numbered = frames.encode_programs(programs) if programs else b""
        bindings = frames.encode_entries(entries)
        await self.call.write(pb.ClientFrame(number=self.number, programs=numbered, bindings=bindings, tensors=tensors))

    async def frame(self) -> pb.ServerFrame:
        frame = await asyncio.wait_for(self.call.read(), DEADLINE_S)
        assert isinstance(frame, pb.ServerFrame), await self.call.code()
        return frame

    async def next(self) -> pb.ServerFrame:
        """The next frame; its results are kept, its number must be the next."""
        frame = await self.frame()
        if frame.number:
            assert frame.number == self.received + 1
            self.received = frame.number
        self.results.update((result.fetch, result) for result in frame.results)
        return frame

    async def result(self, fetch: int) -> pb.Result:
        while fetch not in self.results:
            await self.next()
        return self.results[fetch]

    async def failure(self, fetch: int) -> str:
        result = await self.result(fetch)
        assert result.WhichOneof("answer") == "failure", result
        return case_of(result.failure.code)

    async def goodbye(self) -> str:
        """The case that ends the session."""
        while not (frame := await self.next()).HasField("goodbye"):
            pass
        assert await asyncio.wait_for(self.call.code(), DEADLINE_S) is grpc.StatusCode.OK
        self.farewell = frame.goodbye.text
        return case_of(frame.goodbye.code)

    async def works(self, base: int) -> None:
        """A segment goes through."""
        await self.send(segment(NEGATE, base, 10), Fetch(base, base))
        assert (await self.result(base)).inline == (-np.frombuffer(DATA, np.float32)).tobytes()

    # ---- bulk ----

    def upload(self, handle: int, data: Sequence[bytes] | AsyncIterator[bytes], session_id: bytes | None = None) -> Any:
        """A call that brings these bytes, each piece a chunk in its place."""
        return self.upload_chunks(handle, in_order(data), session_id)

    def upload_chunks(self, handle: int, chunks: AsyncIterator[pb.Chunk], session_id: bytes | None = None) -> Any:
        method = self.channel.stream_unary(
            SERVICE + "Upload",
            request_serializer=pb.Chunk.SerializeToString,
            response_deserializer=pb.UploadReceipt.FromString,
        )
        session = (session_id or self.session_id).hex()
        addressed = (*self.metadata, ("fusewire-session", session), ("fusewire-handle", str(handle)))
        return method(chunks, metadata=addressed)

    async def download(self, fetch: int) -> bytes:
        async with asyncio.timeout(DEADLINE_S):
            return await all_of(self.unread_download(fetch))

    def unread_download(self, fetch: int) -> Any:
        """A call that brings an answer to whoever reads it."""
        method = self.channel.unary_stream(
            SERVICE + "Download",
            request_serializer=pb.DownloadRequest.SerializeToString,
            response_deserializer=pb.Chunk.FromString,
        )
        return method(pb.DownloadRequest(session_id=self.session_id, fetch=fetch), metadata=self.metadata)


def hello(versions: Sequence[int] = (PROTOCOL_VERSION,), acknowledged: int = 0, **fields: Any) -> pb.ClientFrame:
    return pb.ClientFrame(hello=pb.Hello(versions=versions, client="test", **fields), acknowledged=acknowledged)


def case_of(number: int) -> str:
    return next(case.name for case in CASES if case.code == number)


async def stream(items: Sequence[Message]) -> AsyncIterator[Message]:
    for item in items:
        yield item


async def in_order(data: Sequence[bytes] | AsyncIterator[bytes]) -> AsyncIterator[pb.Chunk]:
    """Each piece as a chunk in its place."""
    offset = 0
    async for piece in data if isinstance(data, AsyncIterator) else stream(data):
        yield pb.Chunk(offset=offset, data=piece)
        offset += len(piece)


async def all_of(download: Any) -> bytes:
    """The value that a download brings, each chunk in its place."""
    value = b""
    async for chunk in download:
        assert chunk.offset == len(value)
        value += chunk.data
    return value


async def status_of(call: Awaitable[Any]) -> tuple[grpc.StatusCode, str]:
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await asyncio.wait_for(call, DEADLINE_S)
    return caught.value.code(), caught.value.details() or ""


@dataclass
class Server:
    engine: Engine
    device: Device
    channel: grpc.aio.Channel
    port: int
    status: health.aio.HealthServicer

    async def peer(self, *metadata: tuple[str, str]) -> Peer:
        peer = Peer(self.channel, metadata)
        await peer.open()
        return peer


@asynccontextmanager
async def server(
    tokens: Path | None = None,
    certificate: tuple[Path, Path] | tuple[None, None] = (None, None),
    memory_bytes: int = 1 << 40,
    device: Device | None = None,
    **limits: Any,
) -> AsyncIterator[Server]:
    """A server on a free port; in the end all sessions end, and the device must hold nothing."""
    cert, key = certificate
    listen = config.Listen(grpc=Address("127.0.0.1", 0), token_file=tokens, tls_cert=cert, tls_key=key)
    device = device or NullDevice(memory_bytes=memory_bytes)
    engine = Engine(Config(listen=listen, limits=config.Limits(**limits)), device, None)
    engine.start()
    grpc_server, port, status = await start_grpc(engine.config, engine, Authenticator(tokens) if tokens else None)
    async with grpc.aio.insecure_channel(
        f"127.0.0.1:{port}", options=[("grpc.use_local_subchannel_pool", 1)]
    ) as channel:
        try:
            yield Server(engine, device, channel, port, status)
        finally:
            await grpc_server.stop(None)
            for session in list(engine.sessions.values()):
                engine.end(session)
            await asyncio.to_thread(engine.stop, DEADLINE_S)
    assert (engine.memory.live_bytes, engine.uploads.sessions) == (0, 0)


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(DEADLINE_S):
        while not condition():  # noqa: ASYNC110 - what is waited for has no event, and zero is no sleep
            await asyncio.sleep(0)


def run(test: Coroutine[Any, Any, None]) -> None:
    asyncio.run(test)


# ---- a session ----


def test_a_session_is_welcomed_with_its_limits_and_works() -> None:
    async def test() -> None:
        async with server(credit_ops=77, handles=88) as here:
            peer = await here.peer()
            assert peer.welcome.version == PROTOCOL_VERSION
            assert (peer.welcome.credit.ops, peer.welcome.limits.handles, peer.welcome.epoch) == (77, 88, 1)
            assert (len(peer.welcome.session_id), len(peer.welcome.server_instance)) == (16, 16)
            await peer.works(100)

    run(test())


def test_others_have_turns_while_the_new_programs_of_a_frame_are_read() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            turns = count()

            async def take_turns() -> None:
                while True:
                    await asyncio.sleep(0)
                    next(turns)

            other = asyncio.create_task(take_turns())
            read_at: dict[bytes, int] = {}
            intern = here.engine.programs.intern

            def watched(raw: bytes, *, is_fragment: bool) -> ProgramEntry:
                read_at.setdefault(raw, next(turns))
                return intern(raw, is_fragment=is_fragment)

            here.engine.programs.intern = watched  # type: ignore[method-assign]
            programs = [new(100 + length, chain(["negative"] * length)) for length in range(2, 6)]
            await peer.send(segment(102, 100, 10), Fetch(1, 101), programs=programs)
            assert (await peer.result(1)).inline
            other.cancel()
            assert min(later - sooner for sooner, later in pairwise(read_at[one.raw] for one in programs)) > 1

    run(test())


def test_an_orderly_goodbye_ends_the_session() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.call.write(pb.ClientFrame(goodbye=pb.Goodbye()))
            while isinstance(await asyncio.wait_for(peer.call.read(), DEADLINE_S), pb.ServerFrame):
                pass
            assert await asyncio.wait_for(peer.call.code(), DEADLINE_S) is grpc.StatusCode.OK
            assert not here.engine.sessions

    run(test())


def test_a_broken_stream_leaves_a_session_that_can_be_resumed() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.works(100)
            session = here.engine.sessions[peer.session_id]
            peer.call.cancel()
            await until(lambda: session.state is SessionState.DETACHED)
            await peer.resume()
            assert peer.welcome.epoch == 2
            await peer.works(200)

    run(test())


def test_what_was_answered_and_not_seen_is_answered_again_to_the_next_stream() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.works(100)
            session = here.engine.sessions[peer.session_id]
            await peer.send(Fetch(1, 100))
            await until(lambda: len(session.unacknowledged) == 2)
            await peer.resume()
            assert (await peer.result(1)).WhichOneof("answer") == "inline"
            await peer.works(200)
            assert session.state is SessionState.OPEN

    run(test())


def test_a_stream_that_was_resumed_over_ends() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            first = peer.call
            await peer.resume()
            async with asyncio.timeout(DEADLINE_S):
                while isinstance(await first.read(), pb.ServerFrame):
                    pass
            await peer.works(100)

    run(test())


# ---- every case that a client can cause ----


async def garbage(peer: Peer, here: Server) -> None:
    raw: Any = here.channel.stream_stream(SERVICE + "Session", None, pb.ServerFrame.FromString)
    peer.call = raw(None, metadata=peer.metadata)
    peer.received = 0
    for frame in (hello().SerializeToString(), b"\xff\xff\xff"):
        await peer.call.write(frame)  # type: ignore[arg-type]  # without a serialiser bytes go as they are


async def first_frame(peer: Peer, frame: pb.ClientFrame) -> None:
    peer.received = 0
    await peer.connect().write(frame)


async def drained(peer: Peer, here: Server) -> None:
    here.engine.is_draining = True
    await first_frame(peer, hello())


ENDINGS: dict[str, Callable[[Peer, Server], Awaitable[None]]] = {
    "undecodable_frame": garbage,
    "oversized_frame": lambda peer, here: peer.send(tensors=[bytes(2 * KIB + 64 * KIB)]),
    "frame_gap": lambda peer, here: peer.send(skip=1),
    "wrong_version": lambda peer, here: first_frame(peer, hello(versions=(99,))),
    "out_of_turn": lambda peer, here: first_frame(peer, pb.ClientFrame(number=1)),
    "reused_handle": lambda peer, here: peer.send(upload(10)),
    "unknown_program": lambda peer, here: peer.send(segment(99, 100, 10)),
    "credit_overdrawn": lambda peer, here: peer.send(*[segment(NEGATE, 100 + index, 10) for index in range(4)]),
    "session_lost": lambda peer, here: first_frame(peer, hello(session_id=bytes(16), server_instance=bytes(16))),
    "slow_reader": lambda peer, here: peer.send(*[Fetch(fetch, 999) for fetch in range(9)]),
    "draining": drained,
    "too_many_sessions": lambda peer, here: first_frame(peer, hello()),
}
SMALL: dict[str, Any] = {
    "message_bytes": 64 * KIB,
    "chunk_bytes": KIB,
    "program_bytes": KIB,
    "handles": 8,
    "sessions": 3,
    "credit_segments": 3,
}


@pytest.mark.parametrize("case", list(ENDINGS))
def test_a_protocol_case_ends_its_session_with_a_reason_and_others_notice_nothing(case: str) -> None:
    async def test() -> None:
        async with server(**(SMALL | {"sessions": 2 if case == "too_many_sessions" else 3})) as here:
            neighbour, peer = await here.peer(), await here.peer()
            await ENDINGS[case](peer, here)
            assert await peer.goodbye() == case
            await neighbour.works(100)

    run(test())


def program(ops: list[Any], inputs: Sequence[Any] = ((6, 4),)) -> NewProgram:
    return NewProgram(BAD, False, msgpack.packb([list(inputs), [], ops, [0]]))


def using(bad: NewProgram) -> tuple[tuple[Entry, ...], list[NewProgram]]:
    return (segment(BAD, 100, 10), Fetch(1, 100)), [bad]


FAILURES: dict[str, tuple[tuple[Entry, ...], list[NewProgram]]] = {
    "unknown_op": using(program([[65535, [0]]])),
    "bad_arity": using(program([[code("add"), [0]]])),
    "bad_attribute": using(program([[code("reshape"), [0], [-1]]])),
    "bad_operand": using(program([[code("negative"), [7]]])),
    "bad_shape": using(program([[code("reshape"), [0], [3]]])),
    "bad_dtype": using(program([[code("negative"), [0]]], [(99, 4)])),
    "unknown_handle": ((segment(NEGATE, 100, 999), Fetch(1, 100)), []),
    "bad_binding": ((Segment(NEGATE, 100, (10,), (1.0,), (), ()), Fetch(1, 100)), []),
    "upload_failed": ((upload(20, Spec(dtypes.uint8, (3,))), Fetch(1, 20)), []),
    "chunk_order": ((upload_beside(20), Fetch(1, 20)), []),
    "quota_live_bytes": ((*[segment(NEGATE, 100 + index, 10) for index in range(3)], Fetch(1, 102)), []),
    "quota_handles": ((*[upload(20 + index, Spec(dtypes.uint8, (0,))) for index in range(9)], Fetch(1, 28)), []),
    "quota_array_bytes": ((upload_beside(20, LARGE), Fetch(1, 20)), []),
    "quota_program": using(program([[code("negative"), [0]]] * 9)),
    "out_of_memory": ((segment(NEGATE, 100, 10), Fetch(1, 100)), []),
    "cancelled": ((upload_beside(20), segment(NEGATE, 100, 20), Cancel(), Fetch(1, 100)), []),
}
# What a call then brings for value 20.
BESIDE: dict[str, Sequence[pb.Chunk]] = {"chunk_order": [pb.Chunk(offset=1, data=DATA)]}
TIGHT = SMALL | {"array_bytes": 2 * SIZE_BYTES, "live_bytes": 3 * SIZE_BYTES, "program_ops": 8}


@pytest.mark.parametrize("case", list(FAILURES))
def test_an_operation_case_fails_its_value_and_everything_else_goes_on(case: str) -> None:
    async def test() -> None:
        memory_bytes = 2 * SIZE_BYTES if case == "out_of_memory" else 1 << 40
        async with server(memory_bytes=memory_bytes, **(TIGHT | {"program_bytes": KIB})) as here:
            neighbour, peer = await here.peer(), await here.peer()
            await cause(case, peer, here)
            await peer.send(Free((20, 100, 101, 102, *range(21, 29))), Fetch(2, 10))
            assert (await peer.result(2)).inline == DATA
            if case != "out_of_memory":
                await neighbour.works(100)
                await peer.works(500)

    run(test())


FAULTS = [*ENDINGS, *(case for case in FAILURES if case != "out_of_memory")]


@dataclass
class Neighbour:
    """A client that computes all the while, and compares every byte."""

    peer: Peer
    rounds: int = 0
    is_over: bool = False

    async def work(self) -> None:
        while not self.is_over:
            self.rounds += 1
            base = 1000 + 2 * self.rounds
            await self.peer.send(segment(NEGATE, base, 10), segment(NEGATE, base + 1, base), Fetch(base, base + 1))
            assert (await self.peer.result(base)).inline == DATA
            await self.peer.send(Free((base, base + 1)))
            await self.peer.call.write(pb.ClientFrame(acknowledged=self.peer.received))

    async def goes_on(self) -> None:
        rounds = self.rounds
        await until(lambda: self.rounds >= rounds + 3)


@asynccontextmanager
async def working(peer: Peer) -> AsyncIterator[Neighbour]:
    """Ends with what failed, if anything did."""
    neighbour = Neighbour(peer)
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(neighbour.work())
        await neighbour.goes_on()
        yield neighbour
        await neighbour.goes_on()
        neighbour.is_over = True


@pytest.mark.parametrize("case", FAULTS)
def test_during_each_fault_a_neighbour_computes_on_and_what_the_culprit_held_comes_back(case: str) -> None:
    async def test() -> None:
        limits = (SMALL if case in ENDINGS else TIGHT) | {"sessions": 2 if case == "too_many_sessions" else 3}
        async with server(device=CpuDevice(arena_bytes=MIB, find=lambda: None), **limits) as here:
            first = await here.peer()
            await until(lambda: here.engine.memory.live_bytes)
            alone_bytes = here.engine.memory.live_bytes
            culprit = await here.peer()
            async with working(first) as neighbour:
                await cause(case, culprit, here)
                await neighbour.goes_on()
                for session in [each for each in here.engine.sessions.values() if each.session_id != first.session_id]:
                    here.engine.end(session)
            await first.send(Fetch(1, 10))
            assert (await first.result(1)).inline == DATA
            await until(lambda: here.engine.memory.live_bytes == alone_bytes)
            own = here.engine.sessions[first.session_id]
            assert (list(own.values), here.engine.uploads.sessions) == ([10], 0)

    run(test())


async def cause(case: str, culprit: Peer, here: Server) -> None:
    if case in ENDINGS:
        await ENDINGS[case](culprit, here)
        assert await culprit.goodbye() == case
        return
    entries, programs = FAILURES[case]
    await culprit.send(*entries, programs=programs, tensors=[b""] if case == "quota_handles" else [DATA])
    if case in BESIDE:
        status, _ = await status_of(culprit.upload_chunks(20, stream(BESIDE[case])))
        assert status.name == BY_NAME[case].status
    assert await culprit.failure(1) == case


def test_an_upload_beside_the_stream_that_finds_no_room_fails_alone() -> None:
    async def test() -> None:
        async with server(device=CpuDevice(arena_bytes=MIB, memory_bytes=MIB, find=lambda: None)) as here:
            first, culprit = await here.peer(), await here.peer()
            async with working(first):
                await culprit.send(upload_beside(20, Spec(dtypes.uint8, (8 * MIB,))), Fetch(1, 20))
                await asyncio.wait_for(culprit.upload(20, pieces(bytes(8 * MIB), MIB)), DEADLINE_S)
                assert await culprit.failure(1) == "out_of_memory"

    run(test())


# What a refusal names, of those that a setting decides.
SETTINGS = {
    "oversized_frame": f"limits.message_bytes = {64 * KIB}",
    "credit_overdrawn": "limits.credit_segments = 3",
    "slow_reader": "limits.handles = 8",
    "too_many_sessions": "limits.sessions = 2",
    "quota_live_bytes": f"limits.live_bytes = {3 * SIZE_BYTES}",
    "quota_handles": "limits.handles = 8",
    "quota_array_bytes": f"limits.array_bytes = {2 * SIZE_BYTES}",
    "quota_program": "limits.program_ops = 8",
    "out_of_memory": f"device.memory_bytes = {2 * SIZE_BYTES}",
}


@pytest.mark.parametrize("case", list(SETTINGS))
def test_a_refusal_that_a_setting_decides_names_it_and_its_value(case: str) -> None:
    async def test() -> None:
        memory_bytes = 2 * SIZE_BYTES if case == "out_of_memory" else 1 << 40
        limits = (SMALL if case in ENDINGS else TIGHT) | {"sessions": 2 if case == "too_many_sessions" else 3}
        async with server(memory_bytes=memory_bytes, **limits) as here:
            _, peer = await here.peer(), await here.peer()
            await cause(case, peer, here)
            assert SETTINGS[case] in (peer.farewell or peer.results[1].failure.text)

    run(test())


# Cases with tests of their own: a token that fails, and a server that does.
ELSEWHERE = {"unauthenticated", "server_fault"}


def test_every_case_of_the_table_is_caused_by_a_test() -> None:
    caused = {case.name for case in CASES if case.reach is not Reach.DEFINED_VALUE}
    assert caused - ELSEWHERE == {*ENDINGS, *FAILURES}
    assert all(BY_NAME[case].reach is Reach.PROTOCOL for case in ENDINGS)
    assert all(BY_NAME[case].reach is Reach.OPERATION for case in FAILURES)


@pytest.mark.parametrize("dim", [-1, MAX_DIM + 1, 2**31, 2**63, 2**64 - 1])
def test_an_impossible_dimension_is_refused_before_anything_is_allocated(dim: int) -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            entries, programs = using(program([[code("negative"), [0]]], [(0, dim, dim)]))
            await peer.send(*entries, programs=programs)
            assert await peer.failure(1) in {"bad_shape", "quota_array_bytes"}
            await peer.works(200)
            assert here.engine.memory.peak_bytes == 2 * SIZE_BYTES

    run(test())


def test_a_program_of_too_many_operands_fails_its_value_and_names_the_setting() -> None:
    async def test() -> None:
        async with server(program_operands=8) as here:
            neighbour, peer = await here.peer(), await here.peer()
            assert peer.welcome.limits.program_operands == 8
            entries, programs = using(program([[code("concat"), [0] * 9, 0]]))
            await peer.send(*entries, programs=programs)
            assert await peer.failure(1) == "quota_program"
            assert "limits.program_operands = 8" in peer.results[1].failure.text
            await neighbour.works(100)
            await peer.works(200)

    run(test())


def test_a_frame_far_too_long_breaks_the_stream_with_a_status() -> None:
    async def test() -> None:
        async with server(**SMALL) as here:
            neighbour, peer = await here.peer(), await here.peer()
            await peer.send(tensors=[bytes(2 * MIB)])
            assert (await status_of(peer.result(1)))[0] is grpc.StatusCode.RESOURCE_EXHAUSTED
            await neighbour.works(100)

    run(test())


def test_a_frame_outside_the_numbering_that_carries_work_ends_the_session() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.call.write(pb.ClientFrame(bindings=frames.encode_entries([Fetch(1, 10)])))
            assert await peer.goodbye() == "undecodable_frame"

    run(test())


def test_a_second_hello_ends_the_session() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.call.write(hello())
            assert await peer.goodbye() == "out_of_turn"

    run(test())


def test_a_repeated_frame_is_applied_once() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            peer.number -= 1
            await peer.send(segment(NEGATE, 100, 10), Fetch(1, 100))
            await peer.works(200)
            assert here.engine.sessions[peer.session_id].completed.segments == 2

    run(test())


def test_a_client_that_does_not_read_loses_its_session() -> None:
    async def test() -> None:
        spec = Spec(dtypes.uint8, (INLINE_BYTES,))
        async with server(unread_s=0.1, unread_bytes=1 << 30) as here:
            peer = await here.peer()
            session = here.engine.sessions[peer.session_id]
            await peer.send(upload(20, spec), tensors=[bytes(INLINE_BYTES)])
            await peer.send(*[Fetch(fetch, 20) for fetch in range(1000)])
            await until(lambda: session.state is SessionState.CLOSED)
            status, details = await status_of(peer.result(1000))
            assert (status, "limits.unread_s = 0.1" in details) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True)

    run(test())


# ---- bulk, beside the stream ----


def pieces(data: bytes, chunk_bytes: int = 10_000) -> list[bytes]:
    return [data[start : start + chunk_bytes] for start in range(0, len(data), chunk_bytes)]


def test_a_large_array_goes_up_and_comes_down_in_chunks() -> None:
    async def test() -> None:
        async with server(chunk_bytes=10 * KIB) as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            receipt = await asyncio.wait_for(peer.upload(20, pieces(LARGE_BYTES)), DEADLINE_S)
            assert receipt.bytes == LARGE.size_bytes
            assert (await peer.result(1)).beside_bytes == LARGE.size_bytes
            await peer.call.write(pb.ClientFrame(acknowledged=peer.received))
            await peer.works(100)
            assert await peer.download(1) == LARGE_BYTES
            await until(lambda: not here.engine.sessions[peer.session_id].beside)

    run(test())


async def never() -> AsyncIterator[bytes]:
    yield LARGE_BYTES[:100]
    await asyncio.Event().wait()


@pytest.mark.parametrize(
    ("chunks", "text"),
    [
        (lambda: pieces(LARGE_BYTES + b"x"), "more than the"),
        (lambda: pieces(LARGE_BYTES[:-1]), "bytes came for an upload declared as"),
        (list, "0 bytes came"),
        (never, "limits.upload_stall_s = 0.1"),
    ],
)
def test_an_upload_that_lies_or_stalls_fails_its_dependents_only(chunks: Callable[[], Any], text: str) -> None:
    async def test() -> None:
        async with server(upload_stall_s=0.1) as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            status, details = await status_of(peer.upload(20, chunks()))
            assert (status, text in details) == (grpc.StatusCode.DATA_LOSS, True)
            assert await peer.failure(1) == "upload_failed"
            await peer.works(100)

    run(test())


# By what is wrong: the order of an upload's ten chunks.
DISORDERS = {
    "two exchanged": [0, 1, 2, 4, 3, 5, 6, 7, 8, 9],
    "backwards": [9, 8, 7, 6, 5, 4, 3, 2, 1, 0],
    "one again": [0, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9],
    "one again and one left out": [0, 1, 2, 2, 4, 5, 6, 7, 8, 9],
    "the first left out": [1, 2, 3, 4, 5, 6, 7, 8, 9],
    "one left out": [0, 1, 2, 3, 5, 6, 7, 8, 9],
    "all again": [*range(10), *range(10)],
}


@pytest.mark.parametrize("disorder", list(DISORDERS))
def test_an_upload_whose_chunks_are_out_of_order_fails_its_dependents_only(disorder: str) -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            chunks = [chunk async for chunk in in_order(pieces(LARGE_BYTES))]
            await status_of(peer.upload_chunks(20, stream([chunks[index] for index in DISORDERS[disorder]])))
            assert await peer.failure(1) == "chunk_order"
            await peer.works(100)

    run(test())


def test_chunks_of_one_upload_that_overlap_are_refused_though_every_byte_came() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            chunks = [pb.Chunk(data=LARGE_BYTES[:100]), pb.Chunk(offset=99, data=LARGE_BYTES[99:])]
            status, details = await status_of(peer.upload_chunks(20, stream(chunks)))
            assert (status, details) == (
                grpc.StatusCode.DATA_LOSS,
                "chunk_order: a chunk begins at byte 99 where byte 100 is next",
            )
            assert await peer.failure(1) == "chunk_order"

    run(test())


def test_an_upload_whose_call_breaks_off_fails_at_once() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            call = peer.upload(20, never())
            session = here.engine.sessions[peer.session_id]
            await until(lambda: here.engine.carriers.count(session) == 1 and 20 in session.values)
            call.cancel()
            assert await peer.failure(1) == "upload_failed"

    run(test())


async def drips() -> AsyncIterator[bytes]:
    """Never nothing, and never anything."""
    while True:
        yield b""
        await asyncio.sleep(0.005)


def test_chunks_that_bring_nothing_do_not_keep_an_upload_alive() -> None:
    async def test() -> None:
        async with server(upload_stall_s=0.1) as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            await status_of(peer.upload(20, drips()))  # gRPC tells the status or that the call broke while it wrote
            assert await peer.failure(1) == "upload_failed"

    run(test())


def test_a_second_call_for_an_upload_leaves_the_first_alone() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            session = here.engine.sessions[peer.session_id]
            first = peer.upload(20, pieces(LARGE_BYTES))
            await until(lambda: here.engine.carriers.count(session) == 1)
            assert (await status_of(peer.upload(20, pieces(LARGE_BYTES))))[0] is grpc.StatusCode.NOT_FOUND
            await peer.send(upload_beside(20, LARGE))
            assert (await asyncio.wait_for(first, DEADLINE_S)).bytes == LARGE.size_bytes

    run(test())


def test_a_download_that_nobody_reads_is_given_up() -> None:
    async def test() -> None:
        spec = Spec(dtypes.uint8, (8 * MIB,))
        async with server(unread_s=0.1) as here:
            peer = await here.peer()
            await large_answer(peer, spec)
            call = peer.unread_download(1)
            session = here.engine.sessions[peer.session_id]
            await until(lambda: here.engine.carriers.count(session) == 1)
            await until(lambda: here.engine.carriers.count(session) == 0)
            status, details = await status_of(all_of(call))
            assert (status, "limits.unread_s = 0.1" in details) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True)
            assert session.state is SessionState.OPEN

    run(test())


async def large_answer(peer: Peer, spec: Spec) -> None:
    """Fetch 1 is answered with zeros that wait beside the stream."""
    await peer.send(upload_beside(20, spec), Fetch(1, 20))
    await asyncio.wait_for(peer.upload(20, pieces(bytes(spec.size_bytes), MIB)), DEADLINE_S)
    assert (await peer.result(1)).beside_bytes == spec.size_bytes


def test_the_calls_beside_its_stream_end_with_their_session() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await large_answer(peer, Spec(dtypes.uint8, (8 * MIB,)))
            calls = [peer.upload(30, never()), peer.upload(40, never()), all_of(peer.unread_download(1))]
            await peer.send(upload_beside(40, LARGE))
            session = here.engine.sessions[peer.session_id]
            await until(lambda: here.engine.carriers.count(session) == 3)
            here.engine.end(session)
            await until(lambda: here.engine.carriers.count(session) == 0)
            for call in calls:
                assert (await status_of(call))[0] is grpc.StatusCode.NOT_FOUND
            assert session.beside == {}

    run(test())


def test_an_upload_that_nobody_brings_fails() -> None:
    async def test() -> None:
        async with server(upload_stall_s=0.05) as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            assert await peer.failure(1) == "upload_failed"

    run(test())


def test_bytes_that_are_no_bools_fail_their_upload() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.send(upload_beside(20, Spec(dtypes.bool_, (4,))), Fetch(1, 20))
            status, _ = await status_of(peer.upload(20, [b"\x00\x01\x02\x01"]))
            assert status is grpc.StatusCode.DATA_LOSS
            assert await peer.failure(1) == "upload_failed"

    run(test())


def test_an_upload_or_download_that_names_nothing_of_its_session_is_refused() -> None:
    async def test() -> None:
        async with server(upload_stall_s=0.05) as here:
            peer, other = await here.peer(), await here.peer()
            await other.send(upload_beside(20, LARGE))
            await until(lambda: 20 in here.engine.sessions[other.session_id].values)
            for handle in (10, 20, 999):
                status, details = await status_of(peer.upload(handle, pieces(LARGE_BYTES)))
                assert (status, details) == (
                    grpc.StatusCode.NOT_FOUND,
                    f"unknown_handle: handle {handle} names nothing in this session",
                )
            assert (await status_of(peer.upload(20, [b""], session_id=bytes(16))))[0] is grpc.StatusCode.NOT_FOUND
            assert (await status_of(peer.download(7)))[0] is grpc.StatusCode.NOT_FOUND

    run(test())


# ---- health, reflection, tokens ----


def test_health_and_reflection_answer() -> None:
    async def test() -> None:
        async with server() as here:
            stub = health_pb2_grpc.HealthStub(here.channel)
            for name in ("", "fusewire.v1.Fusewire"):
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
                assert answer.status == health_pb2.HealthCheckResponse.SERVING
            assert "fusewire.v1.Fusewire" in await services(here.channel)

    run(test())


def test_a_server_that_drains_says_so_to_all_who_ask() -> None:
    async def test() -> None:
        async with server() as here:
            publisher = Publisher(here.engine, "1")
            stub = health_pb2_grpc.HealthStub(here.channel)
            await drain(here.engine, publisher, here.status)
            for name in ("", "fusewire.v1.Fusewire"):
                answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
                assert answer.status == health_pb2.HealthCheckResponse.NOT_SERVING
            app = create_app(lambda: publisher.snapshot, None, RememberingControl())
            answered = await asyncio.to_thread(Client(app).get, "/readyz")
            assert (answered.status_code, answered.text) == (503, "draining")

    run(test())


def test_with_tls_and_tokens_neither_clear_text_nor_a_call_without_a_token_gets_through(
    tmp_path: Path, certificate: tuple[Path, Path]
) -> None:
    async def test() -> None:
        cert, _ = certificate
        token = bearer(mint(tmp_path / "tokens", tenant="lab", scope=Scope.USE))
        async with server(tmp_path / "tokens", certificate) as here:
            assert (await status_of(services(here.channel, (token,))))[0] is grpc.StatusCode.UNAVAILABLE
            trusted = grpc.ssl_channel_credentials(cert.read_bytes())
            async with grpc.aio.secure_channel(f"127.0.0.1:{here.port}", trusted) as channel:
                assert (await status_of(services(channel)))[0] is grpc.StatusCode.UNAUTHENTICATED
                peer = Peer(channel, (token,))
                await peer.open()
                await peer.works(100)

    run(test())


async def services(channel: grpc.aio.Channel, metadata: tuple[tuple[str, str], ...] = ()) -> set[str]:
    stub = reflection_pb2_grpc.ServerReflectionStub(channel)
    requests = iter([reflection_pb2.ServerReflectionRequest(list_services="")])
    answers = [answer async for answer in stub.ServerReflectionInfo(requests, metadata=metadata)]
    return {service.name for answer in answers for service in answer.list_services_response.service}


METHODS: list[MethodDescriptor] = [
    method
    for module in (pb, health_pb2, reflection_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]


def name_of(method: MethodDescriptor) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


async def call(channel: grpc.aio.Channel, method: MethodDescriptor, metadata: tuple[tuple[str, str], ...]) -> None:
    """Calls a method with an empty request, whatever its arity, and reads one answer."""
    name = name_of(method)
    bytes_channel: Any = channel  # whose serialisers the stubs do not let be left out
    if method.client_streaming and method.server_streaming:
        await bytes_channel.stream_stream(name)(stream([b""]), metadata=metadata).read()
    elif method.client_streaming:
        await bytes_channel.stream_unary(name)(stream([b""]), metadata=metadata)
    elif method.server_streaming:
        await bytes_channel.unary_stream(name)(b"", metadata=metadata).read()
    else:
        await bytes_channel.unary_unary(name)(b"", metadata=metadata)


def bearer(token: str) -> tuple[str, str]:
    return ("authorization", f"Bearer {token}")


@pytest.mark.parametrize("method", METHODS, ids=name_of)
def test_with_tokens_no_method_answers_without_a_good_one(method: MethodDescriptor, tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "tokens"
        mint(path, tenant="lab", scope=Scope.USE)
        inspecting = mint(path, tenant="lab", scope=Scope.INSPECT)
        async with server(path) as here:
            for metadata in ((), (bearer("wrong.token"),), (bearer(inspecting),)):
                status, _ = await status_of(call(here.channel, method, metadata))
                assert status is grpc.StatusCode.UNAUTHENTICATED

    run(test())


def test_every_service_that_reflection_names_is_among_those_tested(tmp_path: Path) -> None:
    async def test() -> None:
        token = mint(tmp_path / "tokens", tenant="lab", scope=Scope.USE)
        async with server(tmp_path / "tokens") as here:
            assert await services(here.channel, (bearer(token),)) == {
                method.containing_service.full_name for method in METHODS
            }

    run(test())


@pytest.mark.parametrize("how", ["revoked", "given to another tenant"])
def test_an_open_session_ends_when_its_token_is_no_longer_good(
    how: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rpc, "TOKEN_CHECK_S", 0.01)

    async def test() -> None:
        path = tmp_path / "tokens"
        token, kept = mint(path, tenant="lab", scope=Scope.USE), mint(path, tenant="lab", scope=Scope.USE)
        async with server(path) as here:
            peer, neighbour = await here.peer(bearer(token)), await here.peer(bearer(kept))
            if how == "revoked":
                revoke(path, token.partition(".")[0])
            else:
                path.write_text(path.read_text().replace(" lab ", " others ", 1))
            assert await peer.goodbye() == "unauthenticated"
            assert peer.session_id not in here.engine.sessions
            await neighbour.works(100)

    run(test())


def test_a_session_is_out_of_reach_of_another_tenant(tmp_path: Path) -> None:
    async def test() -> None:
        path = tmp_path / "tokens"
        mine, theirs = (bearer(mint(path, tenant=tenant, scope=Scope.USE)) for tenant in ("lab", "others"))
        async with server(path) as here:
            peer = await here.peer(mine)
            await peer.works(100)
            await peer.send(upload_beside(20, LARGE), Fetch(1, 20))
            await asyncio.wait_for(peer.upload(20, pieces(LARGE_BYTES)), DEADLINE_S)
            await peer.result(1)
            thief = replace(peer, metadata=(theirs,))
            assert (await status_of(thief.upload(20, [b""])))[0] is grpc.StatusCode.NOT_FOUND
            assert (await status_of(thief.download(1)))[0] is grpc.StatusCode.NOT_FOUND
            stolen = hello(session_id=peer.session_id, server_instance=peer.welcome.server_instance)
            await first_frame(thief, stolen)
            assert await thief.goodbye() == "session_lost"
            assert await peer.download(1) == LARGE_BYTES

    run(test())
