"""A session's values: within its quotas, and released as soon as nobody can read them any more."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from fusewire_kernels.devices.base import Block
from fusewire_protos.errors import CaseError
from fusewire_protos.frames import INLINE_BYTES, Fetch, Free
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_protos.programs.program import build
from fusewire_server.config.config import Limits
from fusewire_server.sessions.effects import Effects
from fusewire_server.sessions.entries.frame import Arrival, Item
from fusewire_server.sessions.entries.segment import MOST_UNPACKED
from fusewire_server.sessions.rows import bring_upload
from fusewire_server.sessions.session import Session, Value
from fusewire_server.sessions.values import pack
from tests.server.parts import SIZE_BYTES, VECTOR, chain, new, op, segment, upload, upload_beside
from tests.server.tables import ADD, NEGATE, World, answers, failure


def held(world: World, one: Session, *handles: int) -> list[Value]:
    """Results that are computed, with their blocks."""
    for handle in handles:
        world.take(one, segment(NEGATE, handle, 10))
        world.submit_next(one)
    values = [one.values[handle] for handle in handles]
    for value in values:
        value.block = Block(64 * value.handle, 64, None)
    return values


def places(values: Iterable[Value]) -> list[tuple[int, int | None]]:
    return [(value.handle, None if value.block is None else value.block.address) for value in values]


def test_a_packed_value_is_as_it_was_once_something_touches_it() -> None:
    world = World()
    one = world.session()
    live_bytes = one.live_bytes
    for value in held(world, one, 100, 101, 102):
        pack(one, value)
    assert (one.packed.count, one.values_held, one.knows(101)) == (3, 5, True)
    effects = world.take(one, Fetch(1, 100), segment(NEGATE, 200, 101), Free((102,)))
    assert places(each.value for each in effects.reads) == [(100, 6400)]
    assert one.queue[0].inputs == [one.values[101]]
    assert places(effects.released) == [(102, 64 * 102)]
    assert (one.packed.count, 102 in one.values, one.live_bytes) == (0, False, live_bytes + 3 * SIZE_BYTES)


def test_many_packed_inputs_are_unpacked_in_steps_before_their_segment_is_taken() -> None:
    world = World()
    one = world.session()
    handles = range(1000, 1000 + 3 * MOST_UNPACKED)
    for value in held(world, one, *handles):
        pack(one, value)
    wide = build([VECTOR] * len(handles), [], [op("negative", number) for number in range(len(handles))], [0])
    world.take(one, new(9, wide))
    left: Item | None = segment(9, 5000, *handles)
    packed = []
    while left is not None:
        packed.append(one.packed.count)
        left = world.intake.take(one, [left], Arrival((), 0)).left
    assert packed == [3 * MOST_UNPACKED, 2 * MOST_UNPACKED, MOST_UNPACKED, 0]
    assert one.queue[0].inputs == [one.values[handle] for handle in handles]


def test_a_value_that_something_is_about_to_read_or_that_has_no_memory_yet_is_not_packed() -> None:
    world = World()
    one = world.session()
    read, fetched, freed, without = held(world, one, 100, 101, 102, 103)
    world.take(one, segment(NEGATE, 200, 100), Fetch(1, 101), segment(NEGATE, 201, 102), Free((102,)))
    without.block = None
    for value in (read, fetched, freed, without, one.values[200]):
        pack(one, value)
    assert one.packed.count == 0


def test_a_packed_value_keeps_its_handle_and_counts() -> None:
    world = World(Limits(handles=4))
    one = world.session()
    for value in held(world, one, 100, 101):
        pack(one, value)
    world.take(one, segment(NEGATE, 102, 10))
    assert failure(one, 102).case.name == "quota_handles"
    world.take(one, Free((101,)))
    with pytest.raises(CaseError, match="reused_handle"):
        world.take(one, segment(NEGATE, 100, 10))


def test_live_bytes_beyond_the_quota_are_refused_until_some_are_freed() -> None:
    world = World(Limits(array_bytes=SIZE_BYTES, live_bytes=4 * SIZE_BYTES))
    one = world.session()
    world.take(one, segment(NEGATE, 100, 10), segment(NEGATE, 101, 10), segment(NEGATE, 102, 10), upload(103))
    assert [failure(one, handle).case.name for handle in (102, 103)] == ["quota_live_bytes"] * 2
    assert "limits.live_bytes" in failure(one, 102).text
    world.take(one, Free((11,)), segment(NEGATE, 104, 10))
    assert one.values[104].failure is None


def test_all_results_of_a_segment_beyond_a_quota_fail_by_the_first_op_that_is_too_much() -> None:
    world = World(Limits(array_bytes=SIZE_BYTES, live_bytes=4 * SIZE_BYTES))
    one = world.session()
    world.take(one, new(9, chain(("negative",) * 4, range(4))), segment(9, 100, 10))
    failures = [failure(one, 100 + index) for index in range(4)]
    assert {(each.base, each.op_index) for each in failures} == {(100, 2)}
    assert {each.text.split(":")[0] for each in failures} == {"op 2 negative"}


def test_a_session_knows_which_of_its_values_are_large() -> None:
    world = World()
    one = world.session()
    large = Spec(dtypes.uint8, (INLINE_BYTES + 1,))
    world.take(one, upload_beside(20, large), upload_beside(21, large), upload_beside(22, Spec(dtypes.uint8, (8,))))
    assert [*one.large] == [20, 21]
    bring_upload(one, one.values[20], [], [])
    world.take(one, Free((20,)))
    assert [*one.large] == [21]


def test_handles_beyond_the_quota_are_refused_and_failures_have_a_bound_too() -> None:
    world = World(Limits(handles=4))
    one = world.session()
    world.take(one, *[segment(NEGATE, 100 + index, 10) for index in range(3)])
    assert failure(one, 102).case.name == "quota_handles"
    for index in range(50):
        world.take(one, upload(200 + index))
    assert len(one.values) + len(one.failed) == 8
    world.take(one, Fetch(1, 249))
    assert answers(one)[1][0] == "unknown_handle"


def test_a_freed_value_is_released_at_once_or_after_its_last_reader() -> None:
    world = World()
    one = world.session()
    assert [value.handle for value in world.take(one, Free((10,))).released] == [10]
    assert world.take(one, segment(NEGATE, 100, 11), Free((11,))).released == []
    assert 11 in one.values
    assert [value.handle for value in world.submit_next(one).released] == [11]


def test_dying_inputs_die_with_their_row() -> None:
    world = World()
    one = world.session()
    world.take(one, segment(ADD, 100, 10, 10, dying=(0, 1)), segment(NEGATE, 200, 10))
    assert failure(one, 200).case.name == "unknown_handle"
    assert [value.handle for value in world.submit_next(one).released] == [10]


def test_a_result_freed_before_it_exists_is_released_when_it_does() -> None:
    world = World()
    one = world.session()
    world.take(one, segment(NEGATE, 100, 10), Free((100,)))
    assert [value.handle for value in world.submit_next(one).released] == [100]


def test_an_upload_freed_before_it_arrives_is_released_when_it_does() -> None:
    world = World()
    one = world.session()
    world.take(one, upload_beside(20))
    value = one.values[20]
    world.take(one, Free((20,)))
    effects = Effects()
    bring_upload(one, value, effects.reads, effects.released)
    assert effects.released == [value]
    assert 20 not in one.values


def test_freeing_what_names_nothing_is_no_failure() -> None:
    world = World()
    one = world.session()
    effects = world.take(one, Free((999, 10, 10)))
    assert [value.handle for value in effects.released] == [10]
