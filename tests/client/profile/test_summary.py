"""Six lines say where the time went."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given

from fusewire._profile.summary import duration, shares_of, size, summary_of
from fusewire._profile.timeline import Block, Segment, Timeline
from tests.client.profile.drawn import Drawn, sessions

_COUNTS = {
    "sessions": 1,
    "threads": 1,
    "ops": 100,
    "segments": 4,
    "frames": 4,
    "frame_bytes": 4096,
    "submissions": 4,
    "device_ns": 50_000,
    "reads": 2,
}


def _timeline(*blocks: Block, **fields: Any) -> Timeline:
    segments = (Segment("tanh", "train.py:3", 25, 1, "demand", ("tanh",)),)
    return Timeline(1_000_000, ("main thread",), blocks, segments, (), _COUNTS, 1500, ())._replace(**fields)


@given(sessions())
def test_there_are_six_lines_and_shares_are_the_whole(drawn: Drawn) -> None:
    timeline = drawn.timeline
    assert len(summary_of(timeline)) == 6
    shares = [each.share for each in shares_of(timeline)]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)


def test_the_greatest_part_stands_first_with_its_line() -> None:
    facts = (("way_ns", 500_000), ("queue_ns", 0), ("run_ns", 100_000))
    reads = [Block(0, "read", at_ns, at_ns + 300_000, "", 0, "train.py:40", facts) for at_ns in (0, 400_000)]
    submission = Block(1, "submission", 0, 50_000, "tanh", 0)
    assert summary_of(_timeline(*reads, submission)) == (
        "1 ms: 100 ops in 4 segments, clocks aligned to ±1.5 µs",
        "waiting for reads 60%: 2 reads, each a round trip; your line train.py:40",
        "your code and recording 40%: 4 µs an op",
        "waiting for the device to catch up 0%: none",
        "cutting and sending 0%: 4 frames of 4.0 KiB",
        "the device computed for 5% of it: 4 submissions, most for tanh (train.py:3); at most 0 bytes of memory",
    )


def test_of_several_lines_the_one_with_most_of_the_time_is_named() -> None:
    waits = [Block(0, "credit", 0, 300, "", line="a.py:1"), Block(0, "credit", 300, 400, "", line="a.py:2")]
    assert "waiting for the device to catch up 0%: 2 times; most at your line a.py:1" in summary_of(_timeline(*waits))


def test_clocks_that_could_not_be_aligned_are_told() -> None:
    assert summary_of(_timeline(error_ns=None))[0].endswith("with clocks that could not be aligned")


def test_durations_and_sizes_have_units() -> None:
    assert [duration(each) for each in (999, 1500, 12_345_678, 6.5e10)] == ["999 ns", "1.5 µs", "12.3 ms", "65 s"]
    assert [size(each) for each in (1000, 2048, 3 << 20, 5 << 30)] == ["1000 bytes", "2.0 KiB", "3.0 MiB", "5.0 GiB"]
