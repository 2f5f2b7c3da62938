"""Every case of the error table that a client can cause, over real gRPC.

A second session works beside each fault and must notice nothing.
"""

from __future__ import annotations

import ast
import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import grpc
import pytest

import fusewire_protos
import fusewire_server
from fusewire_kernels.devices.cpu import CpuDevice
from fusewire_protos import frames
from fusewire_protos.errors import BY_NAME, CASES, CaseError, Consequence
from fusewire_protos.frames import Cancel, Entry, Fetch, Free, NewProgram, Segment
from fusewire_protos.ops import catalogue, dtypes
from fusewire_protos.ops.shapes import MAX_DIM, Spec
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.config.settings import KIB, MIB
from fusewire_server.sessions.session import Session
from fusewire_server.transport.service import FusewireService
from tests.program_bytes import program_bytes
from tests.server.parts import SIZE_BYTES, segment, upload, upload_beside
from tests.server.wire import LARGE, SERVICE, Peer, Server, first_frame, hello, pieces, server, status_of, stream
from tests.server.world import DATA, NEGATE, run, until

BAD = 9  # the number of the program in question


def code(op: str) -> int:
    return catalogue.BY_NAME[op].code


async def garbage(peer: Peer, here: Server) -> None:
    raw: Any = here.channel.stream_stream(SERVICE + "Session", None, pb.ServerFrame.FromString)
    peer.call = raw(None, metadata=peer.metadata)
    peer.received = 0
    for frame in (hello().SerializeToString(), b"\xff\xff\xff"):
        await peer.call.write(frame)  # type: ignore[arg-type]  # without a serialiser bytes go as they are


async def drained(peer: Peer, here: Server) -> None:
    """For whoever opens a session alone: a server that drains ends all."""
    begin = FusewireService._begin

    def begin_in_vain(service: FusewireService, *arguments: Any) -> Session:
        FusewireService._begin = begin  # type: ignore[method-assign]  # this session alone comes too late
        here.engine.is_draining = True
        try:
            return begin(service, *arguments)
        finally:
            here.engine.is_draining = False

    FusewireService._begin = begin_in_vain  # type: ignore[assignment, method-assign]
    await first_frame(peer, hello())


async def ended_by_operator(peer: Peer, here: Server) -> None:
    reason = CaseError("ended_by_operator", "an operator ended this session")
    here.engine.dismiss([here.engine.sessions[peer.session_id]], reason)


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
    "ended_by_operator": ended_by_operator,
    "unknown_device": lambda peer, here: first_frame(peer, hello(device=7)),
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


def test_a_client_that_goes_on_writing_hears_why_its_session_ends() -> None:
    async def go_on(peer: Peer) -> None:
        with suppress(grpc.RpcError, asyncio.InvalidStateError):
            for number in range(400):
                await peer.send(segment(NEGATE, 100 + number, 10), tensors=[bytes(60 * KIB)])

    async def test() -> None:
        async with server() as here:
            for _ in range(8):
                options = (("grpc.use_local_subchannel_pool", 1),)  # a connection of its own
                async with grpc.aio.insecure_channel(f"127.0.0.1:{here.port}", options=options) as channel:
                    peer = Peer(channel)
                    await peer.open()
                    await peer.send(upload(10))
                    writing = asyncio.create_task(go_on(peer))
                    assert await peer.goodbye() == "reused_handle"
                    await writing

    run(test())


def program(ops: list[Any], inputs: Sequence[Any] = ((6, 4),)) -> NewProgram:
    return NewProgram(BAD, False, program_bytes(inputs, [], ops, [0]))


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
            assert (list(own.values), here.engine._uploads.sessions) == ([10], 0)

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
                status, _ = await status_of(culprit.upload(20, pieces(bytes(8 * MIB), MIB)))
                assert status is grpc.StatusCode.RESOURCE_EXHAUSTED
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


def named_settings(function: ast.AST) -> tuple[set[str], set[str]]:
    """The cases that a function raises, and the settings that its texts name."""
    texts = {
        node.value for node in ast.walk(function) if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }
    raised = {
        ast.literal_eval(node.args[0])
        for node in ast.walk(function)
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "CaseError"
        and isinstance(node.args[0], ast.Constant)
    }
    return raised, {key for text in texts for key in re.findall(r"(?:limits|planner)\.(\w+)", text)}


@pytest.mark.parametrize("package", [fusewire_protos, fusewire_server], ids=lambda package: package.__name__)
def test_a_setting_that_a_refusal_names_stands_in_the_table_of_cases(package: ModuleType) -> None:
    (folder,) = package.__path__
    for path in Path(folder).glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                cases, settings = named_settings(node)
                text = " ".join(BY_NAME[case].summary for case in cases)
                assert not cases or all(setting in text for setting in settings), (node.name, settings)


# Cases with tests of their own: a token that fails, a server that does, too many calls at once, a full host.
ELSEWHERE = {"unauthenticated", "server_fault", "too_many_calls", "quota_host_bytes"}


def test_every_case_of_the_table_is_caused_by_a_test() -> None:
    caused = {case.name for case in CASES if case.consequence is not Consequence.DEFINED_VALUE}
    assert caused - ELSEWHERE == {*ENDINGS, *FAILURES}
    assert all(BY_NAME[case].consequence is Consequence.PROTOCOL for case in ENDINGS)
    assert all(BY_NAME[case].consequence is Consequence.OPERATION for case in FAILURES)


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


def test_an_entry_that_lists_too_many_handles_ends_the_session() -> None:
    async def test() -> None:
        async with server(**SMALL) as here:
            neighbour, peer = await here.peer(), await here.peer()
            await peer.send(Free((1,) * (frames.MAX_FREED + 1)))
            assert await peer.goodbye() == "oversized_frame"
            assert f"at most {frames.MAX_FREED}" in peer.farewell
            await neighbour.works(100)

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
