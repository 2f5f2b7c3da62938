"""Notes become blocks that do not overlap, on one clock, each with its segment."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from fusewire._profile.events import NO_LINE, Line, Sealed, SessionEvents
from fusewire._profile.timeline import (
    NO_SEGMENT,
    alignment_of,
    base_of,
    busy_of,
    label_of,
    lines_label,
    parts_of_wait,
    runs_by_base,
    timeline_of,
)
from fusewire_protos.profiled import Run
from tests.client.profile.drawn import BEGAN_NS, Drawn, sessions

_TIMES = st.integers(0, 1000)


def _run(queued_ns: int, ordered_ns: int, ended_ns: int, device_ns: int) -> Run:
    return Run(1, queued_ns, ordered_ns, ended_ns, device_ns, 0, 1, 0, 1, 1, 1, 0)


@given(sessions())
def test_blocks_of_a_track_follow_one_another(drawn: Drawn) -> None:
    timeline = drawn.timeline
    assert {each.track for each in timeline.blocks} <= {*range(len(timeline.tracks))}
    for one, other in pairwise(timeline.blocks):
        assert one.began_ns <= one.ended_ns <= timeline.length_ns
        assert one.track < other.track or one.ended_ns <= other.began_ns


@given(sessions())
def test_every_event_is_a_block_of_its_segment(drawn: Drawn) -> None:
    timeline, events = drawn.timeline, drawn.events
    kinds = Counter(each.kind for each in timeline.blocks)
    runs = runs_by_base([run for each in events.asked for run in each.answer.runs])
    assert (kinds["cut"], kinds["frame"], kinds["read"]) == (len(events.sealed), len(events.framed), len(events.waited))
    assert kinds["launch"] == sum(map(len, runs.values()))
    assert Counter(each.segment for each in timeline.blocks if each.kind == "launch") == {
        place: len(runs[each.base]) for place, each in enumerate(events.sealed)
    }
    assert all(each.segment != NO_SEGMENT for each in timeline.blocks)


@given(sessions())
def test_the_servers_clock_is_found_within_the_error(drawn: Drawn) -> None:
    events = drawn.events
    found = alignment_of(events, runs_by_base(events.asked[0].answer.runs))
    assert found.error_ns is not None
    assert abs(found.ahead_ns[0] - drawn.ahead_ns) <= found.error_ns
    assert drawn.timeline.error_ns == found.error_ns


@given(sessions())
def test_counts_are_those_of_the_events(drawn: Drawn) -> None:
    counts, events = drawn.timeline.counts, drawn.events
    assert counts["ops"] == sum(each.ops for each in events.sealed)
    assert counts["frame_bytes"] == sum(each.size_bytes for each in events.framed)
    assert (counts["segments"], counts["reads"]) == (len(events.sealed), len(events.fetched))
    assert counts["launches"] == len(events.asked[0].answer.runs)


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


def test_code_lies_between_cuts_and_has_the_segment_that_it_recorded() -> None:
    cuts = [Sealed(7, 7, at_ns, at_ns + 10, base, 1, 1, 0, 0, "count") for at_ns, base in ((50, 1), (100, 2))]
    timeline = timeline_of(0, 200, [SessionEvents("a", {7: "MainThread"}, cuts)])
    code = [(each.began_ns, each.ended_ns, each.segment) for each in timeline.blocks if each.kind == "code"]
    assert code == [(0, 50, 0), (60, 100, 1)]
    assert timeline.notes == ("of 2 segments it is not known how they ran",)


def test_a_cut_by_the_io_thread_leaves_the_users_thread_its_code() -> None:
    cuts = [Sealed(9, 7, 50, 60, 1, 1, 1, 0, 0, "age")]
    timeline = timeline_of(0, 200, [SessionEvents("a", {7: "MainThread", 9: "fusewire-io"}, cuts)])
    assert timeline.tracks[:2] == ("main thread", "thread fusewire-io")
    assert {(each.kind, each.track) for each in timeline.blocks} == {("code", 0), ("cut", 1)}
    assert timeline.counts["threads"] == 1


def test_tracks_of_several_sessions_have_their_names() -> None:
    timeline = timeline_of(BEGAN_NS, BEGAN_NS + 1, [SessionEvents("one", {}), SessionEvents("two", {})])
    assert timeline.counts["sessions"] == 2
    assert [each.name for each in timeline.series] == [
        f"{what} of {name}" for name in ("one", "two") for what in ("queue", "memory")
    ]


def test_a_handle_belongs_to_the_last_base_before_it() -> None:
    assert [base_of([5, 9], handle) for handle in (4, 5, 8, 9, 100)] == [-1, 5, 5, 9, 9]


def test_labels_are_short() -> None:
    assert label_of(["add", "tanh", "add", "exp", "log", ""]) == "add ×2, tanh, exp, …"
    assert lines_label([Line("/a/b.py", 4), NO_LINE, Line("/a/b.py", 2), Line("/c.py", 1)]) == "b.py:2-4"
    assert lines_label([Line(r"C:\a\b.py", 4)]) == "b.py:4"
    assert lines_label([NO_LINE]) == ""
