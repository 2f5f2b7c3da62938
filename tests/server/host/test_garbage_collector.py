"""The garbage collector's pauses."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from weakref import ref

import pytest

from fusewire_server.host.garbage_collector import LEAST_ROUNDS, MOST_ENDED, QUIET_ROUNDS, GarbageCollector


class _Node:
    """Part of a cycle once it holds itself."""

    def __init__(self) -> None:
        self.itself: _Node | None = None


@pytest.fixture
def garbage() -> Iterator[GarbageCollector]:
    with GarbageCollector() as garbage:
        yield garbage


def test_what_survived_a_full_collection_is_not_walked_again(garbage: GarbageCollector) -> None:
    node = _Node()
    assert any(each is node for each in gc.get_objects())
    gc.collect()
    assert not any(each is node for each in gc.get_objects())


def test_what_is_set_apart_is_freed_with_its_last_reference(garbage: GarbageCollector) -> None:
    node = _Node()
    died = ref(node)
    gc.collect()
    del node
    assert died() is None


def test_cycles_among_what_is_set_apart_go_once_nobody_has_been_there_for_a_while(garbage: GarbageCollector) -> None:
    node = _Node()
    node.itself = node
    died = ref(node)
    gc.collect()
    del node
    gc.collect()
    assert died() is not None
    for _ in range(QUIET_ROUNDS):
        garbage.watch(open_sessions=0, ended_sessions=0)
    assert died() is None


def test_nothing_is_tidied_while_a_session_is_open_and_few_have_ended(garbage: GarbageCollector) -> None:
    node = _Node()
    node.itself = node
    died = ref(node)
    gc.collect()
    del node
    for sessions in (0,) * (QUIET_ROUNDS - 1) + (1,) + (0,) * (QUIET_ROUNDS - 1):
        garbage.watch(open_sessions=sessions, ended_sessions=1)
    assert died() is not None


def test_cycles_go_while_a_session_is_open_once_many_have_ended(garbage: GarbageCollector) -> None:
    node = _Node()
    node.itself = node
    died = ref(node)
    gc.collect()
    del node
    for _ in range(LEAST_ROUNDS):
        garbage.watch(open_sessions=1, ended_sessions=MOST_ENDED - 1)
    assert died() is not None
    garbage.watch(open_sessions=1, ended_sessions=MOST_ENDED)
    assert died() is None


def test_however_many_sessions_end_a_collection_follows_another_after_a_while_only(
    garbage: GarbageCollector, monkeypatch: pytest.MonkeyPatch
) -> None:
    collections = []
    monkeypatch.setattr(garbage, "tidy", lambda: collections.append(True))
    for round_ in range(3 * LEAST_ROUNDS):
        garbage.watch(open_sessions=1, ended_sessions=MOST_ENDED * round_)
    assert len(collections) == 3


def test_the_process_has_its_usual_collector_back_in_the_end() -> None:
    with GarbageCollector():
        pass
    assert gc.get_freeze_count() == 0
    node = _Node()
    gc.collect()
    assert any(each is node for each in gc.get_objects())
