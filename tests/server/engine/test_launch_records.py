"""The ring of records: what a record has, when it is kept, and that it stays bounded."""

from __future__ import annotations

import pytest

from fusewire_protos.frames import Fetch
from fusewire_server.engine import launch_records
from fusewire_server.engine.launch_records import REASONS, RECORD, WATCHED_NS, Records
from tests.server.parts import segment
from tests.server.world import NEGATE, World, run, world


def read(here: World, before: Records | None = None, now_ns: int = 1) -> Records:
    watch, position = (0, 0) if before is None else (before.watch, before.following)
    sessions = here.engine.sessions
    return here.engine.launch_records.read(watch, position, 1 << 20, sessions, now_ns)


async def together(here: World, base: int, *names: str) -> None:
    """Runs a row of each of these sessions in one submission."""
    clients = [here.client(name) for name in names]
    here.engine.hold()
    for client in clients:
        client.send(segment(NEGATE, base, 10), Fetch(1, base))
    here.engine.unhold()
    for client in clients:
        await client.value(1)


def test_a_record_of_64_bytes_tells_a_submission() -> None:
    async def test() -> None:
        async with world() as here:
            begun = read(here, now_ns=10**18)
            await together(here, 100, "a", "b", "c")
            received = read(here, begun, now_ns=10**18 + 1)
            assert RECORD.size == 64
            (record,) = RECORD.iter_unpack(received.records)
            ended_ns, device_ns, low, high, _, count, order_ns, queue_ns, iterations, size, program, *rest = record
            rows, reason, tier, device, failed = rest
            assert (low, high, count, iterations, program, rows, tier, device, failed) == (
                0b111,
                0,
                1,
                3,
                1,
                3,
                0,
                0,
                0,
            )
            assert REASONS[reason] == "everybody"
            assert ended_ns > device_ns >= 0
            assert order_ns >= 0
            assert queue_ns >= 0
            assert size == 3 * 16
            assert [each.number for each in received.programs] == [1]
            assert sorted(each.bit for each in received.sessions) == [0, 1, 2]

    run(test())


def test_while_nobody_watches_nothing_is_kept() -> None:
    async def test() -> None:
        async with world() as here:
            await together(here, 100, "a")
            begun = read(here, now_ns=10**18)
            assert begun.records == b""
            here.engine.launch_records.forget_unwatched(10**18 + WATCHED_NS + 1)
            here.engine.launch_records.watched_until_ns = 0
            await together(here, 200, "b")
            later = read(here, begun, now_ns=10**18 + 2 * WATCHED_NS)
            assert later.watch != begun.watch
            assert later.records == b""

    run(test())


def test_names_are_told_once() -> None:
    async def test() -> None:
        async with world() as here:
            begun = read(here, now_ns=10**18)
            await together(here, 100, "a", "b")
            received = read(here, begun, now_ns=10**18)
            assert len(received.sessions) == 2
            again = read(here, received, now_ns=10**18)
            assert (again.records, again.programs, again.sessions) == (b"", (), ())

    run(test())


def test_the_ring_keeps_the_newest_records(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_records, "MOST_RECORDS", 2)

    async def test() -> None:
        async with world() as here:
            begun = read(here, now_ns=10**18)
            for number in range(5):
                await together(here, 100 + number, f"s{number}")
            received = read(here, begun, now_ns=10**18)
            assert received.following == 5
            masks = [record[2] for record in RECORD.iter_unpack(received.records)]
            assert masks == [1 << 3, 1 << 4]

    run(test())


def test_sessions_beyond_the_bits_share_one_until_most_have_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launch_records, "OTHER_SESSIONS", 2)

    async def test() -> None:
        async with world() as here:
            begun = read(here, now_ns=10**18)
            await together(here, 100, "a", "b", "c", "d")
            received = read(here, begun, now_ns=10**18)
            (record,) = RECORD.iter_unpack(received.records)
            assert record[2] == 0b111
            assert len(received.sessions) == 2
            for session in [*here.engine.sessions.values()]:
                here.engine.end(session)
            assert read(here, received, now_ns=10**18).watch != received.watch

    run(test())
