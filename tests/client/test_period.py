"""Finding loops in lists, and turning them."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fusewire._period import LEAST_COVERAGE, Period, choose_rotation, find_period
from fusewire._signature import intern_signature, intern_spec
from fusewire._tape import FIRST_HANDLE, Record
from fusewire_protos import dtypes
from fusewire_protos.catalogue import BY_NAME
from fusewire_protos.shapes import Spec

FIRST = FIRST_HANDLE + 1
SQUARE = intern_spec(Spec(dtypes.float32, (4, 4)))


def op(name: str, *operands: int) -> Record:
    """A record of an op on 4×4 arrays."""
    catalogued = BY_NAME[name]
    return (intern_signature(catalogued, (SQUARE,) * len(operands), ()).number, *operands)


def test_the_period_of_a_loop_behind_a_prologue_is_found() -> None:
    assert find_period([9, 8, 7] + [1, 2, 3, 4] * 20) == Period(4, 80)


def test_a_loop_in_the_midst_of_a_body_is_found() -> None:
    assert find_period([9] + [1, 2, 3, 4] * 20 + [1, 2]) == Period(4, 82)


def test_of_two_periods_the_one_that_explains_more_wins() -> None:
    layers = [1, 2] * 5
    step = [7, 8, 9, *layers]
    assert find_period(step * 8) == Period(len(step), 8 * len(step))


def test_a_few_equal_ops_are_no_loop() -> None:
    assert find_period([5, 6, 7] + [1, 2] * (LEAST_COVERAGE // 2 - 1)) is None


def test_one_body_is_no_loop() -> None:
    assert find_period(list(range(1000))) is None


@given(
    body=st.lists(st.integers(0, 5), min_size=1, max_size=20),
    prologue=st.lists(st.integers(6, 9), max_size=20),
)
def test_the_period_found_is_one(body: list[int], prologue: list[int]) -> None:
    items = prologue + body * (LEAST_COVERAGE // len(body) + 2)
    found = find_period(items)
    assert found is not None
    covered = items[-found.coverage :]
    assert covered[found.length :] == covered[: -found.length]
    assert found.length <= len(body)


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
        rotation = choose_rotation(records[skipped : skipped + 8], FIRST + skipped)
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
        rotation = choose_rotation(records[skipped : skipped + 8], FIRST + skipped)
        assert (skipped + rotation) % 4 == 0
