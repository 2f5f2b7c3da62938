"""Where the runs of a loop end, as told by what bodies take and by what is kept."""

from __future__ import annotations

import pytest

from fusewire._recording.loop_runs import Kept, Runs, kept_of, run_ends
from fusewire._recording.segments import structure_of
from fusewire._recording.signature import intern_signature, intern_spec
from fusewire._recording.tape import FIRST_HANDLE, Record, flatten
from fusewire_protos import dtypes
from fusewire_protos.catalogue import BY_NAME
from fusewire_protos.frames import FIRST_UPLOAD
from fusewire_protos.shapes import Spec

FIRST = FIRST_HANDLE + 1
UPLOAD = FIRST_HANDLE + FIRST_UPLOAD
VECTOR = intern_spec(Spec(dtypes.float32, (4,)), 1 << 30)
ADD = intern_signature(BY_NAME["add"], (VECTOR, VECTOR), ()).number
NEGATE = intern_signature(BY_NAME["negative"], (VECTOR,), ()).number
NOTHING = Kept((), (), ())


def key_of(records: list[Record]) -> bytes:
    return structure_of(flatten(records), FIRST, len(records)).key


def runs_of(lengths: list[int]) -> list[Record]:
    """h = -(h + constant), so many times from the same upload."""
    records: list[Record] = []
    for length in lengths:
        taken = UPLOAD
        for _ in range(length):
            records += [(ADD, taken, UPLOAD + 1), (NEGATE, FIRST + len(records))]
            taken = FIRST + len(records) - 1
    return records


@pytest.mark.parametrize(
    ("lengths", "ends"), [([8], ()), ([3, 5], (6,)), ([2, 2, 4], (4, 8)), ([7, 1], (14,)), ([4, 1, 1, 2], (8,))]
)
def test_a_run_ends_where_a_body_takes_something_else_than_its_predecessor_made(
    lengths: list[int], ends: tuple[int, ...]
) -> None:
    assert run_ends(key_of(runs_of(lengths)), 8, NOTHING) == ends


def test_bodies_that_each_take_something_of_their_own_are_no_runs() -> None:
    assert run_ends(key_of([(NEGATE, UPLOAD + index) for index in range(8)]), 8, NOTHING) == ()


def test_bodies_that_all_take_one_result_of_the_piece_are_no_runs() -> None:
    assert run_ends(key_of([(NEGATE, FIRST)] * 8), 8, NOTHING) == ()


def test_what_is_taken_from_two_bodies_ago_makes_no_runs() -> None:
    records: list[Record] = [(NEGATE, UPLOAD), (NEGATE, UPLOAD), *((NEGATE, FIRST + index) for index in range(6))]
    assert run_ends(key_of(records), 8, NOTHING) == ()


def test_a_run_may_begin_within_what_was_taken_for_a_body() -> None:
    records = [(NEGATE, UPLOAD + 2), *runs_of([3, 4]), (ADD, FIRST + 14, UPLOAD + 1)]
    shifted = [
        (signature, *(handle + 1 if FIRST <= handle < UPLOAD else handle for handle in handles))
        for signature, *handles in records[1:-1]
    ]
    assert run_ends(key_of([records[0], *shifted, records[-1]]), 8, NOTHING) == (7,)


def test_a_run_ends_where_something_is_kept_now_and_then() -> None:
    assert run_ends(key_of(runs_of([8])), 8, Kept((), (1,), (2, 5))) == (6, 12)


def test_both_kinds_of_ends_are_told_once_and_in_order() -> None:
    assert run_ends(key_of(runs_of([3, 5])), 8, Kept((), (1,), (2, 5))) == (6, 12)


def test_what_is_kept_of_half_of_the_parts_is_kept_of_most() -> None:
    assert kept_of([1, 3], 2, 4) == Kept((1,), (), ())


def test_what_is_kept_of_fewer_is_told_by_its_parts() -> None:
    assert kept_of([1, 5], 2, 5) == Kept((), (1,), (0, 2))


def test_one_place_may_be_kept_of_most_and_another_of_few() -> None:
    assert kept_of([0, 2, 3, 4, 6], 2, 5) == Kept((0,), (1,), (1,))


def test_what_is_kept_of_the_last_part_alone_does_not_count() -> None:
    assert kept_of([8, 9], 2, 5) == NOTHING


@pytest.mark.parametrize(
    ("ends", "known"),
    [
        ([60, 120, 180], None),
        ([60, 120, 180, 240], 60),
        ([60, 240, 300, 480], 60),
        ([240, 500, 740, 1000], 20),
        ([60, 61, 120, 180], 1),
    ],
)
def test_how_long_runs_are_is_known_once_several_ends_are_though_some_are_not_seen(
    ends: list[int], known: int | None
) -> None:
    runs = Runs()
    runs.note(ends)
    assert runs.equal_ops == known


def test_an_end_counts_once_however_often_it_is_noted() -> None:
    runs = Runs()
    for _ in range(3):
        runs.note([60, 120])
    assert runs.equal_ops is None


def test_runs_of_another_length_are_known_once_the_others_are_long_ago() -> None:
    runs = Runs()
    runs.note([60, 120, 180, 240, 330])
    assert runs.equal_ops == 30
    runs.note([420, 510, 600])
    assert runs.equal_ops == 90


def test_runs_are_short_on_average() -> None:
    runs = Runs()
    runs.note([1, 2, 3])
    assert not runs.are_short
    runs.note([511])
    assert runs.are_short
    runs.note([514])
    assert not runs.are_short
