"""What becomes of fetches: a value is read when it is ready, and each fetch is answered once."""

from __future__ import annotations

import time

import pytest

from fusewire_protos.errors import CaseError
from fusewire_protos.frames import INLINE_BYTES, Abandon, Fetch, Free
from fusewire_server.config.config import Limits
from fusewire_server.sessions.rows import fail_value
from fusewire_server.sessions.tables.salted_table import SaltedTable
from fusewire_server.sessions.values import end_reading
from tests.server.parts import segment, upload_beside
from tests.server.tables import FAULT, NEGATE, World, answers


def test_a_ready_value_is_read_and_a_coming_one_when_it_is_ready() -> None:
    world = World()
    one = world.session()
    effects = world.take(one, Fetch(1, 10), segment(NEGATE, 100, 10), Fetch(2, 100))
    assert [pending.fetch for pending in effects.reads] == [1]
    assert [pending.fetch for pending in world.submit_next(one).reads] == [2]


def test_a_fetch_of_a_failed_value_is_answered_at_once() -> None:
    world = World()
    one = world.session()
    world.take(one, segment(NEGATE, 100, 999), Fetch(1, 100))
    assert answers(one) == {1: ("unknown_handle", "op 0 negative: handle 999 names nothing in this session")}
    assert not one.fetches


def test_a_fetch_that_waits_is_answered_when_its_value_fails() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20), Fetch(1, 20), Free((20,)))
    fail_value(one, one.values[20], FAULT)
    assert answers(one) == {1: ("upload_failed", "stalled")}
    assert 20 not in one.values


def test_a_repeated_fetch_is_answered_once() -> None:
    world = World()
    one = world.session()
    effects = world.take(one, Fetch(1, 10), Fetch(1, 10), Fetch(2, 999), Fetch(2, 999))
    assert [pending.fetch for pending in effects.reads] == [1]
    assert list(answers(one)) == [2]
    world.take(one, Fetch(2, 10))
    assert len(one.answers.unsent) == 1


def test_a_fetch_keeps_a_freed_value_alive() -> None:
    world = World()
    one = world.session()
    effects = world.take(one, Fetch(1, 10), Free((10,)))
    assert effects.released == []
    end_reading(effects.reads[0], effects.released)
    assert [value.handle for value in effects.released] == [10]


def test_an_abandoned_fetch_is_not_answered_and_holds_nothing() -> None:
    world = World()
    one = world.session()
    world.take(one, segment(NEGATE, 100, 10), Fetch(1, 100), Free((100,)), Abandon(1), Abandon(2))
    effects = world.submit_next(one)
    assert (effects.reads, one.fetches, one.answers.unsent) == ([], SaltedTable(), [])
    assert [value.handle for value in effects.released] == [100]


@pytest.mark.parametrize("handle", [10, 20])
def test_abandoning_a_fetch_takes_no_longer_for_those_that_wait_beside_it(handle: int) -> None:
    world = World()
    one = world.session()
    fetches = range(100_000)
    effects = world.take(one, upload_beside(20), *[Fetch(fetch, handle) for fetch in fetches])
    one.reads.update((pending.fetch, pending) for pending in effects.reads)  # of 10, which is ready
    started = time.process_time()
    world.take(one, *[Abandon(fetch) for fetch in reversed(fetches)])
    assert time.process_time() - started < 5.0
    assert (one.fetches, len(one.reads), one.values[handle].readers) == (SaltedTable(), 0, 0)


def test_too_many_fetches_that_nobody_takes_are_a_protocol_case() -> None:
    world = World(Limits(handles=4))
    one = world.session()
    world.take(one, *[Fetch(number, 999) for number in range(4)])
    with pytest.raises(CaseError, match="slow_reader"):
        world.take(one, Fetch(4, 10))


def test_a_fetch_that_is_being_read_counts_once() -> None:
    world = World(Limits(handles=4))
    one = world.session()
    for number in range(3):
        world.take(one, Fetch(number, 10))
        one.answers.begin_read(number, 16)
    world.take(one, Fetch(3, 10))
    with pytest.raises(CaseError, match="slow_reader"):
        world.take(one, Fetch(4, 10))


def test_an_answer_beside_the_stream_is_not_told_twice_before_it_is_acknowledged() -> None:
    world = World()
    one = world.session()
    one.answers.begin_read(1, INLINE_BYTES + 1)
    one.answer(1, memoryview(bytes(INLINE_BYTES + 1)))
    world.take(one, Fetch(1, 10), Fetch(1, 10))
    assert len(one.answers.unsent) == 1
    number, _ = one.answers.take(1 << 20)
    world.take(one, Fetch(1, 10))
    assert one.answers.unsent == []
    one.answers.acknowledge(number)
    world.take(one, Fetch(1, 10), Fetch(1, 10))
    assert len(one.answers.unsent) == 1
