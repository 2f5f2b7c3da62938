"""The names of the metrics that a server tells."""

from __future__ import annotations

from dataclasses import replace

from prometheus_client.parser import text_string_to_metric_families

from fusewire_server.inspect.metrics import exposition
from fusewire_server.inspect.snapshots.stats import DeviceView
from tests.server.inspect.examples import SNAPSHOT


def known_metrics() -> set[str]:
    several = replace(SNAPSHOT, stats=replace(SNAPSHOT.stats, devices=(DeviceView(0),)))
    families = text_string_to_metric_families(exposition(several, 0.0).decode())
    return {sample.name for family in families for sample in family.samples}
