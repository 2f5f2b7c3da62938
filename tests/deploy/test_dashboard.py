"""Grafana's dashboard: its panels ask for metrics that exist, from the data source that is provisioned."""

from __future__ import annotations

from itertools import combinations
from typing import Any

import pytest
import yaml

from tests.deploy.compose_file import SERVICES
from tests.deploy.expressions import DASHBOARD, DEPLOY, metrics_of, of_dashboard, panels
from tests.deploy.known_metrics import known_metrics

GRAFANA = DEPLOY / "grafana"
ROWS = [
    *("State", "Throughput", "Latency", "Device memory", "Sessions", "Tenants", "Refusals and failures", "Process"),
    "GPU and devices",
]

WITHOUT_A_PANEL = {
    "fusewire_devices_ready",  # `fusewire_devices_unready` counts those that are not
    "fusewire_donations_total",  # the bytes of donations are shown
    "fusewire_ops_per_launch",  # the mean is shown
    "fusewire_tenant_received_bytes_total",  # the ops of tenants are shown
    "fusewire_tenant_segments_total",
    "fusewire_tenant_sent_bytes_total",
    "fusewire_tenant_sessions_total",
}


def provisioned(name: str) -> dict[str, Any]:
    document: dict[str, Any] = yaml.safe_load((GRAFANA / "provisioning" / name).read_text(encoding="utf-8"))
    return document


def test_every_panel_asks_for_metrics_that_exist() -> None:
    used = set().union(*map(metrics_of, of_dashboard().values()))
    assert used
    assert used <= known_metrics()


def test_every_metric_has_a_panel_or_a_better_one() -> None:
    shown = set().union(*map(metrics_of, of_dashboard().values()))
    known = {name.removesuffix("_bucket").removesuffix("_sum").removesuffix("_count") for name in known_metrics()}
    assert known - {name.removesuffix("_bucket") for name in shown} - WITHOUT_A_PANEL == set()


def test_the_rows_lead_from_the_state_to_the_devices() -> None:
    assert [panel["title"] for panel in DASHBOARD["panels"] if panel["type"] == "row"] == ROWS


@pytest.mark.parametrize("panel", panels(), ids=lambda panel: panel["title"])
def test_a_panel_says_what_it_shows_in_which_unit(panel: dict[str, Any]) -> None:
    assert panel["description"].endswith(".")
    assert panel["fieldConfig"]["defaults"]["unit"]
    assert all(target["legendFormat"] for target in panel["targets"])
    assert all("$instance" in target["expr"] for target in panel["targets"])


def test_panels_have_numbers_and_places_of_their_own() -> None:
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert len(set(numbers)) == len(numbers)
    for one, other in combinations((panel["gridPos"] for panel in DASHBOARD["panels"]), 2):
        is_beside = one["x"] + one["w"] <= other["x"] or other["x"] + other["w"] <= one["x"]
        is_above = one["y"] + one["h"] <= other["y"] or other["y"] + other["h"] <= one["y"]
        assert is_beside or is_above, (one, other)


def test_every_query_goes_to_the_provisioned_data_source() -> None:
    (source,) = provisioned("datasources/prometheus.yml")["datasources"]
    (variable,) = DASHBOARD["templating"]["list"]
    asked = [variable, *panels(), *(target for panel in panels() for target in panel["targets"])]
    assert {each["datasource"]["uid"] for each in asked} == {source["uid"]}
    assert source["url"].startswith("http://prometheus:")
    assert "prometheus" in SERVICES


def test_an_interval_of_rates_holds_several_scrapes() -> None:
    """Grafana takes four times `timeInterval` for `$__rate_interval`."""
    (source,) = provisioned("datasources/prometheus.yml")["datasources"]
    configuration = yaml.safe_load((DEPLOY / "prometheus" / "prometheus.yml").read_text(encoding="utf-8"))
    assert source["jsonData"]["timeInterval"] == configuration["global"]["scrape_interval"]


def test_the_folders_of_grafana_are_mounted_where_it_looks() -> None:
    (provider,) = provisioned("dashboards/fusewire.yml")["providers"]
    mounted = dict(volume.split(":")[:2] for volume in SERVICES["grafana"]["volumes"] if volume.startswith("./"))
    assert mounted == {
        "./grafana/provisioning": "/etc/grafana/provisioning",
        "./grafana/dashboards": provider["options"]["path"],
    }
