"""Chunks between threads: bounded, whatever becomes of the connection."""

from __future__ import annotations

import asyncio
import threading

import pytest

from fusewire._transport import upload_queue
from fusewire._transport.upload_queue import ByteBudget, UploadQueue
from fusewire_protos.chunks import decode_chunk, encode_chunk
from tests.patience import HANGS_S

CHUNK = memoryview(bytes(10))


def put_three(queue: UploadQueue) -> None:
    for _ in range(3):
        queue.put(CHUNK)
    queue.finish()


def test_a_chunk_for_which_there_is_no_room_waits_until_one_has_gone() -> None:
    budget = ByteBudget(25)
    assert budget.add("a", 10)
    assert budget.add("b", 10)
    added = threading.Event()

    def add() -> None:
        budget.add("b", 10)
        added.set()

    thread = threading.Thread(target=add)
    thread.start()
    assert not added.wait(0.05)
    budget.take("a", 10)
    assert added.wait(HANGS_S)
    thread.join(10)


def test_a_chunk_larger_than_all_the_room_waits_to_be_alone() -> None:
    assert ByteBudget(5).add("a", 10)


def test_after_the_end_nobody_waits_and_nothing_is_taken() -> None:
    budget = ByteBudget(10)
    budget.add("a", 10)
    waiting = threading.Thread(target=budget.add, args=("a", 10))
    waiting.start()
    budget.end()
    waiting.join(10)
    assert not waiting.is_alive()
    assert not budget.add("a", 1)


def test_once_accepted_a_chunk_gives_back_its_room_when_the_next_is_asked_for() -> None:
    async def carry() -> list[int]:
        budget = ByteBudget(10)
        queue = UploadQueue(asyncio.get_running_loop(), budget)
        queue.accept()
        copying = threading.Thread(target=put_three, args=(queue,))
        copying.start()
        offsets: list[int] = []
        while (message := await queue.next()) is not None:
            offsets.append(10 * len(offsets))
            assert decode_chunk(message, offsets[-1]) == CHUNK
        copying.join(10)
        return offsets

    assert asyncio.run(carry()) == [0, 10, 20]


def test_until_the_upload_is_accepted_its_chunks_keep_their_room() -> None:
    async def carry() -> None:
        queue = UploadQueue(asyncio.get_running_loop(), ByteBudget(20))
        copying = threading.Thread(target=put_three, args=(queue,))
        copying.start()
        assert [await queue.next(), await queue.next()] == [encode_chunk(0, CHUNK), encode_chunk(10, CHUNK)]
        third = asyncio.create_task(queue.next())
        assert not (await asyncio.wait((third,), timeout=0.05))[0]
        queue.accept()
        assert await asyncio.wait_for(third, 10) == encode_chunk(20, CHUNK)
        copying.join(10)

    asyncio.run(carry())


def test_the_chunks_of_an_upload_that_was_not_accepted_are_given_again_in_order() -> None:
    async def carry() -> list[bytes | None]:
        queue = UploadQueue(asyncio.get_running_loop(), ByteBudget(100))
        put_three(queue)
        await queue.next()
        await queue.next()
        queue.send_again()
        return [await queue.next() for _ in range(4)]

    again = asyncio.run(carry())
    assert again == [encode_chunk(0, CHUNK), encode_chunk(10, CHUNK), encode_chunk(20, CHUNK), None]


def test_a_chunk_may_change_once_it_is_put() -> None:
    async def carry() -> bytes | None:
        queue = UploadQueue(asyncio.get_running_loop(), ByteBudget(10))
        data = bytearray(CHUNK)
        queue.put(memoryview(data))
        data[0] = 1
        return await queue.next()

    message = asyncio.run(carry())
    assert message is not None
    assert decode_chunk(message, 0) == CHUNK


def test_a_drained_queue_keeps_nobody_waiting() -> None:
    async def drain() -> None:
        queue = UploadQueue(asyncio.get_running_loop(), ByteBudget(10))
        copying = threading.Thread(target=put_three, args=(queue,))
        copying.start()
        await queue.next()
        await queue.drain()
        copying.join(10)

    asyncio.run(asyncio.wait_for(drain(), 10))


def test_a_chunk_that_could_not_be_copied_gives_back_its_room_with_its_upload(monkeypatch: pytest.MonkeyPatch) -> None:
    def lack_memory(*_: object) -> bytes:
        raise MemoryError

    async def carry() -> None:
        queue = UploadQueue(asyncio.get_running_loop(), budget)
        with pytest.raises(MemoryError):
            queue.put(CHUNK)
        queue.finish()
        await asyncio.wait_for(queue.drain(), 10)

    budget = ByteBudget(10)
    monkeypatch.setattr(upload_queue, "encode_chunk", lack_memory)
    asyncio.run(carry())
    adding = threading.Thread(target=budget.add, args=("another", 10))
    adding.start()
    adding.join(10)
    has_waited = adding.is_alive()
    budget.end()
    assert not has_waited


def test_an_upload_that_has_ended_is_drained_at_once() -> None:
    async def carry() -> None:
        queue = UploadQueue(asyncio.get_running_loop(), ByteBudget(10))
        queue.finish()
        assert await queue.next() is None
        await asyncio.wait_for(queue.drain(), 10)

    asyncio.run(carry())
