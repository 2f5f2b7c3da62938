"""Writes the figures of a snapshot as metrics in the text format of Prometheus.

Every series exists from the start of the server with the value 0, but those of a tenant, which begin with its first
session. The values of each label are a closed set, so no client can make the number of series grow. Names have the
prefix `fusewire_`; units are seconds and bytes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from typing import Any

from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from fusewire_server.figures import Declared, Kind, declared, labelled, nested_record
from fusewire_server.inspect.snapshots.histogram import Histogram
from fusewire_server.inspect.snapshots.snapshot import Snapshot

CONTENT_TYPE = CONTENT_TYPE_LATEST
PREFIX = "fusewire_"

# Families of several figures, and those that tell something else than their field, have a sentence of their own.
FAMILY_TEXTS = {
    "start_time_seconds": "Start of the server, Unix time.",
    "trouble": "Whether the machine cannot compile programs now.",
    "sessions": "Sessions, by state.",
    "phase_seconds": "Time by phase of the work.",
    "phase_runs": "How often each phase of the work ran.",
    "launches": "Kernel launches, by tier of the program.",
    "queued_rows": "Rows that wait: ready ones, and those that wait for uploads.",
    "device_memory_bytes": "Device memory of values now, at their peak, and of the pool.",
    "session_bytes": "Bytes of all sessions, by what they are for.",
    "host_memory_bytes": "Memory of the server process, by what it is for.",
    "program_lookups": "Programs that came: known ones and new ones.",
    "plans": "Plans of programs, by result.",
    "kernels": "Kernels of plans, by origin.",
    "latency_seconds": "Time of segments until their order (queue), on the device, and from the order to the end "
    "without that (launch); of fetches from their order (answer) and from their coming (wait) to their answer.",
}
_TYPES = {Kind.COUNTER: CounterMetricFamily, Kind.GAUGE: GaugeMetricFamily, Kind.FACT: GaugeMetricFamily}


def exposition(snapshot: Snapshot, loop_lag_s: float) -> bytes:
    """Returns all metrics. `loop_lag_s` is the time that the engine thread needed to take the snapshot."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Families(snapshot, loop_lag_s))
    return generate_latest(registry)


class _Families(Collector):
    def __init__(self, snapshot: Snapshot, loop_lag_s: float) -> None:
        self._snapshot = snapshot
        self._loop_lag_s = loop_lag_s
        self._families: dict[str, Metric] = {}

    def collect(self) -> Iterator[Metric]:
        stats = self._snapshot.stats
        build = GaugeMetricFamily(
            f"{PREFIX}build_info",
            "Version and device of the server; the value is 1.",
            labels=("version", "backend", "device"),
        )
        build.add_metric((stats.version, stats.backend.name, stats.backend.device), 1)
        yield build
        text = "Time that the event loop needed to answer this request."
        yield GaugeMetricFamily(f"{PREFIX}loop_lag_seconds", text, self._loop_lag_s)
        self._add(type(self._snapshot), self._snapshot, {})
        yield from self._families.values()

    def _add(self, kind: type, record: Any, labels: Mapping[str, str]) -> None:
        """Adds the figures of a record and of those inside it. Without a record, adds families without series."""
        for each in declared(kind):
            figure, value = each.figure, getattr(record, each.name, None)
            if figure.metric:
                self._add_figure(each, record, value, labels)
            elif figure.label or is_dataclass(each.type):
                inner, without = nested_record(each.type), {figure.label: ""} if figure.label else {}
                for more, nested in labelled(figure.label, each.name, value) if value else [(without, None)]:
                    self._add(inner, nested, {**labels, **more})

    def _add_figure(self, each: Declared, record: Any, value: Any, labels: Mapping[str, str]) -> None:
        figure = each.figure
        family = self._family(each, (*labels, *figure.labels))
        if record is None:
            return
        if isinstance(value, Histogram):
            fixed = [text for label, text in figure.labels.items() if label != "le"]
            in_seconds = 1e9 if each.name.endswith("_ns") else 1
            _add_histogram(family, (*labels.values(), *fixed), value, figure.labels["le"], in_seconds)
            return
        if figure.metric_value is not None:
            value = figure.metric_value(record)
        for own, number in _series(value, tuple(figure.labels.values())):
            in_unit = (number or 0) / 1e9 if each.name.endswith("_ns") else number or 0
            family.add_metric((*labels.values(), *own), in_unit)

    def _family(self, each: Declared, labels: tuple[str, ...]) -> Any:
        name = each.figure.metric
        if name not in self._families:
            text = FAMILY_TEXTS.get(name, each.metric_text)
            if nested_record(each.type) is Histogram:
                self._families[name] = HistogramMetricFamily(PREFIX + name, text, labels=labels[:-1])
            else:
                self._families[name] = _TYPES[each.figure.kind](PREFIX + name, text, labels=labels)
        return self._families[name]


def _series(value: Any, labels: tuple[Any, ...]) -> Iterator[tuple[tuple[str, ...], float]]:
    """Yields the values of labels, and the number. Of a mapping there is one for each possible key, nested ones too."""
    if not isinstance(value, Mapping):
        yield labels, value
        return
    keys, *_ = labels
    for key in keys:
        if isinstance(keys, Mapping):
            yield from [((key, inner), value.get(key, {}).get(inner, 0)) for inner in keys[key]]
        else:
            yield (key,), value.get(key, 0)


def _add_histogram(
    family: HistogramMetricFamily, labels: tuple[str, ...], histogram: Histogram, ends: tuple[int, ...], unit: float
) -> None:
    """Adds a histogram with buckets that end at `ends`. Its numbers count in parts of the `unit`."""
    counts = {end: sum([each.count for each in histogram.buckets if each.at_most <= end]) for end in ends}
    buckets = [(str(end / unit), float(count)) for end, count in counts.items()]
    buckets.append(("+Inf", float(sum([each.count for each in histogram.buckets]))))
    family.add_metric(labels, buckets, histogram.total / unit)
