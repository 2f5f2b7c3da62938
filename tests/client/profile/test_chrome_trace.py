"""The trace keeps to Chrome's format, and has every block, arrow and figure of the timeline."""

from __future__ import annotations

import json
from collections import Counter

from hypothesis import given

from fusewire._profile.chrome_trace import trace_text
from tests.client.profile.drawn import Drawn, sessions
from tests.client.profile.trace_rules import checked


@given(sessions())
def test_the_trace_keeps_to_the_format_and_has_every_block(drawn: Drawn) -> None:
    timeline = drawn.timeline
    text = trace_text(timeline)
    events = checked(text)
    kinds = Counter(each["cat"] for each in events if each["ph"] == "X")
    assert kinds == Counter(each.kind for each in timeline.blocks)
    assert sum(each["ph"] == "C" for each in events) == sum(len(each.points) for each in timeline.series)
    assert json.loads(text)["otherData"]["counts"] == dict(timeline.counts)


@given(sessions())
def test_arrows_lead_from_what_recorded_or_cut_a_segment_to_its_submissions(drawn: Drawn) -> None:
    timeline = drawn.timeline
    events = checked(trace_text(timeline))
    lasting = [each for each in timeline.blocks if each.ended_ns > each.began_ns]
    submissions = Counter(each.segment for each in lasting if each.kind == "submission")
    origins = {each.segment for each in lasting if each.kind in {"code", "cut"}}
    arrows = Counter(each["id"] - 1 for each in events if each["ph"] in "tf")
    assert arrows == {segment: count for segment, count in submissions.items() if segment in origins}
    on_server = {each["ph"] for each in events if each["ph"] in "stf" and each["pid"] == 2}
    assert on_server <= {"t", "f"}
