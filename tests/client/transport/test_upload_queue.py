"""Chunks between threads: bounded, whatever becomes of the connection."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from fusewire._transport import upload_queue
from fusewire._transport.upload_queue import ByteBudget, Pieces, UploadQueue
from fusewire_protos.chunks import decode_chunk, encode_chunk
from tests.patience import HANGS_S

CHUNK = memoryview(bytes(10))


def queue_of(budget: ByteBudget, chunks: int = 3) -> UploadQueue:
    return UploadQueue(asyncio.get_running_loop(), budget, chunks * CHUNK.nbytes)


def put_three(queue: UploadQueue) -> bool:
    queue.fill([CHUNK] * 3)
    queue.finish()
    return queue.is_cut()


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


def test_of_an_upload_that_is_not_kept_a_chunk_gives_back_its_room_when_the_next_is_asked_for() -> None:
    async def carry() -> list[int]:
        queue = queue_of(ByteBudget(20))
        copying = threading.Thread(target=put_three, args=(queue,))
        copying.start()
        offsets: list[int] = []
        while (message := await queue.next()) is not None:
            offsets.append(10 * len(offsets))
            assert decode_chunk(b"".join(message), offsets[-1]) == CHUNK
        queue.end(is_cut=False)
        copying.join(10)
        return offsets

    assert asyncio.run(carry()) == [0, 10, 20]


def test_an_upload_that_is_kept_has_its_room_until_the_server_has_it() -> None:
    async def carry() -> None:
        budget = ByteBudget(30)
        queue = queue_of(budget)
        put_three(queue)
        for _ in range(4):
            await queue.next()
        assert budget._queued_bytes.total() == 30
        queue.end(is_cut=False)
        await queue.drain()
        assert budget._queued_bytes.total() == 0

    asyncio.run(carry())


def test_two_uploads_that_fit_alone_do_not_wait_for_each_other_half_copied() -> None:
    async def carry() -> None:
        budget = ByteBudget(30)
        first, second = queue_of(budget), queue_of(budget)
        put_three(first)
        copying = threading.Thread(target=put_three, args=(second,))
        copying.start()
        first.end(is_cut=False)
        await first.drain()
        assert await asyncio.wait_for(second.next(), 10) == (encode_chunk(0, CHUNK),)
        copying.join(10)

    asyncio.run(carry())


def test_the_chunks_of_an_upload_that_is_sent_again_are_given_again_in_order() -> None:
    async def carry() -> list[Pieces | None]:
        queue = queue_of(ByteBudget(100))
        put_three(queue)
        await queue.next()
        await queue.next()
        queue.send_again()
        return [await queue.next() for _ in range(4)]

    again = asyncio.run(carry())
    assert again == [(encode_chunk(0, CHUNK),), (encode_chunk(10, CHUNK),), (encode_chunk(20, CHUNK),), None]


@pytest.mark.parametrize("is_cut", [True, False])
def test_whose_upload_is_not_kept_waits_and_is_told_whether_to_copy_it_anew(is_cut: bool) -> None:
    async def carry() -> bool:
        queue = queue_of(ByteBudget(20))
        with ThreadPoolExecutor(1) as pool:
            copying = pool.submit(put_three, queue)
            await queue.next()
            assert not copying.done()
            queue.end(is_cut=is_cut)
            await queue.drain()
            return copying.result(10)

    assert asyncio.run(carry()) is is_cut


def test_a_chunk_may_change_once_it_is_put() -> None:
    async def carry() -> Pieces | None:
        queue = queue_of(ByteBudget(10), chunks=1)
        data = bytearray(CHUNK)
        queue.fill([memoryview(data)])
        data[0] = 1
        return await queue.next()

    message = asyncio.run(carry())
    assert message is not None
    assert decode_chunk(b"".join(message), 0) == CHUNK


def test_chunks_that_are_not_copied_take_no_room_and_are_sent_from_where_they_are() -> None:
    async def carry() -> list[Pieces | None]:
        queue = queue_of(ByteBudget(5))
        queue.fill([CHUNK] * 3, is_copied=False)  # would wait for room
        queue.finish()
        return [await queue.next() for _ in range(4)]

    *pieces, end = asyncio.run(carry())
    assert end is None
    for number, message in enumerate(pieces):
        assert message is not None
        assert decode_chunk(b"".join(message), 10 * number) == CHUNK
        assert message[-1] is CHUNK


def test_an_upload_that_is_given_up_ends_before_its_next_chunk() -> None:
    async def carry() -> None:
        budget = ByteBudget(30)
        queue = queue_of(budget)
        queue.fill([CHUNK] * 2)
        assert await queue.next() is not None
        queue.give_up()
        assert await queue.next() is None
        await asyncio.wait_for(queue.drain(), 10)
        assert budget._queued_bytes.total() == 0

    asyncio.run(carry())


def test_an_upload_that_is_given_up_wakes_who_awaits_its_next_chunk() -> None:
    async def carry() -> None:
        queue = queue_of(ByteBudget(30))
        waiting = asyncio.create_task(queue.next())
        await asyncio.sleep(0)
        queue.give_up()
        assert await asyncio.wait_for(waiting, 10) is None

    asyncio.run(carry())


def test_a_drained_queue_keeps_nobody_waiting() -> None:
    async def drain() -> None:
        queue = queue_of(ByteBudget(10))
        copying = threading.Thread(target=put_three, args=(queue,))
        copying.start()
        await queue.next()
        queue.end(is_cut=False)
        await queue.drain()
        copying.join(10)

    asyncio.run(asyncio.wait_for(drain(), 10))


@pytest.mark.parametrize("room_bytes", [10, 30])
def test_a_chunk_that_could_not_be_copied_gives_back_its_room_with_its_upload(
    room_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lack_memory(*_: object) -> bytes:
        raise MemoryError

    async def carry() -> None:
        queue = queue_of(budget)
        with pytest.raises(MemoryError):
            queue.fill([CHUNK] * 3)
        queue.finish()
        await asyncio.wait_for(queue.drain(), 10)

    budget = ByteBudget(room_bytes)
    monkeypatch.setattr(upload_queue, "encode_chunk", lack_memory)
    asyncio.run(carry())
    assert budget._queued_bytes.total() == 0


def test_an_upload_that_has_ended_is_drained_at_once() -> None:
    async def carry() -> None:
        queue = queue_of(ByteBudget(10))
        queue.finish()
        assert await queue.next() is None
        await asyncio.wait_for(queue.drain(), 10)

    asyncio.run(carry())
