"""Local calls: who may make them, what strangers can do, and how a call begins, is cancelled and ends."""

from __future__ import annotations

import asyncio
import gc
import logging
import os
import resource
import socket
import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import grpc
import pytest

from fusewire_protos.local_calls.connection import LocalConnection, connect
from fusewire_protos.local_calls.parts import (
    Opening,
    Part,
    PartKind,
    Status,
    decode_metadata,
    decode_status,
    encode_opening,
    encode_status,
    head_of,
)
from fusewire_server.transport import local_calls
from fusewire_server.transport.call import Call, Messages, Method
from fusewire_server.transport.local_calls import LOCAL_PEER, LocalCalls
from tests.event_loops import Run
from tests.patience import HANGS_S
from tests.server.world import until

MOST_BYTES = 8 << 20
SESSION = b"s" * 16
OK, CANCELLED = grpc.StatusCode.OK.value[0], grpc.StatusCode.CANCELLED.value[0]


async def echo(messages: Messages, call: Call) -> None:
    async for message in messages:
        await call.write(message)


async def tell(_messages: Messages, call: Call) -> None:
    """Tells what the method sees of its caller."""
    await call.send_initial_metadata(call.invocation_metadata())
    await call.write(call.peer().encode())


async def fail(_messages: Messages, call: Call) -> None:
    await call.write(b"before")
    raise RuntimeError("a bug")


async def abort(_messages: Messages, call: Call) -> None:
    await call.write(b"before")
    await call.abort(grpc.StatusCode.NOT_FOUND, "there is none")


async def end_with_status(_messages: Messages, call: Call) -> None:
    call.set_code(grpc.StatusCode.DATA_LOSS)
    call.set_details("lost")


class Endless:
    """A method that ends only when it is cancelled."""

    def __init__(self) -> None:
        self.has_begun = asyncio.Event()
        self.is_cancelled = asyncio.Event()

    async def __call__(self, _messages: Messages, _call: Call) -> None:
        self.has_begun.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            self.is_cancelled.set()
            raise


METHODS: dict[str, Method] = {"Echo": echo, "Tell": tell, "Fail": fail, "Abort": abort, "End": end_with_status}


@asynccontextmanager
async def listening(**more: Method) -> AsyncIterator[LocalCalls]:
    calls = LocalCalls(MOST_BYTES)
    await calls.start(METHODS | more)
    try:
        yield calls
    finally:
        await calls.stop(0.0)
        assert not calls._tasks


async def opened(calls: LocalCalls, method: str, *, secret: bytes | None = None, **fields: Any) -> LocalConnection:
    connection = await connect(calls.name, MOST_BYTES)
    opening = Opening(method, (), "", calls.secret_of(SESSION) if secret is None else secret)
    await connection.send(PartKind.OPEN, encode_opening(opening._replace(**fields)))
    return connection


async def answers(connection: LocalConnection) -> list[Part]:
    """All that the server says."""
    parts = []
    while (part := await connection.receive()) is not None:
        parts.append(part)
        if part.kind is PartKind.STATUS:
            connection.close()
    return parts


async def status(connection: LocalConnection) -> Status:
    (*_, last) = await answers(connection)
    assert last.kind is PartKind.STATUS
    return decode_status(last.raw)


# ---- how a call goes ----


def test_messages_go_both_ways_and_the_status_comes_last(in_each_loop: Run) -> None:
    sizes = [0, 1, 70_000, 3 << 20]

    async def test() -> None:
        async with listening() as calls:
            call = await opened(calls, "Echo")
            for size in sizes:
                await call.send(PartKind.MESSAGE, b"m" * size)
                assert await call.receive() == Part(PartKind.MESSAGE, b"m" * size)
            for size in sizes:
                await call.send(PartKind.MESSAGE, b"n" * size)
            await call.send(PartKind.END)
            expected = [Part(PartKind.MESSAGE, b"n" * size) for size in sizes]
            assert await answers(call) == [*expected, Part(PartKind.STATUS, encode_status(Status(OK, "")))]

    in_each_loop(test())


def test_a_method_sees_the_metadata_and_that_its_caller_is_here(in_each_loop: Run) -> None:
    async def test() -> None:
        async with listening() as calls:
            received = await answers(
                await opened(calls, "Tell", metadata=(("a", "1"), ("b", "2")), peer="ipv4:9.9.9.9:1")
            )
            assert decode_metadata(received[0].raw) == (("a", "1"), ("b", "2"))
            assert received[1].raw.decode() == LOCAL_PEER

    in_each_loop(test())


def test_a_front_end_tells_where_its_client_is(in_each_loop: Run) -> None:
    async def test() -> None:
        async with listening() as calls:
            call = await opened(calls, "Tell", secret=calls.front_end_secret, peer="ipv4:9.9.9.9:1")
            assert (await answers(call))[1].raw == b"ipv4:9.9.9.9:1"

    in_each_loop(test())


@pytest.mark.parametrize(
    ("method", "code", "details"),
    [
        ("Abort", grpc.StatusCode.NOT_FOUND, "there is none"),
        ("End", grpc.StatusCode.DATA_LOSS, "lost"),
        ("Fail", grpc.StatusCode.UNKNOWN, "the method failed"),
    ],
)
def test_a_method_ends_its_call_with_its_status(
    in_each_loop: Run, method: str, code: grpc.StatusCode, details: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def test() -> None:
        async with listening() as calls:
            assert await status(await opened(calls, method)) == Status(code.value[0], details)

    with caplog.at_level(logging.ERROR):
        in_each_loop(test())
    assert ("a bug" in caplog.text) == (method == "Fail")


def test_what_a_failed_method_held_is_freed_without_the_garbage_collector(in_each_loop: Run) -> None:
    class Held:
        pass

    held: list[weakref.ref[Held]] = []

    async def hold(_messages: Messages, call: Call) -> None:
        large = Held()
        held.append(weakref.ref(large))
        await call.abort(grpc.StatusCode.NOT_FOUND, "there is none")

    async def hold_on(_messages: Messages, _call: Call) -> None:
        large = Held()
        held.append(weakref.ref(large))
        await asyncio.Event().wait()

    async def test() -> None:
        async with listening(Hold=hold, HoldOn=hold_on) as calls:
            await status(await opened(calls, "Hold"))
            left = await opened(calls, "HoldOn")
            await until(lambda: len(held) == 2)
            left.abort()
            await until(lambda: not calls._tasks)
            assert [reference() for reference in held] == [None, None]

    gc.disable()
    try:
        in_each_loop(test())
    finally:
        gc.enable()


# ---- who may make calls ----


@pytest.mark.parametrize(
    "wrong",
    [
        lambda _: b"",
        lambda _: bytes(32),
        lambda _: SESSION,
        lambda _: SESSION + bytes(32),
        lambda calls: calls.secret_of(SESSION)[:-1],
        lambda calls: calls.secret_of(SESSION)[1:],
        lambda calls: calls.secret_of(SESSION) + b"x",
        lambda calls: b"t" * 16 + calls.secret_of(SESSION)[16:],
        lambda calls: SESSION + calls.front_end_secret,
        lambda calls: calls.front_end_secret[:-1],
        lambda _: LocalCalls(MOST_BYTES).secret_of(SESSION),
        lambda _: LocalCalls(MOST_BYTES).front_end_secret,
    ],
    ids=range(12),
)
def test_who_does_not_know_a_secret_is_refused(in_each_loop: Run, wrong: Callable[[LocalCalls], bytes]) -> None:
    async def test() -> None:
        async with listening() as calls:
            call = await opened(calls, "Echo", secret=wrong(calls))
            await call.send(PartKind.MESSAGE, b"let me in")
            denied = Status(grpc.StatusCode.PERMISSION_DENIED.value[0], "the secret is wrong")
            assert await answers(call) == [Part(PartKind.STATUS, encode_status(denied))]

    in_each_loop(test())


@pytest.mark.parametrize("method", ["", "Ech", "echo", "/fusewire.v1.Fusewire/Echo", "__class__"])
def test_an_unknown_method_is_refused(in_each_loop: Run, method: str) -> None:
    async def test() -> None:
        async with listening() as calls:
            answer = await status(await opened(calls, method))
            assert answer == Status(grpc.StatusCode.UNIMPLEMENTED.value[0], f"there is no method {method}")

    in_each_loop(test())


# ---- strangers ----


@asynccontextmanager
async def stranger(calls: LocalCalls) -> AsyncIterator[socket.socket]:
    with socket.socket(socket.AF_UNIX) as bare:
        bare.setblocking(False)
        bare.connect(f"\0{calls.name}")
        yield bare


async def heard(bare: socket.socket) -> bytes:
    """All that a server says to a stranger until it closes the connection."""
    loop, received = asyncio.get_running_loop(), b""
    try:
        while data := await loop.sock_recv(bare, 1 << 16):
            received += data
    except ConnectionResetError:
        pass
    return received


def test_who_connects_and_says_nothing_is_shown_out(in_each_loop: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_calls, "OPENING_DEADLINE_S", 0.02)
    monkeypatch.setattr(local_calls, "_REFUSED_CLOSING_S", 0.02)

    async def test() -> None:
        async with listening() as calls, stranger(calls) as bare:
            assert b"no call was opened within" in await heard(bare)
            await until(lambda: not calls._tasks)
            assert await status(await opened(calls, "End")) == Status(grpc.StatusCode.DATA_LOSS.value[0], "lost")

    in_each_loop(test())


def test_who_says_only_half_of_an_opening_is_shown_out(in_each_loop: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_calls, "OPENING_DEADLINE_S", 0.02)
    monkeypatch.setattr(local_calls, "_REFUSED_CLOSING_S", 0.02)

    async def test() -> None:
        async with listening() as calls, stranger(calls) as bare:
            bare.send(head_of(PartKind.OPEN, 100) + bytes(99))
            assert b"no call was opened within" in await heard(bare)

    in_each_loop(test())


@pytest.mark.parametrize(
    "rubbish",
    [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        bytes(range(255, 0, -1)),
        head_of(PartKind.OPEN, (1 << 32) - 1),
        head_of(PartKind.OPEN, 3) + b"\xc1\xc1\xc1",
        head_of(PartKind.OPEN, 0),
        head_of(PartKind.MESSAGE, 0),
        head_of(PartKind.MESSAGE, MOST_BYTES),
        head_of(PartKind.PING, 0) * 3,
        head_of(PartKind.END, 0),
        head_of(PartKind.STATUS, 1) + b"x",
    ],
    ids=range(10),
)
def test_rubbish_begins_no_call(in_each_loop: Run, rubbish: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_calls, "OPENING_DEADLINE_S", 0.05)
    monkeypatch.setattr(local_calls, "_REFUSED_CLOSING_S", 0.02)

    async def test() -> None:
        async with listening() as calls:
            async with stranger(calls) as bare:
                bare.send(rubbish)
                received = await heard(bare)
                assert not received or b"out_of_turn" in received or b"undecodable_frame" in received
            await until(lambda: not calls._tasks)
            assert await status(await opened(calls, "End")) == Status(grpc.StatusCode.DATA_LOSS.value[0], "lost")

    in_each_loop(test())


@pytest.mark.parametrize("kind", [PartKind.OPEN, PartKind.MESSAGE, PartKind.PING])
def test_strangers_fill_little_memory_whatever_they_send(
    in_each_loop: Run, kind: PartKind, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_calls, "_REFUSED_CLOSING_S", HANGS_S)
    made: list[LocalConnection] = []
    begin = LocalCalls._begin

    def seen(self: LocalCalls, connection: LocalConnection) -> None:
        made.append(connection)
        begin(self, connection)

    monkeypatch.setattr(LocalCalls, "_begin", seen)

    async def push(bare: socket.socket) -> int:
        data = encode_opening(Opening("Echo", (), "", b"wrong"))
        first = head_of(kind, len(data) if kind is PartKind.OPEN else 0) + (data if kind is PartKind.OPEN else b"")
        flood, pushed, idle = first + (head_of(PartKind.MESSAGE, 1 << 20) + bytes(1 << 20)) * 16, 0, 0
        while pushed < len(flood) and idle < 200:
            try:
                pushed += bare.send(flood[pushed : pushed + (64 << 10)])
                idle = 0
            except (BlockingIOError, BrokenPipeError, ConnectionResetError):
                idle += 1
            await asyncio.sleep(0)
        return pushed

    async def test() -> None:
        async with listening() as calls, stranger(calls) as one, stranger(calls) as two:
            assert max(await push(one), await push(two)) < 2 << 20
            for connection in made:
                assert connection._socket._reader.held_bytes + connection._socket._unread_bytes < 1 << 20

    in_each_loop(test())


def test_a_caller_that_is_refused_and_goes_on_sending_is_cut_off(
    in_each_loop: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_calls, "_REFUSED_CLOSING_S", 0.02)

    async def test() -> None:
        async with listening() as calls:
            call = await opened(calls, "Echo", secret=b"wrong")
            while not call._socket.is_over.is_set():
                await call.send(PartKind.MESSAGE, bytes(1 << 16))
                await asyncio.sleep(0)
            await until(lambda: not calls._tasks)

    in_each_loop(test())


def test_descriptors_come_back_from_strangers_and_from_callers(
    in_each_loop: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_calls, "_REFUSED_CLOSING_S", 0.01)

    async def test() -> None:
        async with listening() as calls:
            await status(await opened(calls, "Abort"))
            before = len(os.listdir("/proc/self/fd"))  # noqa: PTH208 - counts
            for _ in range(50):
                async with stranger(calls) as bare:
                    bare.send(b"rubbish")
                await status(await opened(calls, "Abort"))
                (await opened(calls, "Echo")).abort()
                (await opened(calls, "Echo", secret=b"")).abort()
            await until(lambda: not calls._tasks)
            await until(lambda: len(os.listdir("/proc/self/fd")) <= before)  # noqa: PTH208 - counts

    in_each_loop(test())


def test_a_caller_is_served_although_no_descriptor_is_left(in_each_loop: Run) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)

    async def test() -> None:
        async with listening() as calls, stranger(calls) as one:
            await until(lambda: bool(calls._tasks))
            with socket.socket(socket.AF_UNIX) as two:  # has its descriptor before there are none
                resource.setrlimit(resource.RLIMIT_NOFILE, (max(map(int, os.listdir("/proc/self/fd"))), hard))  # noqa: PTH208
                with suppress(OSError):  # too many open files
                    while True:
                        held.append(os.open(os.devnull, os.O_RDONLY))
                two.setblocking(False)
                two.connect(f"\0{calls.name}")
                await until(lambda: len(calls._tasks) == 2)
            one.close()

    held: list[int] = []
    try:
        in_each_loop(test())
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for descriptor in held:
            os.close(descriptor)


# ---- callers that are gone, or do not read ----


@pytest.mark.parametrize("leave", [LocalConnection.close, LocalConnection.abort])
def test_a_caller_that_is_gone_cancels_the_method(in_each_loop: Run, leave: Callable[[LocalConnection], None]) -> None:
    async def test() -> None:
        method = Endless()
        async with listening(Endless=method) as calls:
            call = await opened(calls, "Endless")
            await method.has_begun.wait()
            assert not method.is_cancelled.is_set()
            leave(call)
            await method.is_cancelled.wait()
            await until(lambda: not calls._tasks)

    in_each_loop(test())


def test_a_caller_that_is_gone_cancels_a_method_that_writes(in_each_loop: Run) -> None:
    is_cancelled = asyncio.Event()

    async def pour(_messages: Messages, call: Call) -> None:
        try:
            while True:
                await call.write(bytes(1 << 20))
        except asyncio.CancelledError:
            is_cancelled.set()
            raise

    async def test() -> None:
        async with listening(Pour=pour) as calls:
            call = await opened(calls, "Pour")
            await call.receive()
            call.abort()
            await is_cancelled.wait()
            await until(lambda: not calls._tasks)

    in_each_loop(test())


def test_the_status_reaches_a_caller_that_reads_late(in_each_loop: Run) -> None:
    async def pour(_messages: Messages, call: Call) -> None:
        for number in range(64):
            await call.write(bytes([number]) * (64 << 10))

    async def test() -> None:
        async with listening(Pour=pour) as calls:
            call = await opened(calls, "Pour")
            await until(lambda: call._socket._is_reading_paused)
            received = await answers(call)
            assert [part.raw[:1] for part in received[:-1]] == [bytes([number]) for number in range(64)]
            assert decode_status(received[-1].raw) == Status(OK, "")

    in_each_loop(test())


def test_a_caller_that_never_reads_its_status_is_cut_off(in_each_loop: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local_calls, "_CLOSING_S", 0.05)

    async def refuse(_messages: Messages, call: Call) -> None:
        await call.abort(grpc.StatusCode.NOT_FOUND, "there is none")

    async def test() -> None:
        async with listening(Refuse=refuse) as calls, stranger(calls) as bare:
            opening = encode_opening(Opening("Refuse", (), "", calls.secret_of(SESSION)))
            bare.send(head_of(PartKind.OPEN, len(opening)) + opening)
            await until(lambda: calls._tasks)
            await until(lambda: not calls._tasks)

    in_each_loop(test())


def test_a_write_that_is_given_up_keeps_nothing_from_ending_the_call(
    in_each_loop: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_calls, "_CLOSING_S", 0.05)

    async def give_up(_messages: Messages, call: Call) -> None:
        try:
            async with asyncio.timeout(0.01):
                while True:
                    await call.write(bytes(1 << 20))
        except TimeoutError:
            await call.abort(grpc.StatusCode.RESOURCE_EXHAUSTED, "slow_reader: nobody reads")

    async def test() -> None:
        async with listening(GiveUp=give_up) as calls:
            reader = await opened(calls, "GiveUp")
            await until(lambda: reader._socket._is_reading_paused)
            answer = await status(reader)
            assert answer == Status(grpc.StatusCode.RESOURCE_EXHAUSTED.value[0], "slow_reader: nobody reads")
            async with stranger(calls) as bare:
                opening = encode_opening(Opening("GiveUp", (), "", calls.secret_of(SESSION)))
                bare.send(head_of(PartKind.OPEN, len(opening)) + opening)
                await until(lambda: calls._tasks)
                await until(lambda: not calls._tasks)

    in_each_loop(test())


# ---- the end of the server ----


def test_a_server_that_stops_waits_for_its_calls_and_then_ends_them(in_each_loop: Run) -> None:
    async def test() -> None:
        method, calls = Endless(), LocalCalls(MOST_BYTES)
        await calls.start({"Endless": method})
        call = await opened(calls, "Endless")
        await method.has_begun.wait()
        stopping = asyncio.create_task(calls.stop(0.05))
        answer = await status(call)
        assert answer == Status(grpc.StatusCode.UNAVAILABLE.value[0], "the server ends the call")
        await stopping
        assert method.is_cancelled.is_set()
        with pytest.raises(OSError, match="refused"):
            await connect(calls.name, MOST_BYTES)

    in_each_loop(test())


def test_a_server_stops_beside_callers_that_do_not_read_and_strangers(in_each_loop: Run) -> None:
    async def pour(_messages: Messages, call: Call) -> None:
        while True:
            await call.write(bytes(1 << 20))

    async def test() -> None:
        calls = LocalCalls(MOST_BYTES)
        await calls.start({"Pour": pour})
        async with stranger(calls), stranger(calls) as bare:
            opening = encode_opening(Opening("Pour", (), "", calls.secret_of(SESSION)))
            bare.send(head_of(PartKind.OPEN, len(opening)) + opening)
            await until(lambda: len(calls._tasks) == 2)
            async with asyncio.timeout(5):
                await calls.stop(0.0)
            assert not calls._tasks

    in_each_loop(test())


def test_a_server_that_never_listened_stops(in_each_loop: Run) -> None:
    in_each_loop(LocalCalls(MOST_BYTES).stop(0.0))
