"""Finding loops in lists, and turning them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire._recording.cutting.loop_period import (
    LEAST_COVERAGE,
    MOST_TRIES,
    Period,
    bodies_of_a_call,
    choose_rotation,
    find_period,
    ops_in_loops,
)
from fusewire._recording.signature import intern_signature, intern_spec
from fusewire._recording.tape import FIRST_HANDLE
from fusewire_protos.ops import dtypes
from fusewire_protos.ops.catalogue import BY_NAME
from fusewire_protos.ops.shapes import Spec
from tests.client.recording.records import Record, flatten

FIRST = FIRST_HANDLE + 1
SQUARE = intern_spec(Spec(dtypes.float32, (4, 4)), 1 << 30)


def op(name: str, *operands: int) -> Record:
    """A record of an op on 4×4 arrays."""
    catalogued = BY_NAME[name]
    return (intern_signature(catalogued, (SQUARE,) * len(operands), ()).number, *operands)


def period_of(items: list[int]) -> Period | None:
    return find_period(np.array(items, np.int64), len(items))


def test_the_period_of_a_loop_behind_a_prologue_is_found() -> None:
    assert period_of([9, 8, 7] + [1, 2, 3, 4] * 20) == Period(4, 80)


def test_a_loop_in_the_midst_of_a_body_is_found() -> None:
    assert period_of([9] + [1, 2, 3, 4] * 20 + [1, 2]) == Period(4, 82)


def test_of_two_periods_the_one_that_explains_more_wins() -> None:
    layers = [1, 2] * 5
    step = [7, 8, 9, *layers]
    assert period_of(step * 8) == Period(len(step), 8 * len(step))


def test_a_few_equal_ops_are_no_loop() -> None:
    assert period_of([5, 6, 7] + [1, 2] * (LEAST_COVERAGE // 2 - 1)) is None


def test_one_body_is_no_loop() -> None:
    assert period_of(list(range(1000))) is None


@given(
    body=st.lists(st.integers(0, 5), min_size=1, max_size=20),
    prologue=st.lists(st.integers(6, 9), max_size=20),
)
def test_the_period_found_is_one(body: list[int], prologue: list[int]) -> None:
    items = prologue + body * (LEAST_COVERAGE // len(body) + 2)
    found = period_of(items)
    assert found is not None
    covered = items[-found.coverage :]
    assert covered[found.length :] == covered[: -found.length]
    assert found.length <= len(body)


def test_no_longer_period_is_found_than_is_asked_for() -> None:
    step = [7, 8, 9, *[1, 2] * 40]
    assert find_period(np.array(step * 4, np.int64), 4) == Period(2, 80)


def test_the_ops_in_inner_loops_are_counted() -> None:
    body = np.array([*range(100, 200), *[1, 2] * 100, *range(200, 300), *[3, 4, 5] * 60], np.int64)
    assert ops_in_loops(body, 100) >= 200 + 180 - LEAST_COVERAGE
    assert ops_in_loops(np.arange(1000), 100) == 0


def longest_coverage(items: list[int]) -> int:
    """Tries every length."""
    coverages = [0]
    for length in range(1, len(items) // 2 + 1):
        start = len(items) - length
        while start > 0 and items[start - 1] == items[start - 1 + length]:
            start -= 1
        coverages.append(len(items) - start)
    return max(coverage for length, coverage in enumerate(coverages) if coverage >= 2 * length)


def test_a_long_body_that_ends_with_hundreds_of_the_same_is_found() -> None:
    assert period_of([0, *[1] * 400] * 2) == (401, 802)


@given(
    loops=st.lists(st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=5), st.integers(1, 30)), max_size=6),
    repeats=st.integers(1, 4),
)
def test_no_other_period_explains_more(loops: list[tuple[list[int], int]], repeats: int) -> None:
    items = [item for body, count in loops for item in body * count] * repeats
    del items[2 * MOST_TRIES :]  # of so many items, all lengths can be tried
    found = period_of(items)
    longest = longest_coverage(items)
    assert (found.coverage if found else 0) == (longest if longest >= LEAST_COVERAGE else 0)


@given(
    loops=st.lists(st.tuples(st.lists(st.integers(0, 2), min_size=1, max_size=9), st.integers(1, 20)), max_size=6),
    repeats=st.integers(1, 4),
    longest=st.integers(1, 200),
)
def test_a_bound_above_the_period_found_changes_nothing(
    loops: list[tuple[list[int], int]], repeats: int, longest: int
) -> None:
    items = np.array([item for body, count in loops for item in body * count] * repeats, np.int64)
    found = find_period(items, len(items))
    if found is None or found.length <= longest:
        assert find_period(items, longest) == found


def _cell(start: int) -> list[Record]:
    """z = h @ w; z = z + b; z = -z; h = z * r, on a carried h; w, b and r come from outside."""
    w, b, r = 1 << 50, (1 << 50) + 1, (1 << 50) + 2
    return [
        op("matmul", start - 1, w),
        op("add", start, b),
        op("negative", start + 1),
        op("multiply", start + 2, r),
    ]


def _cells(count: int) -> list[Record]:
    return [record for index in range(count) for record in _cell(FIRST + 4 * index)]


def test_where_crossing_is_equal_everywhere_a_body_begins_with_its_product() -> None:
    records = _cells(4)
    for skipped in range(4):
        rotation = choose_rotation(flatten(records[skipped : skipped + 8]), FIRST + skipped)
        assert (skipped + rotation) % 4 == 0


def test_a_body_begins_where_the_fewest_values_cross() -> None:
    records: list[Record] = []
    for index in range(4):
        start = FIRST + 4 * index
        carried = start - 1
        records += [
            op("negative", carried),
            op("multiply", start, carried),
            op("add", start + 1, start),
            op("subtract", start + 2, start + 1),
        ]
    for skipped in range(4):
        rotation = choose_rotation(flatten(records[skipped : skipped + 8]), FIRST + skipped)
        assert (skipped + rotation) % 4 == 0


def _layers(weights: Sequence[int], *, begins_every: int) -> list[Record]:
    """h = -(h @ w) for each of the weights. After so many layers a call begins, which takes a new upload as h."""
    records: list[Record] = []
    for index, weight in enumerate(weights):
        start = FIRST + 2 * index
        carried = (1 << 51) + index if index % begins_every == 0 else start - 1
        records += [op("matmul", carried, (1 << 50) + weight), op("negative", start)]
    return records


@pytest.mark.parametrize(
    ("weights", "begins_every", "bodies"),
    [
        ([0, 1, 2, 3] * 4, 4, 4),
        ([0, 1, 2, 3] * 2, 4, 4),
        ([0, 1, 0, 1] * 4, 4, 4),
        ([0] * 16, 4, 1),  # a loop of four iterations, called again
        ([0, 1, 2, 3] * 4, 100, 1),  # one chain of all layers
        ([0] * 16, 100, 1),
        (list(range(16)), 4, 1),
        ([0, 1, 2, 3, 4, 5, 6, 7], 4, 1),
        ([0, 1, 2, 3] * 4, 3, 1),
    ],
)
def test_the_layers_of_a_network_make_a_call_whose_weights_come_again(
    weights: list[int], begins_every: int, bodies: int
) -> None:
    records = _layers(weights, begins_every=begins_every)
    found = [
        bodies_of_a_call(flatten(records[skipped : len(records) - 2 + skipped]), FIRST + skipped, 2)
        for skipped in range(2)
    ]
    assert found == [bodies if 2 * bodies <= len(weights) - 1 else 1] * 2


@given(st.lists(st.sampled_from(["add", "multiply", "matmul", "subtract"]), min_size=1, max_size=30))
def test_among_places_of_equal_crossing_all_that_follows_decides(names: list[str]) -> None:
    records = [op(name, FIRST + index - 1, FIRST + index - 1) for index, name in enumerate(names * 2)]
    turned = [(names * 2)[place : place + len(names)] for place in range(len(names))]
    rotation = choose_rotation(flatten(records), FIRST)
    assert turned[rotation] == min(turned, key=_order)


def _order(names: list[str]) -> list[tuple[bool, int]]:
    return [(name != "matmul", BY_NAME[name].code) for name in names]
