"""A session's values: within its quotas, and released as soon as nobody can read them any more."""

from __future__ import annotations

from fusewire_protos.frames import INLINE_BYTES, Fetch, Free
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.shapes import Spec
from fusewire_server.config.config import Limits
from fusewire_server.sessions.effects import Effects
from fusewire_server.sessions.rows import bring_upload
from tests.server.parts import SIZE_BYTES, chain, new, segment, upload, upload_beside
from tests.server.tables import ADD, NEGATE, World, answers, failure


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
