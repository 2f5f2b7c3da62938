"""Runs are joined with segments, on one clock, and say what a wait was for."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from fusewire._profile.runs import alignment_of, base_of, busy_of, parts_of_wait, runs_by_base
from fusewire_protos.frames import FIRST_UPLOAD, HANDLES_PER_RECORDER
from fusewire_protos.profiled import Run
from tests.client.profile.drawn import Drawn, sessions

_TIMES = st.integers(0, 1000)


def _run(queued_ns: int, ordered_ns: int, ended_ns: int, device_ns: int) -> Run:
    return Run(1, queued_ns, ordered_ns, ended_ns, device_ns, 0, 1, 0, 1, 1, 1, 0)


@given(sessions())
def test_the_servers_clock_is_found_within_the_error(drawn: Drawn) -> None:
    events = drawn.events
    found = alignment_of(events, runs_by_base(events.asked[0].answer.runs))
    assert found.error_ns is not None
    assert abs(found.ahead_ns[0] - drawn.ahead_ns) <= found.error_ns
    assert drawn.timeline.error_ns == found.error_ns


@given(st.lists(st.tuples(_TIMES, _TIMES, _TIMES, _TIMES), max_size=6), _TIMES, _TIMES, st.integers(0, 6))
def test_the_parts_of_a_wait_are_the_whole(
    drawn: list[tuple[int, int, int, int]], began_ns: int, length_ns: int, own: int
) -> None:
    runs = []
    for *times, device_ns in drawn:
        queued_ns, ordered_ns, ended_ns = sorted(times)
        runs.append(_run(queued_ns, ordered_ns, ended_ns, device_ns))
    parts = parts_of_wait(began_ns, began_ns + length_ns, runs[:own], busy_of(runs))
    assert sum(parts.values()) == length_ns
    assert min(parts.values()) >= 0


def test_a_wait_behind_earlier_work_of_the_session_is_one_for_the_device() -> None:
    earlier, own = _run(0, 0, 80, 80), _run(10, 80, 90, 10)
    assert parts_of_wait(10, 100, [own], busy_of([earlier, own])) == {"way_ns": 10, "queue_ns": 0, "run_ns": 80}


def test_a_wait_behind_others_is_one_in_the_queue() -> None:
    own = _run(20, 80, 90, 10)
    assert parts_of_wait(10, 100, [own], busy_of([own])) == {"way_ns": 20, "queue_ns": 60, "run_ns": 10}


def test_a_handle_belongs_to_the_last_base_before_it() -> None:
    assert [base_of([5, 9], handle) for handle in (4, 5, 8, 9, 100)] == [-1, 5, 5, 9, 9]


def test_the_handle_of_an_upload_or_of_another_recorder_belongs_to_no_base() -> None:
    assert base_of([5, 9], FIRST_UPLOAD + 1) == -1
    assert base_of([5, 9], HANDLES_PER_RECORDER + 10) == -1


def test_a_later_slice_waits_from_the_order_of_the_one_before() -> None:
    slices = runs_by_base([_run(10, 60, 90, 10), _run(10, 20, 50, 10)])[1]
    assert [(each.queued_ns, each.ordered_ns) for each in slices] == [(10, 20), (20, 60)]
