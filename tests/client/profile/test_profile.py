"""A profile tells what a session did, writes its files, and changes nothing of what is sent."""

from __future__ import annotations

import json
import sys
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import fusewire as fw
from fusewire._profile.collector import Collector
from fusewire._profile.events import NO_LINE
from fusewire_protos.frames import Entry, Fetch, Profile, Segment, Upload
from tests.client.peer import connect, entries
from tests.client.profile.trace_rules import checked

pytestmark = pytest.mark.usefixtures("no_other_sessions")


def _here() -> int:
    return sys._getframe(1).f_lineno


def _steps(session: fw.Session, count: int = 30) -> None:
    x = session.array(np.ones((4, 4), np.float32))
    for step in range(count):
        x = fw.tanh(x @ x)
        if step % 10 == 9:
            x.numpy()


def test_counts_are_those_of_what_was_sent() -> None:
    peer = connect()
    with peer.session as session, fw.profile() as p:
        _steps(session)
    counts, sent = p.timeline.counts, Counter(type(each) for each in peer.server.entries)
    assert (counts["segments"], counts["reads"], counts["uploads"]) == (sent[Segment], sent[Fetch], sent[Upload])
    assert counts["submissions"] == sent[Segment]
    assert counts["ops"] == 60
    assert p.timeline.notes == ()


def test_blocks_have_the_lines_of_the_program() -> None:
    with connect().session as session, fw.profile() as p:
        x, recorded = session.array(np.ones(4, np.float32)) + 1, _here()
        _, read = x.numpy(), _here()
    (submission,) = [each for each in p.timeline.blocks if each.kind == "submission"]
    (wait,) = [each for each in p.timeline.blocks if each.kind == "read"]
    assert p.timeline.segments[submission.segment].line == f"{Path(__file__).name}:{recorded}"
    assert (wait.line, wait.segment) == (f"{Path(__file__).name}:{read}", submission.segment)


def test_a_profile_changes_nothing_of_what_is_sent() -> None:
    def sent(*, is_profiled: bool) -> list[Entry]:
        peer = connect(is_manual=True)  # so that no clock decides what is cut
        collector = Collector(lambda: None)
        with peer.session as session:
            session._state.profile = collector if is_profiled else None
            x = session.array(np.ones((2, 2), np.float32))
            values = []
            for step in range(5000):
                x = fw.tanh(x * 0.5)
                if step % 1000 == 999:
                    values.append(x.future())
            peer.transport.run_once()
            assert all(value.done() for value in values)
        noted = len(collector.events("a", [], ()).sealed)
        assert noted == (len(entries(peer, Segment)) if is_profiled else 0)
        return peer.server.entries

    assert sent(is_profiled=True) == sent(is_profiled=False)


def test_what_is_recorded_at_the_end_is_told_without_being_sent_early() -> None:
    peer = connect()
    with peer.session as session:
        x = session.array(np.ones(4, np.float32))
        with fw.profile() as p:
            y = fw.exp(x)
        assert session.stats.cuts["age"] == 1  # it was sent because its thread paused, as it would be without a profile
        assert p.timeline.counts["submissions"] == 1
        assert y.numpy()[0] == pytest.approx(np.e)


def test_a_session_that_is_opened_and_closed_in_the_block_is_told() -> None:
    with fw.profile() as p:
        for _ in range(2):
            with connect().session as session:
                _steps(session)
    counts = p.timeline.counts
    assert (counts["sessions"], counts["reads"], counts["submissions"]) == (2, 6, counts["segments"])


def test_afterwards_the_session_is_no_longer_watched() -> None:
    peer = connect()
    with peer.session as session:
        with fw.profile():
            _steps(session)
        assert session._state.profile is None
        assert session._state.stream.on_made is None
        assert entries(peer, Profile)[-1].goes_on is False
        asked = len(entries(peer, Profile))
        _steps(session)
        assert len(entries(peer, Profile)) == asked


def test_files_are_written_also_after_an_error_of_the_block(tmp_path: Path) -> None:
    page, trace = tmp_path / "run.html", tmp_path / "run.json"
    with connect().session as session:
        p = fw.profile(page, trace=trace)
        with pytest.raises(ZeroDivisionError), p:
            float(session.array([2.0])) / 0
        assert "Fusewire profile" in page.read_text(encoding="utf-8")
        assert checked(trace.read_text(encoding="utf-8"))
        assert json.loads(trace.read_text(encoding="utf-8"))["otherData"]["counts"] == dict(p.timeline.counts)
        assert str(p).splitlines() == list(p.summary)
        assert len(p.summary) == 6


def test_a_profile_without_a_session_is_empty() -> None:
    with fw.profile() as p:
        pass
    assert p.timeline.counts["sessions"] == 0
    assert "no op" in str(p)


def test_one_profile_is_on_at_a_time_and_used_once(tmp_path: Path) -> None:
    with fw.profile() as p:
        with pytest.raises(fw.RequestError, match="a profile is on already"), fw.profile():
            pass
        with pytest.raises(fw.RequestError, match="once its block has ended"):
            _ = p.summary
        assert "has not ended" in str(p)
    with pytest.raises(fw.RequestError, match="used once"), p:
        pass


def test_a_file_that_cannot_be_written_is_refused_before_the_block(tmp_path: Path) -> None:
    for path in (tmp_path, tmp_path / "missing" / "run.html"):
        with pytest.raises(fw.ArgumentError, match="cannot be written"), fw.profile(path):
            pytest.fail("the block ran")
    with fw.profile(tmp_path / "run.html"):
        pass


def test_a_session_that_ends_in_the_block_leaves_a_note() -> None:
    peer = connect()
    with fw.profile() as p:
        _steps(peer.session)
        peer.session._end(fw.SessionLost("gone"))
    assert "the server could not be asked: gone" in p.timeline.notes


def test_waits_for_credit_are_told() -> None:
    peer = connect(holds_completion=False)
    profiling = peer.session.begin_profile()
    peer.session._state.profile.on_waited("credit", 0)  # type: ignore[union-attr]
    events = profiling.end("a", None)
    (wait,) = events.waited
    assert (wait.kind, wait.line != NO_LINE) == ("credit", True)
    peer.session.close()
