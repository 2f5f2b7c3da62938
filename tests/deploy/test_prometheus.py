"""The configuration and the alerts of Prometheus: promtool accepts them, and they use metrics that exist."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client.parser import text_string_to_metric_families

from fusewire_server.inspect.metrics import exposition
from tests.server.inspect.examples import SNAPSHOT

FOLDER = Path(__file__).parents[2] / "deploy" / "prometheus"
PROMTOOL = shutil.which("promtool") or ""


@pytest.mark.skipif(not PROMTOOL, reason="needs promtool of Prometheus")
@pytest.mark.parametrize(
    "arguments",
    [
        ("check", "config", "--syntax-only", "prometheus.yml"),
        ("check", "rules", "alerts.yml"),
        ("test", "rules", "alerts_test.yml"),
    ],
)
def test_promtool_accepts_it(arguments: tuple[str, ...]) -> None:
    done = subprocess.run((PROMTOOL, *arguments), capture_output=True, text=True, check=False, timeout=60, cwd=FOLDER)
    assert done.returncode == 0, done.stdout + done.stderr


def test_every_alert_asks_for_metrics_that_exist() -> None:
    families = text_string_to_metric_families(exposition(SNAPSHOT, 0.0).decode())
    known = {sample.name for family in families for sample in family.samples}
    rules = yaml.safe_load((FOLDER / "alerts.yml").read_text(encoding="utf-8"))["groups"][0]["rules"]
    used = {name for rule in rules for name in re.findall(r"fusewire_\w+", rule["expr"])}
    assert used
    assert used <= known
