"""A real Prometheus scrapes a server that works, and answers every expression of the dashboard and of the alerts."""

from __future__ import annotations

import math
import subprocess
import threading
import time
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fusewire as fw
from fusewire.testing import serve_subprocess
from tests.deploy.expressions import always_answered, of_alerts, of_dashboard, with_values
from tests.deploy.prometheus_process import Prometheus, scraping
from tests.deploy.setting_up import Secrets, set_up
from tests.deploy.test_prometheus import PROMTOOL

pytestmark = pytest.mark.deploy

DEADLINE_S = 60.0
POLLED_EVERY_S = 0.25
RATE_INTERVAL = "8s"
OF_DEVICES = ("fusewire_gpu_", "fusewire_devices_")  # a server on one CPU has no series of these
EXPRESSIONS = {
    **{
        name: with_values(text, RATE_INTERVAL)
        for name, text in of_dashboard().items()
        if not any(each in text for each in OF_DEVICES)
    },
    **{name: always_answered(text) for name, text in of_alerts().items()},
    "variable instance": "fusewire_build_info",
}


def work_until(stops: threading.Event, target: str, secrets: Secrets) -> None:
    """Runs a loop, and new loops, so that programs are planned too."""
    token = (secrets.clients / "use.token").read_text(encoding="utf-8")
    with fw.connect(target, tls_ca=secrets.clients / "ca.pem", token=token, timeout=DEADLINE_S) as session:
        width = 0
        while not stops.wait(0.01):
            width = width % 64 + 1
            x = session.array(np.ones(width, np.float32))
            for _ in range(100):
                x = fw.tanh(x * 2.0 + 1.0)
            assert x.numpy(timeout=DEADLINE_S).shape == (width,)


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Prometheus]:
    """Scrapes a server with TLS and tokens on which a session works."""
    secrets = set_up(tmp_path_factory.mktemp("secrets"))
    folder = tmp_path_factory.mktemp("prometheus")
    stops = threading.Event()
    with (
        serve_subprocess("cpu", arguments=secrets.server_arguments) as server,
        ThreadPoolExecutor() as threads,
        scraping(server.http, secrets.watchers, folder) as running,
    ):
        working = threads.submit(work_until, stops, server.grpc, secrets)
        try:
            yield running
        finally:
            stops.set()
        working.result(DEADLINE_S)


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_prometheus_answers_with_numbers(name: str, prometheus: Prometheus) -> None:
    pause = threading.Event()
    ends_at_s = time.monotonic() + DEADLINE_S
    values: list[float] = []
    while not any(map(math.isfinite, values)):
        assert time.monotonic() < ends_at_s, f"{EXPRESSIONS[name]} has the answer {values}"
        values = prometheus.query(EXPRESSIONS[name])
        pause.wait(POLLED_EVERY_S)


def test_promtool_finds_nothing_to_say_of_the_metrics_of_a_server() -> None:
    with serve_subprocess("cpu") as server:
        with fw.connect(server.grpc, timeout=DEADLINE_S) as session:
            (session.array([1.0]) + 1).numpy()
        with urllib.request.urlopen(f"http://{server.http}/metrics", timeout=DEADLINE_S) as answer:
            text = answer.read()
    done = subprocess.run((PROMTOOL, "check", "metrics"), input=text, capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stdout + done.stderr) == (0, b"")


def test_an_expression_without_an_answer_is_noticed(prometheus: Prometheus) -> None:
    assert prometheus.query("fusewire_no_such_metric") == []
