"""The configuration and the alerts of Prometheus: promtool accepts them, and they use metrics that exist."""

from __future__ import annotations

import shutil
import subprocess

import pytest
import yaml

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


def test_every_alert_is_shown_firing_and_quiet() -> None:
    (tests,) = yaml.safe_load((FOLDER / "alerts_test.yml").read_text(encoding="utf-8"))["tests"]
    shown = {(case["alertname"], bool(case["exp_alerts"])) for case in tests["alert_rule_test"]}
    assert shown == {(name, fires) for name in of_alerts() for fires in (False, True)}


def test_every_alert_asks_for_metrics_that_exist() -> None:
    used = set().union(*map(metrics_of, of_alerts().values()))
    assert used
    assert used <= known_metrics()
