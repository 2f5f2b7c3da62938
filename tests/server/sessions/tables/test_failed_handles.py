"""Handles of results that will never exist: which there are, with which failures, and in how little memory."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire_protos.errors import BY_NAME, CaseError
from fusewire_protos.frames import Repetition
from fusewire_server.programs.failure import Failure
from fusewire_server.programs.outline import Outline, bits_of
from fusewire_server.sessions.tables.failed_handles import FailedHandles, FailedRange
from tests.server.parts import pair

FAULT = Failure(BY_NAME["unknown_handle"], "handle 9 names nothing", 100, 0)
PAIR = Outline.of(pair())  # three live results: negative, negative, add
FEW_BYTES = 512  # of a range with its failure


def kept_handles(base: int, live: list[int], iterations: int, handle_stride: int, kept: list[int]) -> set[int]:
    return {
        base + iteration * handle_stride + index
        for index, count in zip(live, kept, strict=True)
        for iteration in range(iterations - count, iterations)
    }


def test_a_range_has_the_live_results_of_its_segment() -> None:
    failed = FailedRange(FAULT, 100, Outline(0b101))
    assert [handle for handle in range(90, 110) if failed.op_of(handle) is not None] == [100, 102]
    assert (failed.count, failed.first, failed.last) == (2, 100, 102)


@given(st.data())
def test_a_range_has_the_results_that_the_client_keeps_of_a_loop(data: st.DataObject) -> None:
    live = sorted(data.draw(st.sets(st.integers(0, 5), min_size=1)))
    iterations = data.draw(st.integers(1, 5))
    kept = [data.draw(st.integers(0, iterations)) for _ in live]
    stride = data.draw(st.integers(max(live) + 1, 9)) if max(kept) > 1 else data.draw(st.integers(0, 9))
    failed = FailedRange(FAULT, 100, Outline(bits_of(live)), Repetition(iterations, stride, tuple(kept)))
    wanted = kept_handles(100, live, iterations, stride, kept)
    assert {handle for handle in range(80, 200) if failed.op_of(handle) is not None} == wanted
    assert failed.count == len(wanted)
    assert all(failed.first <= handle <= failed.last for handle in wanted)


def test_of_iterations_that_share_handles_the_last_one_counts() -> None:
    failed = FailedRange(FAULT, 100, PAIR, Repetition(3, 1, (3, 3, 1)))
    assert [handle for handle in range(90, 120) if failed.op_of(handle) is not None] == [102, 103, 104]


def test_each_result_names_its_own_op_unless_it_failed_with_another_segment() -> None:
    failed = FailedHandles()
    failed.add(FailedRange(FAULT, 100, PAIR))
    failed.add(FailedRange(FAULT, 200, PAIR))
    assert failed.failure_of(102) == Failure(FAULT.case, f"op 2 add: {FAULT.text}", 100, 2)
    assert failed.failure_of(202) == FAULT
    assert failed.failure_of(203) is None


def test_freed_handles_are_gone_and_a_range_goes_with_its_last_handle() -> None:
    failed = FailedHandles()
    failed.add(FailedRange(FAULT, 100, PAIR))
    failed.free(101)
    failed.free(101)
    assert [handle in failed for handle in (100, 101, 102)] == [True, False, True]
    assert (failed.count, failed.freed, len(failed)) == (2, 1, 1)
    failed.free(100)
    failed.free(102)
    assert (failed.count, failed.freed, len(failed)) == (0, 0, 0)


@pytest.mark.parametrize("base", [98, 100, 102])
def test_ranges_among_the_handles_of_another_are_refused(base: int) -> None:
    failed = FailedHandles()
    failed.add(FailedRange(FAULT, 100, PAIR))
    with pytest.raises(CaseError, match="reused_handle"):
        failed.add(FailedRange(FAULT, base, PAIR))


@given(st.permutations(range(8)))
def test_ranges_may_come_in_any_order(order: list[int]) -> None:
    failed = FailedHandles()
    for number in order:
        failed.add(FailedRange(FAULT, 100 + 3 * number, PAIR))
    assert failed.firsts == sorted(failed.firsts)
    assert all(handle in failed for handle in range(100, 124))


def test_a_range_takes_little_memory_however_many_results_it_has() -> None:
    failed, wide, kept = FailedHandles(), Outline((1 << 8192) - 1), (1,) * 8192
    tracemalloc.start()
    for number in range(1000):
        text = f"handle {number} names nothing in this session"
        failure = Failure(FAULT.case, text, 1_000_000 * number, 0)
        failed.add(FailedRange(failure, 1_000_000 * number, wide, Repetition(64, 8192, kept)))
    taken_bytes, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert taken_bytes < 1000 * FEW_BYTES
