"""Asking the engine thread for a snapshot."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace

import pytest

from fusewire_server.inspect.engine_thread import EngineBusy
from fusewire_server.inspect.snapshots.snapshot import Snapshot
from fusewire_server.inspect.snapshots.snapshot_reader import TICK_S, SnapshotReader
from tests.patience import HANGS_S
from tests.server.inspect.examples import SNAPSHOT


def _reader_of(publish: Callable[[], Snapshot], deadline_s: float) -> SnapshotReader:
    return SnapshotReader(lambda: asyncio.to_thread(publish), lambda: SNAPSHOT, deadline_s)


class _Publisher:
    """Counts what it publishes, on a thread of its own for each call."""

    def __init__(self) -> None:
        self.published = 0
        self.may_publish = threading.Event()
        self.may_publish.set()

    def publish(self) -> Snapshot:
        self.may_publish.wait(HANGS_S)
        self.published += 1
        return replace(SNAPSHOT, taken_at_ns=self.published)

    def reader(self, deadline_s: float = 10.0) -> SnapshotReader:
        return _reader_of(self.publish, deadline_s)


def test_every_request_gets_a_snapshot_that_is_taken_for_it() -> None:
    async def test() -> list[int]:
        return [(await reader.fresh()).taken_at_ns for _ in range(3)]

    reader = _Publisher().reader()
    assert asyncio.run(test()) == [1, 2, 3]


def test_requests_at_the_same_time_share_a_snapshot() -> None:
    async def test() -> list[Snapshot]:
        publisher.may_publish.clear()
        asked = [asyncio.ensure_future(reader.fresh()) for _ in range(5)]
        await asyncio.sleep(0)
        publisher.may_publish.set()
        return await asyncio.gather(*asked)

    publisher = _Publisher()
    reader = publisher.reader()
    assert len(asyncio.run(test())) == 5
    assert publisher.published == 1


def test_many_requests_one_after_another_get_a_snapshot_each_tick_and_each_one_of_its_own() -> None:
    async def test() -> float:
        loop = asyncio.get_running_loop()
        begun_s = loop.time()
        for _ in range(4):
            await reader.fresh()
        return loop.time() - begun_s

    publisher = _Publisher()
    reader = publisher.reader()
    assert asyncio.run(test()) >= 3 * TICK_S
    assert publisher.published == 4


def test_a_busy_engine_thread_is_not_waited_for_and_answers_the_next_request() -> None:
    async def test() -> int:
        publisher.may_publish.clear()
        with pytest.raises(EngineBusy, match="busy"):
            await reader.fresh()
        publisher.may_publish.set()
        reader._deadline_s = 10.0
        return (await reader.fresh()).taken_at_ns

    publisher = _Publisher()
    reader = publisher.reader(deadline_s=0.01)
    assert asyncio.run(test()) == 1


def test_after_a_snapshot_that_fails_the_next_request_is_answered() -> None:
    async def test() -> int:
        with pytest.raises(ZeroDivisionError):
            await reader.fresh()
        return (await reader.fresh()).taken_at_ns

    failures = [ZeroDivisionError()]

    def publish() -> Snapshot:
        if failures:
            raise failures.pop()
        return replace(SNAPSHOT, taken_at_ns=1)

    reader = _reader_of(publish, 10.0)
    assert asyncio.run(test()) == 1
