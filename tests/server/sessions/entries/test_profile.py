"""A session is told how its own segments ran from the first question on, within a bound."""

from __future__ import annotations

import pytest

from fusewire_protos.errors import CaseError
from fusewire_protos.frames import Fetch, Profile
from fusewire_protos.profiled import Profiled, Run, decode_profiled
from fusewire_server.config.config import Limits
from fusewire_server.sessions.host_bytes import own_bytes
from fusewire_server.sessions.profile import MOST_BYTES
from fusewire_server.sessions.session import Session
from tests.server.tables import World

_RUN = Run(1, 2, 3, 4, 5, 6, 7, 0, 1, 1, 1, 0)


def _profiled(one: Session) -> dict[int, Profiled]:
    return {answer.fetch: decode_profiled(bytes(answer.data or b"")) for answer in one.answers.unsent}


def test_runs_are_kept_from_the_first_question_to_the_last() -> None:
    world = World()
    one = world.session()
    assert one.profile is None
    world.take(one, Profile(1, True))
    assert one.profile is not None
    one.profile.add(_RUN)
    world.take(one, Profile(2, True), Profile(3, False))
    assert [each.runs for each in _profiled(one).values()] == [(), (_RUN,), ()]
    assert one.profile is None


def test_each_question_is_answered_once() -> None:
    world = World()
    one = world.session()
    world.take(one, Profile(1, True), Profile(1, False), Profile(2, False))
    assert [answer.fetch for answer in one.answers.unsent] == [1, 2]


def test_what_is_kept_counts_as_memory_of_the_session() -> None:
    world = World()
    one = world.session()
    before = own_bytes(one)
    world.take(one, Profile(1, True))
    assert own_bytes(one) - before >= MOST_BYTES
    world.take(one, Profile(2, False))
    assert own_bytes(one) - before < MOST_BYTES


def test_without_room_the_question_fails_and_nothing_is_kept() -> None:
    world = World()
    one = world.session()
    one.answers.most_unread_bytes = 1
    world.take(one, Profile(1, False), Profile(2, True))
    first, second = one.answers.unsent
    assert first.data is not None
    assert second.failure is not None
    assert second.failure.case.name == "quota_host_bytes"
    assert one.profile is None


def test_too_many_unread_answers_end_the_session() -> None:
    world = World(Limits(handles=8))
    one = world.session()
    world.take(one, *[Profile(number, True) for number in range(1, 8)], Fetch(8, 10))
    with pytest.raises(CaseError) as caught:
        world.take(one, Profile(9, True))
    assert caught.value.case.name == "slow_reader"
