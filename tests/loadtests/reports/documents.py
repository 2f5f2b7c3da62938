"""Documents of load tests that were never run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from loadtests.load.checks.verification import Verification
from loadtests.load.load_test import Load, LoadResult
from loadtests.load.options import Options
from loadtests.load.run import Edge, Run
from loadtests.load.runners.runner import RunnerReport
from loadtests.load.target.left_over import Held, LeftOver
from loadtests.load.target.watch import MemorySample
from loadtests.load.windows.samples import Step, of_steps, windows
from loadtests.load.worker import Usage
from loadtests.reports.document import Document, document_of
from loadtests.scenarios.catalogue import find_scenarios

_MS = 1_000_000
_SECOND = 1_000_000_000
NOTHING = Held(0, 0, None, None, None, None)


def run_of(latencies_ms: Sequence[float], *, errors: Sequence[str | None] = (None, None), lag_ms: float = 0) -> Run:
    """Six windows of a second; two sessions, whose steps follow one another and have these latencies in turn.

    Each step begins `lag_ms` late by the load test's own fault.
    """
    steps = []
    for session in range(2):
        now_ns, number = 0, 0
        while now_ns < 6 * _SECOND:
            ended_ns = now_ns + round(latencies_ms[number % len(latencies_ms)] * _MS)
            began_ns = now_ns + round(lag_ms * _MS)
            steps.append(Step(session, now_ns, now_ns, began_ns, began_ns + _MS // 10, ended_ns))
            now_ns, number = ended_ns, number + 1
    samples = of_steps(steps)
    edges = tuple(_edge(second) for second in range(7))
    reports = tuple(RunnerReport(session, 100, error) for session, error in enumerate(errors))
    memory = tuple(MemorySample(at / 2, (50 << 20) + (at << 19), 30 << 20) for at in range(12))
    return Run(0, edges, windows(samples, 0, 0, 6 * _SECOND, 6), samples, reports, memory, has_settled=True)


def document(
    latencies_ms: Sequence[float] = (10,),
    *,
    errors: Sequence[str | None] = (None, None),
    verification: Verification | None = None,
    after: Held = NOTHING,
    rate_per_s: float | None = None,
    harness_step_s: float | None = 1e-6,
    lag_ms: float = 0,
) -> Document:
    """The document of such a run, with a peer that takes twice as long."""
    options = Options(find_scenarios()["rnn"], 2, 1, 3.0, rate_per_s, peer="numpy")
    load = Load(run_of(latencies_ms, errors=errors, lag_ms=lag_ms), {"aa": 0, "bb": 1}, harness_step_s)
    peer = run_of(np.multiply(latencies_ms, 2).tolist())
    result = LoadResult(load, None, peer, verification, LeftOver(NOTHING, after, 0.1))
    return document_of(options, result, {"target": "nowhere:1"}, {"cores": 2})


def document_without_steps() -> Document:
    """The document of a run in which no step ended, neither with a disturber, nor without it, nor in the peer."""
    fields = ("p50_s", "p90_s", "p99_s", "p999_s", "max_s", "mean_s", "histogram", "record_s", "wait_s")
    result = {**document(), **dict.fromkeys(fields), "steps": 0, "steps_per_s": 0.0}
    timeline = [
        {**interval, "steps": 0, "p50_s": None, "p99_s": None, "max_s": None} for interval in result["timeline"]
    ]
    peer = {"library": "numpy", "steps_per_s": 0.0, "p50_s": None}
    ratios = dict.fromkeys(("p99_to_p50", "p99_to_undisturbed", "steps_to_peer"))
    return {**result, **ratios, "timeline": timeline, "undisturbed": {"p99_s": None}, "peer": peer}


def _edge(second: int) -> Edge:
    phase = {"count": 10 * second, "total_ns": second * _MS}
    names = ("decode", "queue", "plan", "compile", "device_thread", "device", "copy_out")
    stats = {
        "totals": {
            "rows": 30 * second,
            "submissions": 20 * second,
            "coalescing": {"submissions": 10 * second, "rows": 18 * second, "ready_sessions": 20 * second},
        },
        "phases": dict.fromkeys(names, phase),
        "rows_per_launch": {"buckets": [{"at_most": 1, "count": 10 * second}, {"at_most": 2, "count": 10 * second}]},
    }
    sessions = [{"session": "aa", "device_ns": 2 * second}, {"session": "bb", "device_ns": second}]
    return Edge(second * _SECOND, (Usage(second / 2, 1 << 20, 600 * second),), stats, sessions)
