"""From records to programs and bindings, and what becomes of the dead."""

from __future__ import annotations

import numpy as np
import pytest

from fusewire._recording.cutting.segments import liveness_of, structure_of
from fusewire._recording.signature import intern_signature, intern_spec
from fusewire._recording.tape import FIRST_HANDLE, Integers
from fusewire_protos.frames import FIRST_UPLOAD
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Spec
from tests.client.recording.records import Record, flatten

FIRST = FIRST_HANDLE + 1
UPLOAD = FIRST_HANDLE + FIRST_UPLOAD
VECTOR = intern_spec(Spec(dtypes.float32, (4,)), 1 << 30)
MATRIX = intern_spec(Spec(dtypes.float32, (8, 4)), 1 << 30)

ADD = intern_signature(BY_NAME["add"], (VECTOR, VECTOR), ()).number
SCALE = intern_signature(BY_NAME["multiply"], (VECTOR, dtypes.float32), ()).number
FROM_SCALAR = intern_signature(BY_NAME["subtract"], (dtypes.float32, VECTOR), ()).number
WITHIN = intern_signature(BY_NAME["clip"], (VECTOR, dtypes.float32, VECTOR), ()).number
FILL = intern_signature(BY_NAME["assign_slice"], (MATRIX, dtypes.float32), ((0,), (1,), (1,), (0,))).number
WINDOW = intern_signature(BY_NAME["slice"], (MATRIX,), ((0,), (1,), (1,), (0,))).number


def handles(*given: int) -> Integers:
    return np.array(given, np.int64)


def chain_at(first: int) -> list[Record]:
    """x = upload + upload; y = x * scalar; z = x + y."""
    return [(ADD, UPLOAD, UPLOAD), (SCALE, first, -1), (ADD, first, first + 1)]


def test_the_structure_does_not_depend_on_where_it_begins() -> None:
    here = structure_of(flatten(chain_at(FIRST)), FIRST, 3)
    there = structure_of(flatten(chain_at(FIRST + 500)), FIRST + 500, 3)
    assert here == there


def test_inputs_are_numbered_by_first_use() -> None:
    records: list[Record] = [(ADD, UPLOAD + 7, UPLOAD + 3), (ADD, UPLOAD + 3, FIRST)]
    assert structure_of(flatten(records), FIRST, 2).inputs == [UPLOAD + 7, UPLOAD + 3]


def test_one_handle_in_two_places_is_another_structure_than_two() -> None:
    one = structure_of(flatten([(ADD, UPLOAD, UPLOAD)]), FIRST, 1)
    two = structure_of(flatten([(ADD, UPLOAD, UPLOAD + 1)]), FIRST, 1)
    assert one.key != two.key


def test_an_earlier_result_is_an_input() -> None:
    structure = structure_of(flatten([(ADD, FIRST, FIRST + 1)]), FIRST + 1 + 1, 1)
    assert structure.inputs == [FIRST, FIRST + 1]


def test_a_structure_is_known_wherever_a_piece_begins() -> None:
    structure = structure_of(flatten(chain_at(FIRST)), FIRST, 3)
    there = flatten([(ADD, UPLOAD + 9, UPLOAD + 9), (SCALE, FIRST + 500, -77), (ADD, FIRST + 500, FIRST + 501)])
    matched = structure.of(there, FIRST + 500, 3)
    assert matched == structure_of(there, FIRST + 500, 3)
    assert matched is not None
    assert matched.inputs == [UPLOAD + 9]


@pytest.mark.parametrize(
    "records",
    [
        [(ADD, UPLOAD, UPLOAD + 1), (SCALE, FIRST, -1), (ADD, FIRST, FIRST + 1)],  # two inputs for one
        [(ADD, UPLOAD, UPLOAD), (SCALE, UPLOAD, -1), (ADD, FIRST, FIRST + 1)],  # an input for a result
        [(ADD, UPLOAD, UPLOAD), (SCALE, FIRST, -1), (ADD, FIRST + 1, FIRST)],  # other results
        [(ADD, UPLOAD, UPLOAD), (SCALE, FIRST, -1), (SCALE, FIRST, -2)],  # another op
        [(ADD, UPLOAD, UPLOAD), (SCALE, FIRST, -1)],  # fewer
    ],
)
def test_a_piece_of_another_structure_is_known(records: list[Record]) -> None:
    structure = structure_of(flatten(chain_at(FIRST)), FIRST, 3)
    assert structure.of(flatten(records), FIRST, len(records)) is None


def test_a_structure_of_two_inputs_is_not_that_of_one_in_two_places() -> None:
    structure = structure_of(flatten([(ADD, UPLOAD, UPLOAD + 1)]), FIRST, 1)
    assert structure.of(flatten([(ADD, UPLOAD, UPLOAD)]), FIRST, 1) is None
    assert structure.of(flatten([(ADD, UPLOAD, FIRST)]), FIRST, 1) is None


def test_a_value_still_held_is_live() -> None:
    liveness = liveness_of(FIRST, 3, [UPLOAD], handles(FIRST), handles())
    assert liveness.live == (1, 2)


def test_a_value_dead_but_taken_later_is_live_and_waits_for_its_last_use() -> None:
    later = flatten([(ADD, FIRST, FIRST)])
    liveness = liveness_of(FIRST, 3, [], handles(FIRST, FIRST + 1, FIRST + 2), later)
    assert liveness.live == (0,)
    assert liveness.waiting.tolist() == [FIRST]


def test_a_dead_input_dies_with_the_segment_that_takes_it_last() -> None:
    liveness = liveness_of(FIRST, 1, [UPLOAD, UPLOAD + 1], handles(UPLOAD + 1), handles())
    assert liveness.dying == [UPLOAD + 1]
    assert liveness.freed == []


def test_a_dead_input_that_is_taken_later_does_not_die_yet() -> None:
    later = flatten([(ADD, UPLOAD, UPLOAD)])
    liveness = liveness_of(FIRST, 1, [UPLOAD], handles(UPLOAD), later)
    assert liveness.dying == []
    assert liveness.waiting.tolist() == [UPLOAD]


@pytest.mark.parametrize("count", [1, 3, 100])
def test_of_few_dead_inputs_and_of_many_those_wait_that_are_taken_later(count: int) -> None:
    taken = [*range(UPLOAD, UPLOAD + count - 1), UPLOAD + 1000]  # the least and the greatest among them
    others = range(UPLOAD + 500, UPLOAD + 500 + count)
    later = flatten([(ADD, handle, FIRST + place) for place, handle in enumerate(taken)])
    liveness = liveness_of(FIRST, 1, [*taken, others[0]], handles(*taken, *others), later)
    assert liveness.waiting.tolist() == taken
    assert liveness.dying == [others[0]]
    assert liveness.freed == [*others[1:]]


def test_a_dead_value_the_segment_does_not_take_is_freed() -> None:
    old = FIRST
    liveness = liveness_of(FIRST + 10, 1, [UPLOAD], handles(old), handles())
    assert liveness.freed == [old]


def test_what_is_born_and_dead_behind_the_segment_is_no_concern_of_it() -> None:
    later = flatten([(ADD, UPLOAD, UPLOAD), (ADD, UPLOAD, UPLOAD)])
    liveness = liveness_of(FIRST, 2, [], handles(FIRST + 3), later)
    assert liveness.waiting.tolist() == [FIRST + 3]
    assert liveness.freed == []
