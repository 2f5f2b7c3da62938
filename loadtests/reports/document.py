"""Builds the JSON document of a load test. `loadtests/README.md` describes every field.

Increase `VERSION` with every change that could break a program which reads the document.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np

from loadtests.load.load_test import Load, LoadResult
from loadtests.load.options import Options
from loadtests.load.run import Run
from loadtests.load.target.watch import growth_bytes_per_s
from loadtests.load.windows.samples import windows
from loadtests.load.windows.settling import MEASURED_WINDOWS
from loadtests.reports.latencies import latencies_of

SCHEMA, VERSION = "fusewire-load-test", 1
_INTERVALS_A_WINDOW = 10
_PHASES = ("decode", "queue", "plan", "compile", "device_thread", "device", "copy_out")
_KEPT_SHARE = 0.95  # an open loop keeps its rate if it does at least this share of the intended steps
_MOST_LAG_SHARE = 0.25  # of the latencies; more of the load test's own lag makes an open loop void
_LAGS = ("lag_mean_s", "lag_p99_s", "lag_max_s")

Document = dict[str, Any]


def document_of(options: Options, result: LoadResult, server: Document, machine: Mapping[str, Any]) -> Document:
    """Returns the document of a load test as plain data."""
    load = result.load
    document: Document = {
        "schema": SCHEMA,
        "version": VERSION,
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        **_asked(options),
        **_speed(load.run),
        **_lags(options, load.run),
        **_rows(load.run),
        **_errors(load.run),
        **_verified(result),
        **_cost(load),
        **_memory(load.run),
        "left_over": _left_over(result),
        "undisturbed": None if result.undisturbed is None else _speed(result.undisturbed.run),
        "peer": None if result.peer is None else _peer(options, load.run, result.peer),
        "by_session": _by_session(load),
        "phases": _phases(load.run),
        "timeline": _timeline(load.run),
        "server": server,
        "machine": dict(machine),
    }
    document["p99_to_p50"] = document["p99_s"] / document["p50_s"] if document["p50_s"] else None
    device_ns = [each["device_ns"] for each in document["by_session"] if each["device_ns"] is not None]
    document["fairness"] = fairness(device_ns)
    document["p99_to_undisturbed"] = _ratio(document, "undisturbed", "p99_s")
    document["steps_to_peer"] = _ratio(document, "peer", "steps_per_s")
    document["problems"] = _problems(document)
    return document


def _asked(options: Options) -> Document:
    return {
        "scenario": options.scenario.name,
        "what": options.scenario.what,
        "sessions": options.sessions,
        "processes": options.processes,
        "seconds": options.seconds,
        "rate_per_s": options.rate_per_s,
        "seed": options.seed,
    }


def _speed(run: Run) -> Document:
    """Returns rates and latencies of the last three windows, which are the measured windows.

    A step counts for the rate if it ended within these windows, and for the latencies if it was under way within them.
    So a stall at the end counts too.
    """
    began_ns, ended_ns = run.first.at_ns, run.last.at_ns
    measured_s = (ended_ns - began_ns) / 1e9
    under_way = run.samples.under_way_within(began_ns, ended_ns)
    steps = len(run.samples.ended_within(began_ns, ended_ns))
    latencies = latencies_of(under_way.latency_ns)
    percentiles = dict.fromkeys(("p50_s", "p90_s", "p99_s", "p999_s", "max_s", "mean_s", "histogram"))
    return {
        "settled": run.has_settled,
        "windows": len(run.windows),
        "warm_up_s": (began_ns - run.began_ns) / 1e9,
        "measured_s": measured_s,
        "steps": steps,
        "steps_per_s": steps / measured_s,
        "ops_per_s": (run.last.ops - run.first.ops) / measured_s,
        **(percentiles if latencies is None else latencies._asdict()),
        "queued_s": _mean_s(under_way.due_ns - under_way.intended_ns),
        "record_s": _mean_s(under_way.recorded_ns - under_way.began_ns),
        "wait_s": _mean_s(under_way.ended_ns - under_way.recorded_ns),
    }


def _lags(options: Options, run: Run) -> Document:
    """Returns how late the load test itself began its steps; None in a closed loop, which has no schedule."""
    lag_ns = run.samples.under_way_within(run.first.at_ns, run.last.at_ns).lag_ns
    if options.rate_per_s is None or not len(lag_ns):
        return dict.fromkeys(_LAGS)
    lags_ns = lag_ns.mean(), np.percentile(lag_ns, 99, method="inverted_cdf"), lag_ns.max()
    return {name: float(lag) / 1e9 for name, lag in zip(_LAGS, lags_ns, strict=True)}


def _peer(options: Options, ours: Run, peer: Run) -> Document:
    """Returns the peer's speed. A step counts as many ops as a step in Fusewire, because the program is the same."""
    steps = sum(report.steps for report in ours.reports)
    speed = _speed(peer)
    speed["ops_per_s"] = speed["steps_per_s"] * ours.last.ops / steps
    return {"library": options.peer, **speed}


def _mean_s(times_ns: Any) -> float | None:
    return float(times_ns.mean()) / 1e9 if len(times_ns) else None


def _rows(run: Run) -> Document:
    """Returns the mean rows of a submission, and the share of ready sessions whose rows were in a submission.

    The numbers are None if the server's inspection is not known.
    """
    if run.first.stats is None or run.last.stats is None:
        return {"rows_per_launch": None, "rows_per_ready": None, "rows_histogram": None}
    histograms = [edge["rows_per_launch"]["buckets"] for edge in (run.first.stats, run.last.stats)]
    before, after = run.first.stats["totals"], run.last.stats["totals"]
    coalesced_before, coalesced = before.get("coalescing", {}), after.get("coalescing", {})
    ready = coalesced.get("ready_sessions", 0) - coalesced_before.get("ready_sessions", 0)
    submissions = after["submissions"] - before["submissions"]
    return {
        "rows_per_launch": (after["rows"] - before["rows"]) / submissions if submissions else None,
        "rows_per_ready": (coalesced["rows"] - coalesced_before["rows"]) / ready if ready else None,
        "rows_histogram": _launches_since(*histograms),
    }


def _launches_since(before: Sequence[Document], after: Sequence[Document]) -> list[Document]:
    """Returns, for each bucket of a histogram of rows, how many launches were added between two readings."""
    known = {bucket["at_most"]: bucket["count"] for bucket in before}
    counts = ((bucket["at_most"], bucket["count"] - known.get(bucket["at_most"], 0)) for bucket in after)
    return [{"at_most": at_most, "count": count} for at_most, count in counts if count]


def _errors(run: Run) -> Document:
    messages = [f"session {report.session}: {report.error}" for report in run.reports if report.error is not None]
    return {"errors": len(messages), "error_messages": messages[:10]}


def _verified(result: LoadResult) -> Document:
    verification = result.verification
    if verification is None:
        return {"verified": None, "verified_values": 0, "differences": []}
    return {
        "verified": not verification.differences,
        "verified_values": verification.values,
        "differences": list(verification.differences),
    }


def _cost(load: Load) -> Document:
    """Returns the processor time of the client processes, and the share of it that the load test's own code took."""
    run = load.run
    processor_s = run.last.processor_s - run.first.processor_s
    steps = len(run.samples.ended_within(run.first.at_ns, run.last.at_ns))
    share = None
    if load.harness_step_s is not None and processor_s > 0:
        share = load.harness_step_s * steps / processor_s
    return {"client_processor_s": processor_s, "harness_share": share}


def _memory(run: Run) -> Document:
    began_s = (run.first.at_ns - run.began_ns) / 1e9
    measured = [sample for sample in run.memory if sample.at_s >= began_s]
    server = [(sample.at_s, sample.server_bytes) for sample in measured if sample.server_bytes is not None]
    clients = [(sample.at_s, sample.clients_bytes) for sample in measured]
    return {
        "server_growth_bytes_per_s": growth_bytes_per_s(server),
        "clients_growth_bytes_per_s": growth_bytes_per_s(clients),
        "memory": [sample._asdict() for sample in run.memory],
    }


def _left_over(result: LoadResult) -> Document:
    left = result.left_over
    return {
        "before": left.before._asdict(),
        "after": left.after._asdict(),
        "within_s": left.within_s,
        "is_clean": left.is_clean,
    }


def _by_session(load: Load) -> list[Document]:
    """Returns what each session did within the measured windows."""
    run = load.run
    measured = run.samples.ended_within(run.first.at_ns, run.last.at_ns)
    before = {each["session"]: each["device_ns"] for each in run.first.sessions}
    device_ns = {
        load.sessions[each["session"]]: each["device_ns"] - before.get(each["session"], 0)
        for each in run.last.sessions
        if each["session"] in load.sessions
    }
    sessions = []
    for report in run.reports:
        own = latencies_of(measured.where(measured.session == report.session).latency_ns)
        sessions.append(
            {
                "session": report.session,
                "steps": int((measured.session == report.session).sum()),
                "p50_s": None if own is None else own.p50_s,
                "p99_s": None if own is None else own.p99_s,
                "device_ns": device_ns.get(report.session),
            }
        )
    return sessions


def fairness(shares: Sequence[float]) -> float | None:
    """Returns the index of Jain, Chiu and Hawe: 1 if all n shares are equal, 1/n if one share is everything."""
    squares = float(np.square(shares, dtype=np.float64).sum())
    return float(np.sum(shares)) ** 2 / (len(shares) * squares) if squares else None


def _phases(run: Run) -> Document | None:
    """Returns count and mean time of each phase of the server within the measured windows."""
    if run.first.stats is None or run.last.stats is None:
        return None
    phases = {}
    for name in _PHASES:
        before, after = run.first.stats["phases"][name], run.last.stats["phases"][name]
        count = after["count"] - before["count"]
        total_s = (after["total_ns"] - before["total_ns"]) / 1e9
        phases[name] = {"count": count, "mean_s": total_s / count if count else None}
    return phases


def _timeline(run: Run) -> list[Document]:
    """Divides the whole load, warm-up included, into ten intervals for each window. Returns their summaries."""
    first_ns, measured_ns, last_ns = run.edges[0].at_ns, run.first.at_ns, run.last.at_ns
    spans = (first_ns, measured_ns, len(run.windows) - MEASURED_WINDOWS), (measured_ns, last_ns, MEASURED_WINDOWS)
    return [
        {**interval._asdict(), "is_measured": began_ns == measured_ns}
        for began_ns, ended_ns, count in spans
        if count > 0
        for interval in windows(run.samples, run.began_ns, began_ns, ended_ns, count * _INTERVALS_A_WINDOW)
    ]


def _ratio(document: Document, other: str, field: str) -> float | None:
    theirs, ours = (document[other] or {}).get(field), document[field]
    return ours / theirs if ours is not None and theirs else None


def _lag_problems(document: Document) -> list[str]:
    """Returns a sentence if an open loop is void, because its latencies are to a great part the load test's own lag."""
    if document["lag_mean_s"] is None:
        return []
    found = []
    for what, lag, latency in (("on average", "lag_mean_s", "mean_s"), ("at p99", "lag_p99_s", "p99_s")):
        if document[lag] > _MOST_LAG_SHARE * document[latency]:
            times = f"steps began {document[lag]:.3g} s late {what}, which is more than {_MOST_LAG_SHARE:.0%} of the"
            advice = "take more --processes or a lower --rate"
            found.append(
                f"void, the load test itself was too slow: {times} latency of {document[latency]:.3g} s; {advice}"
            )
    return found


def _problems(document: Document) -> list[str]:
    """Returns sentences that say why the load test has failed; an empty list if it has not failed."""
    problems = [f"{document['errors']} of {document['sessions']} sessions failed"] if document["errors"] else []
    problems += document["error_messages"] + document["differences"] + _lag_problems(document)
    rate = document["rate_per_s"]
    if rate is not None and document["steps_per_s"] < _KEPT_SHARE * rate:
        problems.append(f"the rate of {rate:g} steps a second was not kept: {document['steps_per_s']:.1f} were done")
    left = document["left_over"]
    for what in ("sessions", "live_bytes"):
        before, after = left["before"][what], left["after"][what]
        if before is not None and after is not None and after > before:
            problems.append(f"the server still holds {after} {what}; it held {before} before the load")
    return problems
