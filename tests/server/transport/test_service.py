"""The session's stream over real gRPC: its beginning, its end, what resumes it, and who does not read it."""

from __future__ import annotations

import asyncio
import gc
import sys
import time
from itertools import count, pairwise
from typing import Any

import grpc
import numpy as np
import pytest

from fusewire_protos import frames
from fusewire_protos.errors import Unauthenticated
from fusewire_protos.frames import INLINE_BYTES, PROTOCOL_VERSION, Abandon, Fetch, Forget, Free
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.v1 import fusewire_pb2 as pb
from fusewire_server.access.interceptor import Access
from fusewire_server.engine.engine import Engine
from fusewire_server.engine.outcome import outcome_of
from fusewire_server.programs.program_table import ProgramEntry
from fusewire_server.sessions.session import Session, SessionState
from fusewire_server.transport import service, session_frames, session_stream
from fusewire_server.transport.frame_parsing import parse_frame
from fusewire_server.transport.session_frames import SessionFrames
from tests.server.parts import chain, new, segment, upload
from tests.server.wire import Peer, Server, first_frame, hello, server, status_of
from tests.server.world import DEADLINE_S, NEGATE, run, until


def test_a_session_is_welcomed_with_its_limits_and_works() -> None:
    async def test() -> None:
        async with server(credit_ops=77, handles=88) as here:
            peer = await here.peer()
            assert peer.welcome.version == PROTOCOL_VERSION
            assert (peer.welcome.credit.ops, peer.welcome.limits.handles, peer.welcome.epoch) == (77, 88, 1)
            assert (len(peer.welcome.session_id), len(peer.welcome.server_instance)) == (16, 16)
            await peer.works(100)

    run(test())


@pytest.mark.parametrize("is_refused", [True, False], ids=["refused", "said goodbye"])
def test_the_last_message_of_a_stream_is_freed_when_the_stream_ends(
    is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[bytes] = []
    free = [bytes(range(8))]  # its only reference is the list's

    def reading(raw: bytes, message_bytes: int) -> pb.ClientFrame:
        read[:] = [raw]
        return parse_frame(raw, message_bytes)

    class Reading:
        """The frames of a stream, which are noted."""

        def __init__(self, engine: Engine, session: Session) -> None:
            self._frames = SessionFrames(engine, session)

        def take(self, raw: bytes) -> bool:
            read[:] = [raw]
            return self._frames.take(raw)

        def __getattr__(self, name: str) -> Any:
            return getattr(self._frames, name)

    async def test() -> None:
        async with server() as here:
            peer = Peer(here.channel)
            if is_refused:
                await peer.connect().write(pb.ClientFrame(number=1))
                assert await peer.goodbye() == "out_of_turn"
            else:
                await peer.open()
                await peer.works(100)
                await peer.call.write(pb.ClientFrame(goodbye=pb.Goodbye()))
                await until(lambda: not here.engine.sessions)
            await until(lambda: sys.getrefcount(read[0]) == sys.getrefcount(free[0]))

    monkeypatch.setattr(service, "parse_frame", reading)
    monkeypatch.setattr(session_stream, "SessionFrames", Reading)
    gc.disable()
    try:
        run(test())
    finally:
        gc.enable()


def test_others_have_turns_while_the_new_programs_of_a_frame_are_read() -> None:
    async def test() -> None:
        async with server() as here:
            here.engine._backlog.slice_ns, here.engine._backlog.turn_ns = 0, 1
            peer = await here.peer()
            turns = count()

            async def take_turns() -> None:
                while True:
                    await asyncio.sleep(0)
                    next(turns)

            other = asyncio.create_task(take_turns())
            read_at: dict[bytes, int] = {}
            find = here.engine.programs.find

            def watched(raw: bytes, *, is_fragment: bool) -> ProgramEntry | None:
                read_at.setdefault(raw, next(turns))
                return find(raw, is_fragment=is_fragment)

            here.engine.programs.find = watched  # type: ignore[method-assign]
            programs = [new(100 + length, chain(["negative"] * length)) for length in range(2, 6)]
            await peer.send(segment(102, 100, 10), Fetch(1, 101), programs=programs)
            assert (await peer.result(1)).inline
            other.cancel()
            assert min(later - sooner for sooner, later in pairwise(read_at[one.raw] for one in programs)) > 1

    run(test())


def test_a_frame_waits_for_all_of_the_one_before_it() -> None:
    async def test() -> None:
        async with server() as here:
            here.engine._backlog.slice_ns, here.engine._backlog.turn_ns = 0, 1
            peer = await here.peer()
            bases = range(100, 140)
            await peer.send(*[segment(NEGATE, base, base - 1 if base > 100 else 10) for base in bases])
            await peer.send(Fetch(1, bases[-1]))
            assert (await peer.result(1)).inline == np.arange(4, dtype=np.float32).tobytes()
            assert here.engine.sessions[peer.session_id].completed.segments == len(bases)

    run(test())


def test_a_stream_begins_when_what_the_one_before_it_brought_is_applied() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            session = here.engine.sessions[peer.session_id]
            await until(lambda: session.applied_frame == peer.number)
            await outcome_of(here.engine.unapplied(session))
            here.engine._backlog.slice_ns, here.engine._backlog.turn_ns = 0, 1
            peer.number += 1
            entries = frames.encode_entries([*[Abandon(7)] * 5000, segment(NEGATE, 100, 10)])
            assert not here.engine.receive(session, peer.number, b"", entries, (), time.monotonic_ns())
            await peer.resume()
            await peer.send(Fetch(1, 100))
            assert (await peer.result(1)).inline == (-np.arange(4, dtype=np.float32)).tobytes()

    run(test())


def test_a_goodbye_tells_what_was_wrong_with_an_entry_far_behind_in_its_frame() -> None:
    async def test() -> None:
        async with server() as here:
            here.engine._backlog.slice_ns, here.engine._backlog.turn_ns = 0, 1
            peer = await here.peer()
            await peer.send(*[Abandon(7)] * 9, Forget(99))
            assert await peer.goodbye() == "unknown_program"
            assert not here.engine.sessions

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


@pytest.mark.parametrize(
    ("says_goodbye", "level", "text"),
    [(True, "INFO", "a session has ended"), (False, "WARNING", "a session has lost its stream")],
)
def test_the_audit_log_warns_of_a_lost_stream_and_not_of_an_orderly_end(
    says_goodbye: bool, level: str, text: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            if says_goodbye:
                await peer.call.write(pb.ClientFrame(goodbye=pb.Goodbye()))
            else:
                peer.call.cancel()
            await until(lambda: len(records()) == 2)
        assert records() == [("INFO", "a session has a stream"), (level, text)]

    def records() -> list[tuple[str, str]]:
        return [(each.levelname, each.message) for each in caplog.records if each.name == "fusewire.audit"]

    with caplog.at_level("INFO", "fusewire.audit"):
        run(test())


def test_a_session_that_leaves_a_stream_over_which_it_sent_nothing_is_no_loss(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with server() as here:
            peer = Peer(here.channel)
            await peer.connect().write(hello())
            peer.session_id = (await peer.frame()).welcome.session_id
            peer.call.cancel()
            await until(lambda: len(records()) == 2)
            await peer.resume()
            assert here.engine.counters.sessions_resumed == 0
        assert records()[1] == ("INFO", "a session has left a stream over which it sent nothing")

    def records() -> list[tuple[str, str]]:
        return [(each.levelname, each.message) for each in caplog.records if each.name == "fusewire.audit"]

    run(test())


def test_the_log_tells_the_name_of_a_session(caplog: pytest.LogCaptureFixture) -> None:
    async def test() -> None:
        async with server() as here:
            peer = Peer(here.channel)
            await first_frame(peer, hello(name="ppo-worker-7"))
            await peer.send(skip=1)
            assert await peer.goodbye() == "frame_gap"
            await until(lambda: len(records()) == 3)
        assert records() == [
            ("a session has a stream", "ppo-worker-7"),
            ("a session ends: frame_gap: frame 2 follows frame 0", "ppo-worker-7"),
            ("a session has ended", "ppo-worker-7"),
        ]

    def records() -> list[tuple[str, object]]:
        return [(each.message, each.__dict__["session_name"]) for each in caplog.records if hasattr(each, "session")]

    run(test())


def test_refusals_and_ends_are_counted_by_case() -> None:
    async def test() -> None:
        async with server() as here:
            counters = here.engine.counters
            peer = await here.peer()
            await peer.send(skip=1)
            assert await peer.goodbye() == "frame_gap"
            await first_frame(peer, hello(versions=[99]))
            assert await peer.goodbye() == "wrong_version"
            await status_of(peer.download(77))
            assert (counters.sessions_opened, counters.sessions_ended) == (1, {"frame_gap": 1})
            await until(lambda: counters.refusals.total() == 2)  # the server counts after the client has its answer
            assert counters.refusals == {("session", "wrong_version"): 1, ("transfer", "session_lost"): 1}

    run(test())


def test_a_session_has_the_name_and_the_labels_that_its_client_tells() -> None:
    async def test() -> None:
        async with server() as here:
            peer = Peer(here.channel)
            await first_frame(peer, hello(name="ppo-worker-7", labels={"run": "42"}))
            await until(lambda: here.engine.sessions)
            (session,) = here.engine.sessions.values()
            assert (session.name, session.labels) == ("ppo-worker-7", {"run": "42"})
            for wrong in ({"name": "a b"}, {"name": "x" * 65}, {"labels": {f"k{n}": "v" for n in range(9)}}):
                other = Peer(here.channel)
                await first_frame(other, hello(**wrong))
                assert await other.goodbye() == "undecodable_frame"
                assert "expected at most" in other.farewell
            assert len(here.engine.sessions) == 1

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
            await until(lambda: len(session.answers.unacknowledged) == 2)
            await peer.resume()
            assert (await peer.result(1)).WhichOneof("answer") == "inline"
            await peer.works(200)
            assert session.state is SessionState.OPEN

    run(test())


def test_a_hello_that_comes_late_loses_no_answer_and_ends_no_session() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            late = Peer(here.channel, session_id=peer.session_id)
            late.welcome = peer.welcome
            await peer.works(100)
            await peer.works(200)
            await late.resume()
            await peer.resume()
            await peer.works(300)

    run(test())


def test_frames_without_news_are_acknowledged_once_they_are_many() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.works(100)
            first = peer.number + 1
            for _ in range(2 * session_frames.MOST_UNACKNOWLEDGED):
                await peer.send(Free(()))
            while (await peer.next()).acknowledged < first:
                pass

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


def test_a_bad_frame_that_comes_late_on_an_old_stream_leaves_the_session_to_the_new_one() -> None:
    async def test() -> None:
        async with server(message_bytes=64 << 10, chunk_bytes=32 << 10, program_bytes=32 << 10) as here:
            peer = await here.peer()
            await peer.works(100)
            session, old = here.engine.sessions[peer.session_id], peer.call
            # Taken over by a stream that has yet to begin, so that nothing has told the old one.
            here.engine._registry.resume(peer.session_id, here.engine._registry.instance, session.tenant, peer.received)
            await peer.send(tensors=[bytes(128 << 10)])
            async with asyncio.timeout(DEADLINE_S):
                while isinstance(await old.read(), pb.ServerFrame):
                    pass
            peer.number -= 1
            await peer.resume()
            await peer.works(200)
            assert session.state is SessionState.OPEN

    run(test())


def test_a_token_that_ends_with_an_old_stream_leaves_the_session_to_the_new_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(session_stream, "TOKEN_CHECK_S", 0.01)

    def revoked(_access: Access, _metadata: Any) -> str:
        raise Unauthenticated("the token is unknown here, or revoked")

    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            await peer.works(100)
            session = here.engine.sessions[peer.session_id]
            here.engine._registry.resume(peer.session_id, here.engine._registry.instance, session.tenant, peer.received)
            with monkeypatch.context() as patched:
                patched.setattr(Access, "tenant", revoked)
                async with asyncio.timeout(DEADLINE_S):
                    while isinstance(await peer.call.read(), pb.ServerFrame):
                        pass
            await peer.resume()
            await peer.works(200)
            assert session.state is SessionState.OPEN

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
            assert not here.engine.counters.refusals  # the session was admitted

    run(test())


def test_a_session_that_is_resumed_on_another_connection_is_shown_with_its_address() -> None:
    async def test() -> None:
        async with server() as here:
            peer = await here.peer()
            session = here.engine.sessions[peer.session_id]
            first = session.peer
            options = (("grpc.use_local_subchannel_pool", 1),)
            async with grpc.aio.insecure_channel(f"127.0.0.1:{here.port}", options=options) as peer.channel:
                await peer.resume()
                assert (session.epoch, session.peer.startswith("ipv4:127.0.0.1:")) == (2, True)
                assert session.peer != first

    run(test())


def without_room(here: Server) -> grpc.aio.Channel:
    """A connection on which a message travels only when its client reads."""
    options = (("grpc.http2.lookahead_bytes", 0), ("grpc.http2.bdp_probe", 0))
    return grpc.aio.insecure_channel(f"127.0.0.1:{here.port}", options=options)


def test_a_client_that_does_not_even_read_its_welcome_hears_why_its_session_ends() -> None:
    async def test() -> None:
        async with server(unread_s=0.1) as here, without_room(here) as channel:
            peer = Peer(channel)
            await peer.connect().write(hello())
            await until(lambda: here.engine.counters.sessions_ended == {"slow_reader": 1})
            status, details = await status_of(peer.result(1))
            assert (status, "limits.unread_s = 0.1" in details) == (grpc.StatusCode.RESOURCE_EXHAUSTED, True)

    run(test())


def test_a_client_that_does_not_read_its_refusal_does_not_keep_the_call(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async with server(unread_s=0.1) as here, without_room(here) as channel:
            await Peer(channel).connect().write(pb.ClientFrame(number=1))
            await until(lambda: ended)

    ended: list[bool] = []
    serve = service.FusewireService.session

    async def serving(*arguments: Any) -> None:
        await serve(*arguments)
        ended.append(True)

    monkeypatch.setattr(service.FusewireService, "session", serving)
    run(test())


def test_a_client_of_many_versions_is_not_told_all_of_them() -> None:
    async def test() -> None:
        async with server() as here:
            peer = Peer(here.channel)
            await first_frame(peer, hello(versions=range(100, 8_100)))
            assert await peer.goodbye() == "wrong_version"
            assert "8000 in all" in peer.farewell
            assert len(peer.farewell) < 200

    run(test())
