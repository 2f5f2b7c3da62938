"""Notes become blocks that do not overlap, on one clock, each with its segment."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

from hypothesis import given

from fusewire._profile.events import Asked, Sealed, SessionEvents
from fusewire._profile.runs import runs_by_base
from fusewire._profile.timeline import NO_SEGMENT, timeline_of
from fusewire_protos.profiled import Profiled, Run
from tests.client.profile.drawn import BEGAN_NS, Drawn, sessions


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
    assert kinds["submission"] == sum(map(len, runs.values()))
    assert Counter(each.segment for each in timeline.blocks if each.kind == "submission") == {
        place: len(runs[each.base]) for place, each in enumerate(events.sealed)
    }
    assert all(each.segment != NO_SEGMENT for each in timeline.blocks)


@given(sessions())
def test_counts_are_those_of_the_events(drawn: Drawn) -> None:
    counts, events = drawn.timeline.counts, drawn.events
    assert counts["ops"] == sum(each.ops for each in events.sealed)
    assert counts["frame_bytes"] == sum(each.size_bytes for each in events.framed)
    assert (counts["segments"], counts["reads"]) == (len(events.sealed), len(events.fetched))
    assert counts["submissions"] == len(events.asked[0].answer.runs)


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


def test_a_submission_that_sessions_share_counts_once() -> None:
    answer = Profiled(100, 0, (Run(1, 10, 20, 90, 50, 0, 7, 0, 1, 2, 1, 0),))
    sessions = [SessionEvents(name, {}, asked=[Asked(5, 120, answer)]) for name in ("one", "two")]
    counts = timeline_of(0, 200, sessions).counts
    assert (counts["submissions"], counts["device_ns"]) == (1, 50)


def test_tracks_of_several_sessions_have_their_names() -> None:
    timeline = timeline_of(BEGAN_NS, BEGAN_NS + 1, [SessionEvents("one", {}), SessionEvents("two", {})])
    assert timeline.counts["sessions"] == 2
    assert [each.name for each in timeline.series] == [
        f"{what} of {name}" for name in ("one", "two") for what in ("queue", "memory")
    ]
