"""The names of the metrics that a server tells."""

from __future__ import annotations

from prometheus_client.parser import text_string_to_metric_families

from fusewire_server.inspect.metrics import exposition
from tests.server.inspect.examples import SNAPSHOT


def known_metrics() -> set[str]:
    families = text_string_to_metric_families(exposition(SNAPSHOT, 0.0).decode())
    return {sample.name for family in families for sample in family.samples}
