"""A profile on a real server: what it tells are the server's own counts, on one clock, and it changes no launch."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

import fusewire as fw
from fusewire._profile.runs import alignment_of, runs_by_base
from tests.client.profile.trace_rules import checked
from tests.contract.service import Service
from tests.patience import HANGS_S

pytestmark = pytest.mark.usefixtures("no_other_sessions")

_STEPS = 200


def _train(session: fw.Session) -> None:
    random = np.random.default_rng(2)
    h, w = (session.array(random.normal(size=(16, 16)).astype(np.float32)) for _ in range(2))
    for step in range(_STEPS):
        h = fw.tanh(h @ w)
        if step % 5 == 4:
            h.numpy()


def test_counts_are_those_of_the_server(service: Service, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    with service.connect() as session:
        _train(session)
        before = service.totals()
        segments = session.stats.segments
        with fw.profile(trace=path) as p:
            _train(session)
        after, counts = service.totals(), p.timeline.counts
        assert counts["segments"] == session.stats.segments - segments
    assert counts["submissions"] == after["submissions"] - before["submissions"]
    assert (counts["reads"], counts["ops"]) == (_STEPS // 5, 2 * _STEPS)
    assert p.timeline.notes == ()
    slices = Counter(each["cat"] for each in checked(path.read_text(encoding="utf-8")) if each["ph"] == "X")
    assert (slices["submission"], slices["read"], slices["frame"]) == (
        counts["submissions"],
        counts["reads"],
        counts["frames"],
    )
    assert json.loads(path.read_text(encoding="utf-8"))["otherData"]["counts"]["submissions"] == counts["submissions"]


def test_on_one_machine_the_clocks_are_equal_within_the_error(service: Service) -> None:
    for local in (True, False):
        with service.connect(local=local) as session:
            profiling = session.begin_profile()
            _train(session)
            events = profiling.end("a", None)
        runs = runs_by_base([run for each in events.asked for run in each.answer.runs])
        found = alignment_of(events, runs)
        assert found.error_ns is not None
        assert abs(found.ahead_ns[0]) <= found.error_ns


def test_each_segment_ran_after_it_was_sent_and_before_its_value_came(service: Service) -> None:
    with service.connect() as session, fw.profile() as p:
        _train(session)
    timeline = p.timeline
    error_ns = timeline.error_ns
    assert error_ns is not None
    cut = {each.segment: each.began_ns for each in timeline.blocks if each.kind == "cut"}
    ran = {each.segment: each for each in timeline.blocks if each.kind == "submission"}
    assert ran.keys() == cut.keys()
    assert all(ran[segment].began_ns + error_ns >= cut[segment] for segment in cut)
    waits = [each for each in timeline.blocks if each.kind == "read"]
    assert all(ran[wait.segment].ended_ns - error_ns <= wait.ended_ns for wait in waits)


def test_the_end_waits_no_longer_for_a_held_device_than_the_timeout_and_tells_what_is_missing(service: Service) -> None:
    with service.connect() as session:
        x = session.array(np.ones(4, np.float32))
        (x + 1).numpy()
        with service.held(), fw.profile(timeout=0.2) as p:
            future = (x * 2).future()  # so that the op is sent at once
        future.result(HANGS_S)
    assert p.timeline.counts["submissions"] == 0
    assert "the device did not do all that was recorded in time: the rest is missing" in str(p)


def test_slices_of_a_loop_are_told_one_by_one(hasty: Service) -> None:
    with hasty.connect() as session:
        x = session.array(np.ones(1 << 14, np.float32))
        with fw.profile() as p:
            x = fw.fori_loop(3000, lambda _, y: fw.tanh(y * 0.5), x)
            x.numpy()
    submissions = [each for each in p.timeline.blocks if each.kind == "submission"]
    (segment,) = {each.segment for each in submissions if dict(each.facts)["iterations"] > 1}
    iterations = [dict(each.facts)["iterations"] for each in submissions if each.segment == segment]
    assert sum(iterations) == p.timeline.segments[segment].iterations == 3000
    assert len(iterations) > 1
