"""The configuration and the alerts of Prometheus: promtool accepts them, and they use metrics that exist."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tests.deploy.expressions import DEPLOY, metrics_of, of_alerts
from tests.deploy.known_metrics import known_metrics

FOLDER = DEPLOY / "prometheus"
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
    used = set().union(*map(metrics_of, of_alerts().values()))
    assert used
    assert used <= known_metrics()
