"""Writes docs/figures.md: all figures that are metrics, by their declarations."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import is_dataclass
from itertools import groupby
from typing import NamedTuple

from fusewire_server.figures import Declared, Kind, declared, first, nested_record, total
from fusewire_server.inspect.metrics import FAMILY_TEXTS, PREFIX
from fusewire_server.inspect.snapshots.histogram import Histogram
from fusewire_server.inspect.snapshots.snapshot import Snapshot

HEAD = """# Figures

All metrics of `/metrics`, and where `/v1/stats` has the same figure. They are declared once, in the records that a
snapshot (`server/fusewire_server/inspect/snapshots/snapshot.py`) holds, and
`FUSEWIRE_WRITE_GOLDEN=1 .venv/bin/python -m pytest tests/server/test_figures.py` writes this page from that. Times are
in seconds here, and in nanoseconds in the fields whose names end with `_ns`. Figures of several engine processes are
added, unless the last column says otherwise. Two more metrics are `fusewire_build_info` and
`fusewire_loop_lag_seconds`, the time that the event loop needed to answer the scrape.

| metric | labels | meaning | in `/v1/stats` | joined |
|---|---|---|---|---|
"""


class Metric(NamedTuple):
    name: str
    labels: tuple[str, ...]
    each: Declared
    path: str


def metrics_in(record: type, path: str = "", labels: tuple[str, ...] = ()) -> Iterator[Metric]:
    """Yields all figures inside a record that are metrics, with their places."""
    for each in declared(record):
        figure, place = each.figure, f"{path}{each.name}"
        if figure.metric:
            own = tuple([label for label in figure.labels if label != "le"])
            yield Metric(figure.metric + ("_total" if is_counter(each) else ""), (*labels, *own), each, place)
        elif figure.label or is_dataclass(each.type):
            more = (figure.label,) if figure.label else ()
            yield from metrics_in(nested_record(each.type), f"{place}.", (*labels, *more))


def is_counter(each: Declared) -> bool:
    return each.figure.kind is Kind.COUNTER and nested_record(each.type) is not Histogram


def figures_page() -> str:
    metrics = sorted(metrics_in(Snapshot), key=lambda metric: metric.name)
    return HEAD + "".join(_line(name, list(group)) for name, group in groupby(metrics, key=lambda metric: metric.name))


def _line(name: str, group: list[Metric]) -> str:
    each = group[0].each
    labels = ", ".join(f"`{label}`{_values(each, label)}" for label in group[0].labels)
    places = sorted({metric.path.removeprefix("stats.") for metric in group if metric.path.startswith("stats.")})
    parents = {place.rpartition(".")[0] for place in places}
    place = places[0] if len(places) == 1 else parents.pop() if len(parents) == 1 else "phases.*"
    text = FAMILY_TEXTS.get(each.figure.metric, each.metric_text)
    return f"| `{PREFIX}{name}` | {labels} | {text} | {f'`{place}`' if places else ''} | {_join(each)} |\n"


def _values(each: Declared, label: str) -> str:
    """Returns the values of a label, if there are few."""
    values = each.figure.labels.get(label)
    return f" ({', '.join(values)})" if isinstance(values, list | tuple) and len(values) <= 6 else ""


def _join(each: Declared) -> str:
    names: Mapping[object, str] = {
        total: "",
        sum: "",
        max: "the greatest",
        any: "if one",
        all: "if all",
        first: "the first",
    }
    return names.get(each.figure.join, "")
