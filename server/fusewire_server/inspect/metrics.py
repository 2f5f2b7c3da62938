"""Writes a snapshot as metrics in the text format of Prometheus.

Every series exists from the start of the server with the value 0, but those of a tenant, which begin with its first
session. The values of each label are a closed set, so no client can make the number of series grow. Names have the
prefix `fusewire_`; units are seconds and bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, fields
from datetime import datetime

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from fusewire_protos.errors import CASES
from fusewire_server.inspect.requests.refusals import CASES as INSPECTION_CASES
from fusewire_server.inspect.requests.refusals import INSPECTION_DOOR
from fusewire_server.inspect.snapshots.snapshot import DeviceView, Histogram, Phases, Snapshot, Stats
from fusewire_server.programs.counters import END_REASONS, FAILURES, SESSION_DOOR, TOKEN_DOOR, TRANSFER_DOOR
from fusewire_server.scheduling.coalescer import BatchEnd
from fusewire_server.sessions.session import SessionState
from fusewire_server.sessions.tenant_times import TenantTimes

CONTENT_TYPE = CONTENT_TYPE_LATEST

_ROWS_BUCKETS = tuple(2**power for power in range(8))
_OPS_BUCKETS = tuple(2**power for power in range(14))
_REFUSALS = {  # the cases of each door
    TOKEN_DOOR: ("unauthenticated",),
    SESSION_DOOR: FAILURES,
    TRANSFER_DOOR: FAILURES,
    INSPECTION_DOOR: INSPECTION_CASES,
}


def exposition(snapshot: Snapshot, loop_lag_s: float) -> bytes:
    """Returns all metrics. `loop_lag_s` is the time that the loop thread needed to take the snapshot."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(snapshot, loop_lag_s))
    return generate_latest(registry)


class _Families(Collector):
    def __init__(self, snapshot: Snapshot, loop_lag_s: float) -> None:
        self._snapshot = snapshot
        self._loop_lag_s = loop_lag_s

    def collect(self) -> Iterator[Metric]:
        stats = self._snapshot.stats
        yield from _state(stats)
        yield from _work(stats)
        yield from _failures(stats)
        yield from _queue(stats)
        yield from _memory(stats)
        yield from _sessions(self._snapshot)
        yield from _tenants(self._snapshot.tenant_times)
        yield from _programs(self._snapshot)
        yield from _process(stats)
        yield from _devices(stats.devices)
        yield _gauge("loop_lag_seconds", "Time that the event loop needed to answer this request.", self._loop_lag_s)


def _state(stats: Stats) -> Iterator[Metric]:
    build = GaugeMetricFamily(
        "fusewire_build_info",
        "Version and device of the server; the value is 1.",
        labels=("version", "backend", "device"),
    )
    build.add_metric((stats.version, stats.backend.name, stats.backend.device), 1)
    yield build
    yield _gauge(
        "start_time_seconds", "Start of the server, Unix time.", datetime.fromisoformat(stats.started_at).timestamp()
    )
    yield _gauge("ready", "1 if the server can do what clients send.", stats.is_ready)
    yield _gauge("draining", "1 if the server shuts down.", stats.is_draining)
    yield _gauge("held", "1 if an operator holds the device.", stats.is_held)
    yield _gauge("trouble", "1 if the machine cannot compile programs now.", bool(stats.trouble))


def _work(stats: Stats) -> Iterator[Metric]:
    totals = stats.totals
    yield _counter("ops", "Ops that the device has completed.", totals.ops)
    yield _counter("segments", "Segments that have come.", totals.segments)
    yield _counter("rows", "Rows of the completed submissions; a loop is a row of each of its slices.", totals.rows)
    yield _counter("submissions", "Submissions that the device has completed.", totals.submissions)
    by_tier = {"0": totals.tier0_launches, "1": totals.launches - totals.tier0_launches}
    yield _counters("launches", "Kernel launches, by tier of the program.", "tier", by_tier)
    yield _counter("received_bytes", "Bytes of frames and uploads from clients.", totals.received_bytes)
    yield _counter("sent_bytes", "Bytes of frames and downloads to clients.", totals.sent_bytes)
    yield _histogram("rows_per_submission", "Rows of a submission.", stats.rows_per_launch, _ROWS_BUCKETS)
    yield _histogram("ops_per_launch", "Ops of a kernel launch.", stats.ops_per_launch, _OPS_BUCKETS)
    coalescing = totals.coalescing
    yield _counter("unlimited_rows", "Rows of submissions that no limit made smaller.", coalescing.rows)
    yield _counter("ready_rows", "Rows that were ready for these submissions.", coalescing.ready_sessions)
    batches = _all_of([end.value for end in BatchEnd], totals.batches)
    yield _counters("batches", "Batches of rows for submissions, by why they have no more rows.", "ended_by", batches)
    launching = stats.launching
    yield _counter("persistent_launches", "Launches that ran many iterations of a loop.", launching.persistent_launches)
    yield _gauge("graphs", "Captured graphs of launches that are kept.", launching.graphs)
    yield _counter("graphs_captured", "Graphs of launches that were captured.", launching.captured)
    yield _counter("graphs_evicted", "Graphs of launches that were dropped to make room.", launching.evicted)
    yield from _phases(stats.phases)


def _failures(stats: Stats) -> Iterator[Metric]:
    totals = stats.totals
    yield _counters("failures", "Failures, by case.", "case", _all_of([case.name for case in CASES], totals.failures))
    refusals = CounterMetricFamily(
        "fusewire_refusals", "Refused calls and requests, by door and case.", labels=("door", "case")
    )
    for door, cases in _REFUSALS.items():
        for case, count in _all_of(cases, totals.refusals.get(door, {})).items():
            refusals.add_metric((door, case), count)
    yield refusals


def _queue(stats: Stats) -> Iterator[Metric]:
    queue = stats.queue
    rows = {"ready": queue.ready, "held_back": queue.held_back}
    yield _gauges("queued_rows", "Rows that wait: ready ones, and those that wait for uploads.", "state", rows)
    yield _gauge("queue_oldest_seconds", "Age of the oldest row that is the next of its session.", queue.oldest_s)
    waits = stats.kernel_waits
    yield _gauge("kernel_waits", "Kernels of single ops that rows wait for.", waits.kernels)
    yield _gauge("kernel_wait_sessions", "Sessions whose rows wait for kernels of single ops.", waits.sessions)
    yield _gauge("kernel_wait_oldest_seconds", "Time of the longest wait for a kernel.", waits.oldest_s)
    used_up = stats.totals.credit_used_up
    yield _counter("credit_used_up", "Segments and uploads that left no credit for another one like them.", used_up)
    yield _gauge(
        "sessions_without_credit",
        "Sessions that wait for credit if they have more to send.",
        stats.sessions_without_credit,
    )


def _phases(phases: Phases) -> Iterator[Metric]:
    totals = {field.name: getattr(phases, field.name) for field in fields(phases)}
    seconds = {phase: total.total_ns / 1e9 for phase, total in totals.items()}
    runs = {phase: total.count for phase, total in totals.items()}
    yield _counters("phase_seconds", "Time by phase of the work.", "phase", seconds)
    yield _counters("phase_runs", "How often each phase of the work ran.", "phase", runs)


def _memory(stats: Stats) -> Iterator[Metric]:
    memory = stats.memory
    sizes = {"live": memory.live_bytes, "peak": memory.peak_bytes, "pool": memory.pool_bytes}
    yield _gauges("device_memory_bytes", "Device memory of values now, at their peak, and of the pool.", "kind", sizes)
    yield _gauge("device_memory_size_bytes", "Memory of the device.", stats.backend.memory_bytes)
    session_bytes = asdict(stats.session_bytes)
    yield _gauges("session_bytes", "Bytes of all sessions, by what they are for.", "kind", session_bytes)
    host_bytes = asdict(stats.host_memory)
    yield _gauges("host_memory_bytes", "Memory of the server process, by what it is for.", "kind", host_bytes)
    yield _gauge("program_bytes", "Host memory of all known programs.", stats.program_bytes)
    yield _counter("donations", "Results that were written over inputs.", memory.donations)
    yield _counter("donated_bytes", "Bytes of results that were written over inputs.", memory.donated_bytes)


def _sessions(snapshot: Snapshot) -> Iterator[Metric]:
    sessions, totals = snapshot.sessions, snapshot.stats.totals.sessions
    states = [state.value for state in (SessionState.OPEN, SessionState.DETACHED)]
    by_state = {state: sum(session.state == state for session in sessions) for state in states}
    yield _gauges("sessions", "Sessions, by state.", "state", by_state)
    yield _gauge("in_flight_ops", "Ops of all sessions in flight.", sum(session.in_flight_ops for session in sessions))
    yield _gauge(
        "in_flight_segments", "Segments of all sessions in flight.", sum(s.in_flight_segments for s in sessions)
    )
    yield _gauge("live_handles", "Handles of all sessions.", sum(session.live_handles for session in sessions))
    yield _counter("sessions_opened", "Sessions that were opened.", totals.opened)
    yield _counter("sessions_resumed", "Sessions that were resumed on a new connection.", totals.resumed)
    ended = _all_of(END_REASONS, totals.ended)
    yield _counters("sessions_ended", "Sessions that have ended, by reason.", "reason", ended)


def _tenants(times: Mapping[str, TenantTimes]) -> Iterator[Metric]:
    loop = {tenant: each.loop_ns / 1e9 for tenant, each in times.items()}
    device = {tenant: each.device_ns / 1e9 for tenant, each in times.items()}
    yield _counters("tenant_loop_seconds", "Time of the loop thread that frames have used, by tenant.", "tenant", loop)
    yield _counters("tenant_device_seconds", "Device time that rows have used, by tenant.", "tenant", device)


def _programs(snapshot: Snapshot) -> Iterator[Metric]:
    cache, compilation = snapshot.stats.totals.program_cache, snapshot.stats.totals.compilation
    results = {"hit": cache.hits, "miss": cache.misses}
    yield _counters("program_lookups", "Programs that came: known ones and new ones.", "result", results)
    yield _counter("program_evictions", "Programs that were dropped to make room.", cache.evictions)
    plans = {"made": compilation.plans, "refused": compilation.plans_refused}
    yield _counters("plans", "Plans of programs, by result.", "result", plans)
    kernels = {"compiler": compilation.kernels_compiled, "cache": compilation.kernels_reused}
    yield _counters("kernels", "Kernels of plans, by origin.", "origin", kernels)
    tiers = {str(tier): sum(each.program.tier == tier for each in snapshot.programs) for tier in (0, 1, 2)}
    yield _gauges("programs", "Known programs, by tier.", "tier", tiers)


def _process(stats: Stats) -> Iterator[Metric]:
    process = stats.process
    yield _gauge("resident_memory_bytes", "Resident memory of the server process.", process.resident_bytes or 0)
    yield _gauge("open_files", "Open files of the server process.", process.open_files or 0)
    yield _gauge("threads", "Threads of the server process.", process.threads or 0)
    yield _gauge("tasks", "Tasks of the event loop.", process.tasks or 0)


def _devices(devices: Iterable[DeviceView]) -> Iterator[Metric]:
    """Yields the figures of several devices. A server with one device has none of these series."""
    by_number = {str(each.number): each for each in devices}
    for name, text, field in (
        ("ready", "1 if the device takes sessions.", "is_ready"),
        ("sessions", "Sessions of the device.", "sessions"),
        ("live_bytes", "Memory of the device's values.", "live_bytes"),
        ("pool_bytes", "Memory that the device's pool keeps.", "pool_bytes"),
    ):
        values = {number: getattr(each, field) for number, each in by_number.items()}
        yield _gauges(f"devices_{name}", text, "number", values)
    busy = {number: each.busy_ns / 1e9 for number, each in by_number.items()}
    yield _counters("devices_busy_seconds", "Time in which the device has run submissions.", "number", busy)


def _all_of(labels: Iterable[str], values: Mapping[str, int]) -> dict[str, int]:
    """Returns the value of each label; 0 if there is none."""
    return {label: values.get(label, 0) for label in labels}


def _gauge(name: str, text: str, value: float) -> Metric:
    return GaugeMetricFamily(f"fusewire_{name}", text, value)


def _gauges(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = GaugeMetricFamily(f"fusewire_{name}", text, labels=(label,))
    for label_value, value in values.items():
        family.add_metric((label_value,), value)
    return family


def _counter(name: str, text: str, value: float) -> Metric:
    return CounterMetricFamily(f"fusewire_{name}", text, value)


def _counters(name: str, text: str, label: str, values: Mapping[str, float]) -> Metric:
    family = CounterMetricFamily(f"fusewire_{name}", text, labels=(label,))
    for label_value, value in values.items():
        family.add_metric((label_value,), value)
    return family


def _histogram(name: str, text: str, histogram: Histogram, ends: tuple[int, ...]) -> Metric:
    cumulative = [
        (str(float(end)), sum(each.count for each in histogram.buckets if each.at_most <= end)) for end in ends
    ]
    count = sum(each.count for each in histogram.buckets)
    buckets = [*((end, float(number)) for end, number in cumulative), ("+Inf", float(count))]
    return HistogramMetricFamily(f"fusewire_{name}", text, buckets=buckets, sum_value=histogram.total)
