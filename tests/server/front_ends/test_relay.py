"""The relay to one engine: what passes in both directions, and how calls end."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import grpc
import pytest

from fusewire_protos.local_calls import connection as local_connection
from fusewire_protos.local_calls.parts import Metadata, PartKind, head_of
from fusewire_server.front_ends import relay as relay_module
from fusewire_server.transport.call import Call, Messages, Method
from fusewire_server.transport.grpc_server import METHODS
from fusewire_server.transport.local_calls import LocalCalls
from tests.event_loops import Run
from tests.patience import Patience
from tests.server.front_ends.relayed import END, LONGEST, Relayed, echo, read_all, relayed, serving, status_of
from tests.server.world import until

PIECE = bytes(256 << 10)
MOST_PIECES_ON_THE_WAY = 32  # 8 MiB: what sockets, gRPC's windows and both sides of the relay may hold


# ---- what goes through ----


def test_messages_go_both_ways_in_their_order(in_each_loop: Run) -> None:
    async def test() -> None:
        async with relayed(echo) as here:
            call = here.call()
            sent = [b"", b"a", bytes(range(256)) * 100, b"last"]
            for message in sent:
                await call.write(message)
                assert await call.read() == message
            await call.done_writing()
            assert await call.read() is END
            assert await status_of(call) == (grpc.StatusCode.OK, "")

    in_each_loop(test())


def test_each_method_is_the_engines_of_its_name(in_each_loop: Run) -> None:
    async def test() -> None:
        def named(name: str) -> Method:
            async def tell_name(_messages: Messages, call: Call) -> None:
                await call.write(name.encode())

            return tell_name

        local = LocalCalls(LONGEST)
        await local.start({name: named(name) for name in METHODS})
        async with serving(local.name, local.front_end_secret, local) as here:
            for name in METHODS:
                assert await read_all(here.call(name)) == [name.encode()]
        await local.stop(0.0)

    in_each_loop(test())


def test_the_longest_message_goes_both_ways(in_each_loop: Run) -> None:
    async def test() -> None:
        async with relayed(echo) as here:
            call = here.call()
            longest = bytes(range(256)) * (LONGEST >> 8)
            await call.write(longest)
            assert await call.read() == longest
            await call.done_writing()
            assert await call.read() is END

    in_each_loop(test())


def test_a_message_that_is_too_long_ends_its_call_as_without_a_relay(in_each_loop: Run) -> None:
    got: list[bytes] = []

    async def collect(messages: Messages, _call: Call) -> None:
        got.extend([message async for message in messages])

    async def test() -> None:
        async with relayed(collect) as here:
            call = here.call()
            await call.write(b"short")
            await call.write(bytes(LONGEST + 1))
            assert await call.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
            await here.until_nothing_is_left()
            assert set(got) <= {b"short"}
            assert await read_all_of_echo(here) == []

    async def read_all_of_echo(here: Relayed) -> list[bytes]:
        call = here.call()
        await call.done_writing()
        return await read_all(call)

    in_each_loop(test())


def test_the_engine_sees_who_calls_with_which_metadata(in_each_loop: Run) -> None:
    seen: list[tuple[Metadata, str]] = []

    async def look(_messages: Messages, call: Call) -> None:
        seen.append((call.invocation_metadata(), call.peer()))

    async def test() -> None:
        async with relayed(look) as here:
            metadata = (("authorization", "Bearer a.b"), ("twice", "1"), ("twice", "2"), ("some-bin", b"\xff\x00"))
            assert await read_all(here.call(metadata=metadata)) == []

    in_each_loop(test())
    ((received, peer),) = seen
    assert [pair for pair in received if pair[0] != "user-agent"] == [
        ("authorization", "Bearer a.b"),
        ("twice", "1"),
        ("twice", "2"),
    ], "no method reads binary values"
    assert peer.startswith("ipv4:127.0.0.1:")


def test_metadata_of_the_engine_come_before_its_first_message(in_each_loop: Run) -> None:
    async def tell_metadata(messages: Messages, call: Call) -> None:
        await call.send_initial_metadata((("early", "at once"),))
        await echo(messages, call)

    async def test() -> None:
        async with relayed(tell_metadata) as here:
            call = here.call()
            assert dict(await call.initial_metadata())["early"] == "at once"
            await call.write(b"1")
            assert await call.read() == b"1"
            await call.done_writing()
            assert await call.read() is END

    in_each_loop(test())


@pytest.mark.parametrize("code", [code for code in grpc.StatusCode if code is not grpc.StatusCode.OK])
@pytest.mark.parametrize("aborts", [False, True], ids=["set", "aborted"])
def test_a_call_ends_with_the_status_and_the_details_of_the_engine(
    in_each_loop: Run, code: grpc.StatusCode, *, aborts: bool
) -> None:
    details = f"{code.name.lower()}: why “so”"

    async def end(_messages: Messages, call: Call) -> None:
        await call.write(b"before")
        if aborts:
            await call.abort(code, details)
        call.set_code(code)
        call.set_details(details)

    async def test() -> None:
        async with relayed(end) as here:
            call = here.call()
            assert await call.read() == b"before"
            assert await status_of(call) == (code, details)

    in_each_loop(test())


def test_a_method_that_fails_ends_its_call_and_no_other(in_each_loop: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def fail(messages: Messages, call: Call) -> None:
        async for message in messages:
            if message == b"fail":
                raise RuntimeError("a defect")
            await call.write(message)

    async def test() -> None:
        async with relayed(fail) as here:
            other, call = here.call(), here.call()
            await call.write(b"fail")
            assert await call.code() is grpc.StatusCode.UNKNOWN
            await other.write(b"goes on")
            assert await other.read() == b"goes on"
            await other.done_writing()
            assert await other.read() is END

    in_each_loop(test())
    assert [record.name for record in caplog.records] == ["fusewire.local"], "nothing is told by gRPC"


def test_a_call_may_end_while_its_client_still_sends(in_each_loop: Run) -> None:
    async def take_one(messages: Messages, call: Call) -> None:
        await call.write(await anext(aiter(messages)))

    async def test() -> None:
        async with relayed(take_one) as here:
            call = here.call()
            await call.write(b"1")
            assert await call.read() == b"1"
            assert await call.code() is grpc.StatusCode.OK

    in_each_loop(test())


def test_many_calls_at_once_have_each_its_own_messages(in_each_loop: Run) -> None:
    async def test() -> None:
        async with relayed(echo) as here:

            async def call(number: int) -> None:
                mine = here.call(METHODS[number % len(METHODS)])
                message = number.to_bytes(4, "big") * 5000
                for _ in range(3):
                    await mine.write(message)
                    assert await mine.read() == message
                await mine.done_writing()
                assert await mine.read() is END

            await asyncio.gather(*map(call, range(400)))

    in_each_loop(test())


# ---- calls that are broken off ----


@dataclass
class Stuck:
    """A method that does one thing and then waits. Counts its calls, and tells when one was cancelled."""

    first: Callable[[Messages, Call], Any]
    calls: int = 0
    was_cancelled: asyncio.Event = field(default_factory=asyncio.Event)

    async def __call__(self, messages: Messages, call: Call) -> None:
        self.calls += 1
        try:
            await self.first(messages, call)
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.was_cancelled.set()
            raise


async def read_nothing(_messages: Messages, _call: Call) -> None:
    pass


async def read_on(messages: Messages, _call: Call) -> None:
    async for _ in messages:
        pass


async def write_on(_messages: Messages, call: Call) -> None:
    while True:
        await call.write(PIECE)


@pytest.mark.parametrize("first", [read_nothing, read_on, write_on])
@pytest.mark.parametrize("sends", [False, True], ids=["silent", "sending"])
def test_a_call_that_its_client_cancels_is_cancelled_in_the_engine(
    in_each_loop: Run,
    first: Callable[[Messages, Call], Any],
    *,
    sends: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: Any,
) -> None:
    monkeypatch.setattr(local_connection, "PING_EVERY_S", 0.05)  # by pings an engine that does not read notices it

    async def test() -> None:
        method = Stuck(first)
        async with relayed(method) as here:
            call = here.call()
            sending = asyncio.create_task(write_on_to(call)) if sends else None
            await until(lambda: method.calls)
            if sending is not None:
                await until_it_rests(lambda: pieces_sent[0])
            call.cancel()
            await method.was_cancelled.wait()
            if sending is not None:
                sending.cancel()
                await asyncio.wait((sending,))

    pieces_sent = [0]

    async def write_on_to(call: Any) -> None:
        while pieces_sent[0] < 2 * MOST_PIECES_ON_THE_WAY:
            await call.write(PIECE)
            pieces_sent[0] += 1

    in_each_loop(test())
    assert [record.getMessage() for record in caplog.records] == []


async def until_it_rests(count: Callable[[], int]) -> None:
    """Until the count has stayed the same for half a second in which nothing else hindered it."""
    while True:
        before, rested = count(), Patience(0.5)
        while not rested.is_exhausted():  # noqa: ASYNC110 - that nothing happens has no event
            await asyncio.sleep(0.01)
        if count() == before:
            return


def test_a_call_whose_engine_listens_no_more_ends_in_words(in_each_loop: Run) -> None:
    async def test() -> None:
        async with relayed(echo) as here:
            assert here.local is not None
            await here.local.stop(0.0)
            code, details = await status_of(here.call())
            assert code is grpc.StatusCode.UNAVAILABLE
            assert details == "the server's engine cannot be reached: Connection refused"

    in_each_loop(test())


def test_calls_end_when_the_engine_stops(in_each_loop: Run) -> None:
    async def test() -> None:
        method = Stuck(read_on)
        async with relayed(method) as here:
            calls = [here.call(name) for name in METHODS]
            await until(lambda: method.calls == len(calls))
            assert here.local is not None
            await here.local.stop(0.0)
            for call in calls:
                assert await call.code() in {grpc.StatusCode.UNKNOWN, grpc.StatusCode.UNAVAILABLE}

    in_each_loop(test())


@contextmanager
def engine_of_a_test(backlog: int = 100) -> Iterator[tuple[str, socket.socket]]:
    """A socket that accepts local calls only when the test does. Yields its name too."""
    name = f"fusewire-test-{id(object()):x}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(f"\0{name}")
        listener.listen(backlog)
        listener.setblocking(False)
        yield name, listener


async def accept(listener: socket.socket) -> socket.socket:
    accepted, _ = await asyncio.get_running_loop().sock_accept(listener)
    return accepted


def test_a_call_whose_engine_dies_ends_in_words(in_each_loop: Run) -> None:
    async def test() -> None:
        with engine_of_a_test() as (name, listener):
            async with serving(name, b"") as here:
                call = here.call()
                (await accept(listener)).close()
                code, details = await status_of(call)
                assert code is grpc.StatusCode.UNAVAILABLE
                assert details.startswith("the server's engine has gone: ")
                await here.until_nothing_is_left()

    in_each_loop(test())


def test_a_call_whose_engine_is_stopped_ends_in_words(in_each_loop: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_connection, "PING_EVERY_S", 0.05)

    async def test() -> None:
        with engine_of_a_test() as (name, listener):
            async with serving(name, b"") as here:
                call = here.call()
                with await accept(listener):
                    status = await status_of(call)
                assert status == (grpc.StatusCode.UNAVAILABLE, "the server's engine has gone: ping timeout")
                await here.until_nothing_is_left()

    in_each_loop(test())


def test_a_call_to_which_the_engine_answers_nonsense_ends(in_each_loop: Run) -> None:
    async def test() -> None:
        with engine_of_a_test() as (name, listener):
            async with serving(name, b"") as here:
                call = here.call()
                with await accept(listener) as engine:
                    engine.sendall(head_of(PartKind.MESSAGE, LONGEST + 1))
                    code, details = await status_of(call)
                assert code is grpc.StatusCode.UNAVAILABLE
                assert f"a part of {LONGEST + 1} bytes" in details
                await here.until_nothing_is_left()

    in_each_loop(test())


def test_a_call_waits_while_the_engine_has_many_to_accept(in_each_loop: Run) -> None:
    async def test() -> None:
        with engine_of_a_test(backlog=0) as (name, listener):
            async with serving(name, b"") as here:
                calls = [here.call() for _ in range(5)]
                codes = [asyncio.create_task(call.code()) for call in calls]
                for _ in calls:
                    (await accept(listener)).close()
                for code in codes:
                    assert await code is grpc.StatusCode.UNAVAILABLE  # and not before its engine has closed it

    in_each_loop(test())


def test_a_call_that_the_engine_never_accepts_ends_in_words(in_each_loop: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay_module, "_CONNECTED_WITHIN_S", 0.05)

    async def test() -> None:
        with engine_of_a_test(backlog=0) as (name, _):
            async with serving(name, b"") as here:
                waiting, refused = here.call(), here.call()
                done, _ = await asyncio.wait(
                    [asyncio.create_task(status_of(call)) for call in (waiting, refused)],
                    return_when=asyncio.FIRST_COMPLETED,
                )
                ((code, details),) = [each.result() for each in done]
                assert code is grpc.StatusCode.UNAVAILABLE
                assert details.startswith("the server's engine cannot be reached: ")
                waiting.cancel()
                refused.cancel()

    in_each_loop(test())


def test_a_wrong_secret_is_refused(in_each_loop: Run) -> None:
    async def test() -> None:
        local = LocalCalls(LONGEST)
        await local.start(dict.fromkeys(METHODS, echo))
        async with serving(local.name, bytes(32)) as here:
            assert await here.call().code() is grpc.StatusCode.PERMISSION_DENIED
        await local.stop(0.0)

    in_each_loop(test())


# ---- who does not read ----


def test_a_client_waits_while_the_engine_does_not_read(in_each_loop: Run) -> None:
    sent, pieces = [0], 4 * MOST_PIECES_ON_THE_WAY
    got: list[int] = []

    async def test() -> None:
        may_read = asyncio.Event()

        async def read_late(messages: Messages, _call: Call) -> None:
            await may_read.wait()
            got.extend([len(message) async for message in messages])

        async def send(call: Any) -> None:
            for _ in range(pieces):
                await call.write(PIECE)
                sent[0] += 1
            await call.done_writing()

        async with relayed(read_late) as here:
            call = here.call()
            sending = asyncio.create_task(send(call))
            await until_it_rests(lambda: sent[0])
            assert sent[0] <= MOST_PIECES_ON_THE_WAY
            may_read.set()
            await sending
            assert await call.code() is grpc.StatusCode.OK
        assert got == [len(PIECE)] * pieces

    in_each_loop(test())


def test_the_engine_waits_while_a_client_does_not_read(in_each_loop: Run) -> None:
    written, pieces = [0], 4 * MOST_PIECES_ON_THE_WAY

    async def write(_messages: Messages, call: Call) -> None:
        for _ in range(pieces):
            await call.write(PIECE)
            written[0] += 1

    async def test() -> None:
        async with relayed(write) as here:
            call = here.call()
            await call.read()
            await until_it_rests(lambda: written[0])
            assert written[0] <= MOST_PIECES_ON_THE_WAY
            assert await read_all(call) == [PIECE] * (pieces - 1)

    in_each_loop(test())


def test_a_client_that_reads_late_gets_all_and_the_status_of_a_call_that_has_ended(in_each_loop: Run) -> None:
    async def write_and_refuse(_messages: Messages, call: Call) -> None:
        for _ in range(4):
            await call.write(PIECE)
        await call.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "slow_reader: too late")

    async def test() -> None:
        async with relayed(write_and_refuse) as here:
            call = here.call()
            assert [await call.read() for _ in range(4)] == [PIECE] * 4
            assert await status_of(call) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "slow_reader: too late")

    in_each_loop(test())
