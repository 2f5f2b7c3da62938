"""Which results of a loop are kept of its iterations."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fusewire._recording.cutting.kept_results import KeptResults, kept_results
from fusewire_protos.frames import MAX_STORED

OPS = 6


def of(live: list[int], iterations: int, size_bytes: int = 64) -> KeptResults:
    return kept_results(live, OPS, iterations, lambda place: size_bytes)


def test_what_is_live_of_the_last_iteration_alone_is_kept_of_it() -> None:
    assert of([9 * OPS + 2, 9 * OPS + 5], 10) == ({2: 1, 5: 1}, [], 10)


def test_nothing_live_is_nothing_kept() -> None:
    assert of([], 10) == ({}, [], 10)


def test_what_is_held_of_each_iteration_is_kept_of_each() -> None:
    held = [body * OPS + 3 for body in range(10)]
    assert of(held, 10) == ({3: 10}, [], 10)


def test_of_what_is_held_of_most_iterations_the_others_are_dropped() -> None:
    held = [body * OPS + 3 for body in range(10) if body not in {2, 4}]
    assert of(held, 10) == ({3: 10}, [2 * OPS + 3, 4 * OPS + 3], 10)


def test_what_is_held_of_the_last_iterations_is_kept_of_these() -> None:
    assert of([8 * OPS + 3, 9 * OPS + 3, 9 * OPS + 5], 10) == ({3: 2, 5: 1}, [], 10)
    assert of([7 * OPS + 3, 8 * OPS + 3], 10) == ({3: 3}, [9 * OPS + 3], 10)


def test_a_loop_ends_behind_a_result_that_is_held_now_and_then() -> None:
    assert of([40 * OPS + 3, 99 * OPS + 5], 100).ends_at == 41


def test_small_results_that_would_end_short_loops_are_kept_of_each() -> None:
    held = [body * OPS + 3 for body in range(0, 100, 3)]
    assert of(held, 100).kept == {3: 100}


def test_large_results_are_never_kept_for_nobody() -> None:
    held = [body * OPS + 3 for body in range(0, 100, 3)]
    assert of(held, 100, size_bytes=1 << 20).ends_at == 1


@pytest.mark.parametrize("results", [1, 3])
def test_a_loop_keeps_no_more_results_than_one_may(results: int) -> None:
    iterations = 2 * MAX_STORED
    held = [body * OPS + place for body in range(iterations) for place in range(results)]
    ends_at = of(held, iterations).ends_at
    assert ends_at * results <= MAX_STORED < (ends_at + 1) * 2 * results


@given(st.sets(st.integers(0, 20 * OPS - 1)), st.sampled_from([1, 1 << 20]))
def test_every_live_result_of_the_loop_is_kept(live: set[int], size_bytes: int) -> None:
    kept = of(sorted(live), 20, size_bytes)
    while kept.ends_at < 20 and not kept.kept:
        iterations = kept.ends_at
        live = {index for index in live if index < iterations * OPS}
        kept = of(sorted(live), iterations, size_bytes)
        if kept.ends_at == iterations:
            break
    for index in live:
        body, place = divmod(index, OPS)
        assert body >= kept.ends_at - kept.kept[place]
    assert not live.intersection(kept.dropped)
