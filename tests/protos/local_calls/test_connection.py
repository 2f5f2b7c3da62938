"""A connection carries parts both ways, waits for a side that does not read, and ends when the other side has gone."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fusewire_protos.local_calls import connection as connections
from fusewire_protos.local_calls.connection import LocalConnection, connect
from fusewire_protos.local_calls.part_socket import SILENT
from fusewire_protos.local_calls.parts import Part, PartKind, head_of
from tests.event_loops import Run

MOST_BYTES = 8 << 20
MANY = 2000


class Pair(NamedTuple):
    one: LocalConnection
    other: LocalConnection


@asynccontextmanager
async def pair(*, is_admitted: bool = True) -> AsyncIterator[Pair]:
    """Two ends of one connection. `is_admitted` is said of the other one."""
    first, second = socket.socketpair()
    one, other = LocalConnection(first, MOST_BYTES), LocalConnection(second, MOST_BYTES, is_admitted=is_admitted)
    try:
        yield Pair(one, other)
    finally:
        for end in (one, other):
            end.abort()
            await end.over()


@asynccontextmanager
async def end_and_socket(*, is_admitted: bool = True) -> AsyncIterator[tuple[LocalConnection, socket.socket]]:
    """A connection, and the bare socket at its other end."""
    bare, own = socket.socketpair()
    bare.setblocking(False)
    end = LocalConnection(own, MOST_BYTES, is_admitted=is_admitted)
    with bare:
        try:
            yield end, bare
        finally:
            end.abort()
            await end.over()


async def turns(count: int = 50) -> None:
    """Lets everything happen that is ready to happen."""
    for _ in range(count):
        await asyncio.sleep(0)


async def filled(end: LocalConnection) -> list[asyncio.Task[None]]:
    """Sends until the other side, which does not read, takes no more. Returns what sends."""
    sending = []
    while end._socket.room.is_set():
        sending.append(asyncio.create_task(end.send(PartKind.MESSAGE, bytes(1 << 20))))
        await turns()
    return sending


def test_parts_come_in_their_order_both_ways(in_each_loop: Run) -> None:
    sizes = [0, 1, (16 << 10) - 1, 16 << 10, (1 << 20) + 1, 5 << 20, 3]

    async def send(end: LocalConnection, fill: bytes) -> None:
        for size in sizes:
            await end.send(PartKind.MESSAGE, fill * size)
        await end.send(PartKind.END)

    async def receive(end: LocalConnection, fill: bytes) -> None:
        for size in sizes:
            assert await end.receive() == Part(PartKind.MESSAGE, fill * size)
        assert await end.receive() == Part(PartKind.END, b"")

    async def test() -> None:
        async with pair() as (one, other):
            await asyncio.gather(send(one, b"a"), receive(other, b"a"), send(other, b"b"), receive(one, b"b"))

    in_each_loop(test())


@given(st.lists(st.binary(max_size=200), max_size=60), st.integers(0, 60))
@settings(max_examples=25)
def test_what_was_sent_before_a_close_arrives_whole(messages: list[bytes], read_first: int) -> None:
    async def test() -> None:
        async with pair() as (one, other):
            for message in messages:
                await one.send(PartKind.MESSAGE, message)
            came = [await other.receive() for _ in messages[:read_first]]
            one.close()
            while (part := await other.receive()) is not None:
                came.append(part)
            assert came == [Part(PartKind.MESSAGE, message) for message in messages]
            assert await other.receive() is None

    asyncio.run(test())


def test_who_sends_waits_until_the_other_side_reads(in_each_loop: Run) -> None:
    async def test() -> None:
        async with pair() as (one, other):
            sent = []

            async def send_all() -> None:
                for number in range(MANY):
                    await one.send(PartKind.MESSAGE, bytes(32 << 10))
                    sent.append(number)

            sending = asyncio.create_task(send_all())
            await turns()
            assert len(sent) < MANY / 2
            assert other._socket._unread_bytes < 2 << 20
            for _ in range(MANY):
                assert await other.receive() == Part(PartKind.MESSAGE, bytes(32 << 10))
            await sending

    in_each_loop(test())


def test_a_sender_that_gives_up_leaves_the_others_waiting(in_each_loop: Run) -> None:
    async def test() -> None:
        async with pair() as (one, other):
            filling = await filled(one)
            early, late = [asyncio.create_task(one.send(PartKind.STATUS, mark)) for mark in (b"early", b"late")]
            await turns()
            early.cancel()
            await asyncio.gather(early, return_exceptions=True)
            await turns()
            assert not late.done()
            while (part := await other.receive()) is not None and part.kind is PartKind.MESSAGE:
                pass
            assert part == Part(PartKind.STATUS, b"late")
            await asyncio.gather(late, *filling)

    in_each_loop(test())


@pytest.mark.parametrize("length", [0, 1, 100])
def test_many_short_messages_that_nobody_takes_take_little_memory(in_each_loop: Run, length: int) -> None:
    async def test() -> None:
        async with end_and_socket() as (end, bare):
            flood, sent, idle = (head_of(PartKind.MESSAGE, length) + bytes(length)) * 4096, 0, 0
            while idle < 50 and sent < 256 << 20:
                try:
                    sent += bare.send(flood[sent % (length + 5) :])
                    idle = 0
                except BlockingIOError:
                    idle += 1
                await asyncio.sleep(0)
            assert idle == 50, "nothing holds the flood back"
            assert len(end._socket._parts) * 128 < 8 << 20

    in_each_loop(test())


@pytest.mark.parametrize("kind", [PartKind.PING, PartKind.MESSAGE])
def test_a_flood_of_short_parts_leaves_the_event_loop_its_turns(in_each_loop: Run, kind: PartKind) -> None:
    async def test() -> None:
        async with pair() as (_, other):
            other._socket._find_parts(head_of(kind, 0) * 50_000)
            turns_taken = 0
            while other._socket._may_hold_parts:
                if kind is PartKind.MESSAGE:
                    while other._socket._parts:
                        assert await other.receive() == Part(kind, b"")
                await asyncio.sleep(0)
                turns_taken += 1
            assert turns_taken >= 50_000 // 1024

    in_each_loop(test())


def test_pings_are_received_by_nobody(in_each_loop: Run) -> None:
    async def test() -> None:
        async with pair() as (one, other):
            await one.send(PartKind.PING)
            await one.send(PartKind.MESSAGE, b"x")
            await one.send(PartKind.PING)
            await one.send(PartKind.END)
            assert await other.receive() == Part(PartKind.MESSAGE, b"x")
            assert await other.receive() == Part(PartKind.END, b"")

    in_each_loop(test())


def test_who_is_not_admitted_is_read_no_further_than_its_first_part(in_each_loop: Run) -> None:
    async def test() -> None:
        async with end_and_socket(is_admitted=False) as (end, bare):
            first = head_of(PartKind.OPEN, 3) + b"who"
            long = head_of(PartKind.MESSAGE, 4 << 20) + bytes(4 << 20)
            await asyncio.sleep(0)
            sending = asyncio.create_task(asyncio.get_running_loop().sock_sendall(bare, first + long))
            assert await end.receive() == Part(PartKind.OPEN, b"who")
            await turns()
            assert not sending.done()
            assert end._socket._reader.held_bytes < 1 << 20
            end.read_on()
            part = await end.receive()
            assert part is not None
            assert len(part.raw) == 4 << 20
            await sending

    in_each_loop(test())


def test_a_ping_does_not_pass_for_a_first_part(in_each_loop: Run) -> None:
    async def test() -> None:
        async with end_and_socket(is_admitted=False) as (end, bare):
            bare.send(head_of(PartKind.PING, 0) * 2)
            assert await end.receive() == Part(PartKind.PING, b"")

    in_each_loop(test())


@pytest.mark.parametrize(
    "rubbish", [b"\xff" * 64, head_of(PartKind.STATUS, 1 << 30), b"GET / HTTP/1.1\r\n\r\n"], ids=range(3)
)
def test_rubbish_ends_the_connection_with_a_reason(in_each_loop: Run, rubbish: bytes) -> None:
    async def test() -> None:
        async with end_and_socket() as (end, bare):
            bare.send(head_of(PartKind.MESSAGE, 1) + b"x" + rubbish)
            while await end.receive() is not None:
                pass
            assert "a part of" in end.reason
            await end.send(PartKind.MESSAGE, b"into the void")
            assert bare.recv(10) == b""

    in_each_loop(test())


@pytest.mark.parametrize("paused", [False, True])
def test_a_side_that_is_gone_ends_all_waits(in_each_loop: Run, *, paused: bool) -> None:
    async def test() -> None:
        async with pair() as (one, other):
            receiving = asyncio.create_task(one.receive())
            filling = await filled(one) if paused else []
            sending = asyncio.create_task(one.send(PartKind.END))
            leaving = asyncio.create_task(one.over())
            await turns()
            other.abort()
            await asyncio.gather(sending, leaving, *filling)
            assert await receiving is None
            assert await one.receive() is None
            await one.send(PartKind.END)
            one.close()

    in_each_loop(test())


def test_a_close_at_any_point_leaves_neither_side_waiting(in_each_loop: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PING_EVERY_S", 0.02)  # two sides that both close do not read each other's rest

    async def talk(end: LocalConnection) -> None:
        for size in (10, 1 << 20, 0, 3 << 20):
            await end.send(PartKind.MESSAGE, bytes(size))
        while await end.receive() is not None:
            pass

    async def test() -> None:
        for count in range(40):
            for close in (LocalConnection.close, LocalConnection.abort):
                async with pair() as (one, other):
                    talking = [asyncio.create_task(talk(end)) for end in (one, other)]
                    await turns(count)
                    close(one)
                    if close is LocalConnection.close:
                        close(other)
                    await asyncio.gather(*talking)

    in_each_loop(test())


@pytest.mark.parametrize("length", [10, 1 << 20])
def test_a_part_may_be_sent_in_pieces(in_each_loop: Run, length: int) -> None:
    async def test() -> None:
        async with pair() as (one, other):
            sending = asyncio.create_task(one.send(PartKind.MESSAGE, b"he", memoryview(bytes(length)), b"", b"ad"))
            assert await other.receive() == Part(PartKind.MESSAGE, b"he" + bytes(length) + b"ad")
            await sending

    in_each_loop(test())


def test_the_memory_of_a_long_part_may_change_once_it_is_sent_or_given_up(in_each_loop: Run) -> None:
    async def test() -> None:
        async with pair() as (one, other):
            first, second = bytearray(b"a" * (4 << 20)), bytearray(b"b" * (4 << 20))
            await one.send(PartKind.MESSAGE, memoryview(first))
            giving_up = asyncio.create_task(one.send(PartKind.MESSAGE, memoryview(second)))
            await turns()
            assert not giving_up.done()
            giving_up.cancel()
            await asyncio.gather(giving_up, return_exceptions=True)
            first[:] = second[:] = b"c" * (4 << 20)
            assert await other.receive() == Part(PartKind.MESSAGE, b"a" * (4 << 20))
            assert await other.receive() == Part(PartKind.MESSAGE, b"b" * (4 << 20))

    in_each_loop(test())


def test_a_long_message_is_received_where_it_belongs(in_each_loop: Run) -> None:
    memory = memoryview(bytearray(2 << 20))

    async def test() -> None:
        async with pair() as (one, other):
            other.place_by(lambda first, length: (3, memory[: length - 3]) if bytes(first[:3]) == b"to:" else None)
            sending = asyncio.create_task(one.send(PartKind.MESSAGE, b"to:", b"x" * (2 << 20)))
            assert await other.receive() == Part(PartKind.MESSAGE, b"", memory)
            assert bytes(memory) == b"x" * (2 << 20)
            await sending
            sending = asyncio.create_task(one.send(PartKind.MESSAGE, b"other", b"y" * (2 << 20)))
            assert await other.receive() == Part(PartKind.MESSAGE, b"other" + b"y" * (2 << 20))
            assert bytes(memory) == b"x" * (2 << 20)
            await sending

    in_each_loop(test())


def test_a_receiver_that_is_cancelled_takes_no_part_along(in_each_loop: Run) -> None:
    async def test() -> None:
        async with pair() as (one, other):
            waiting = asyncio.create_task(other.receive())
            await turns()
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            await one.send(PartKind.MESSAGE, b"x")
            assert await other.receive() == Part(PartKind.MESSAGE, b"x")

    in_each_loop(test())


def test_silence_is_noticed_after_some_looks(in_each_loop: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PING_EVERY_S", 0.01)

    async def test() -> None:
        async with end_and_socket() as (end, bare):
            assert await end.receive() is None
            assert end.reason == SILENT
            assert bare.recv(100) == head_of(PartKind.PING, 0) * 2

    in_each_loop(test())


def test_two_sides_that_only_ping_go_on(in_each_loop: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "PING_EVERY_S", 0.002)

    async def test() -> None:
        async with pair() as (one, other):
            for _ in range(50):
                look = one._socket._timer
                while one._socket._timer is look:
                    await asyncio.sleep(0)
                    assert not one._socket.is_over.is_set()
            await one.send(PartKind.END)
            assert await other.receive() == Part(PartKind.END, b"")

    in_each_loop(test())


def test_looks_count_and_not_the_time_in_which_this_side_itself_was_stopped(in_each_loop: Run) -> None:
    async def test() -> None:
        async with end_and_socket() as (end, _):
            end._socket._look()  # heard since the beginning: nothing counts
            end._socket._look()
            end._socket._look_later()
            assert not end._socket.is_over.is_set()
            end._socket._look()
            assert await end.receive() is None
            assert end.reason == SILENT

    in_each_loop(test())


def test_who_has_not_taken_what_came_does_not_call_the_other_side_silent(
    in_each_loop: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "PING_EVERY_S", 0.002)

    async def test() -> None:
        async with pair() as (one, other):
            sending = [asyncio.create_task(one.send(PartKind.MESSAGE, bytes(1 << 20))) for _ in range(4)]
            for _ in range(20):
                look = other._socket._timer
                while other._socket._timer is look:  # noqa: ASYNC110 - a look has no event
                    await asyncio.sleep(0)
            for _ in sending:
                assert await other.receive() == Part(PartKind.MESSAGE, bytes(1 << 20))

    in_each_loop(test())


def test_a_name_that_nobody_has_is_refused(in_each_loop: Run) -> None:
    async def test() -> None:
        with pytest.raises(OSError, match="refused"):
            await connect("fusewire-nobody", MOST_BYTES)

    in_each_loop(test())


def test_a_connection_that_is_given_up_while_it_is_made_is_closed(in_each_loop: Run) -> None:
    async def test() -> None:
        with socket.socket(socket.AF_UNIX) as listening:
            listening.bind("\0fusewire-slow")
            listening.listen()
            listening.setblocking(False)
            making = asyncio.create_task(connect("fusewire-slow", MOST_BYTES))
            await asyncio.sleep(0)
            making.cancel()
            with suppress(asyncio.CancelledError):
                (await making).abort()
            accepted, _ = await asyncio.get_running_loop().sock_accept(listening)
            with accepted:
                assert await asyncio.get_running_loop().sock_recv(accepted, 10) == b""

    in_each_loop(test())
