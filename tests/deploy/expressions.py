"""The expressions that Grafana and Prometheus ask: those of the dashboard, and those of the alerts."""

from __future__ import annotations

import json
import re
from typing import Any

import yaml

from tests.deploy.dockerfile import PROJECT

DEPLOY = PROJECT / "deploy"
DASHBOARD: dict[str, Any] = json.loads(
    (DEPLOY / "grafana" / "dashboards" / "fusewire.json").read_text(encoding="utf-8")
)
RULES: list[dict[str, Any]] = yaml.safe_load((DEPLOY / "prometheus" / "alerts.yml").read_text(encoding="utf-8"))[
    "groups"
][0]["rules"]


def panels() -> list[dict[str, Any]]:
    return [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]


def of_dashboard() -> dict[str, str]:
    """Returns panel and query -> expression."""
    return {f"{panel['title']}-{each['refId']}": each["expr"] for panel in panels() for each in panel["targets"]}


def of_alerts() -> dict[str, str]:
    """Returns alert -> expression."""
    return {rule["alert"]: rule["expr"] for rule in RULES}


def with_values(expression: str, rate_interval: str) -> str:
    """Returns an expression of the dashboard with Grafana's variables filled in: all servers, and this interval."""
    return expression.replace("$instance", ".*").replace("$__rate_interval", rate_interval)


def always_answered(expression: str) -> str:
    """Returns an alert's expression that answers 0 or 1 instead of nothing or something."""
    changed, count = re.subn(r" (==|>|<) ", r" \1 bool ", expression)
    assert count == 1, expression
    return changed


def metrics_of(expression: str) -> set[str]:
    return set(re.findall(r"fusewire_\w+", expression))
