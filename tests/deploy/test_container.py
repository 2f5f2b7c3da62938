"""The server of the profile cpu in a container engine: built, confined, watched, ended in order and started again.

The commands are those of deploy/README.md, as printed.
"""

from __future__ import annotations

import json
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

import fusewire as fw
from tests.deploy.deployment import Deployment
from tests.deploy.pages import blocks
from tests.deploy.polling import until

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(2400)]

DEADLINE_S = 60.0
CACHE = "/var/cache/fusewire"


@pytest.fixture(scope="module")
def cpu(deployment: Deployment) -> str:
    """The id of the container of a server without tokens."""
    deployment.run(blocks("needs=container-engine")[0])
    return deployment.until_healthy("cpu")


def answer(deployment: Deployment, path: str) -> str:
    """Returns the answer of inspection. Raises HTTPError and OSError."""
    url = f"http://127.0.0.1:{deployment.ports['FUSEWIRE_HTTP_PORT']}{path}"
    with urllib.request.urlopen(url, timeout=DEADLINE_S) as answered:
        return str(answered.read().decode())


def connected(deployment: Deployment) -> fw.Session:
    return fw.connect(f"localhost:{deployment.ports['FUSEWIRE_PORT']}", timeout=DEADLINE_S)


def relaxed(session: fw.Session, size: int, count: int) -> fw.Array:
    """Returns elements that are all 2 after as many steps as a float32 has bits."""
    relaxed: fw.Array = fw.fori_loop(count, lambda _, x: x * 0.5 + 1, session.array(np.zeros(size, np.float32)))
    return relaxed


def kernels(deployment: Deployment, origin: str) -> float:
    """Returns how many kernels of plans came from the compiler, or from the cache."""
    families = text_string_to_metric_families(answer(deployment, "/metrics"))
    (value,) = (
        sample.value
        for family in families
        for sample in family.samples
        if sample.name == "fusewire_kernels_total" and sample.labels["origin"] == origin
    )
    return value


@pytest.mark.usefixtures("cpu")
def test_the_client_of_the_page_computes(deployment: Deployment) -> None:
    (client,) = blocks("server=open")
    assert "[2. 2. 2.]" in deployment.run(client)


@pytest.mark.usefixtures("cpu")
def test_inspection_answers(deployment: Deployment) -> None:
    assert answer(deployment, "/livez") == "alive"
    assert answer(deployment, "/readyz") == "ready"
    with connected(deployment) as session:
        answered = json.loads(answer(deployment, "/v1/sessions"))
        assert [each["session"] for each in answered["sessions"]] == [session.id]
    assert 'fusewire_build_info{backend="cpu"' in answer(deployment, "/metrics")


def test_a_server_has_no_rights_and_writes_to_its_cache_only(deployment: Deployment, cpu: str) -> None:
    lines = deployment.engine.run("exec", cpu, "cat", "/proc/1/status").splitlines()
    status = dict(line.split(":\t", 1) for line in lines)
    assert {status[f"Cap{kind}"] for kind in ("Inh", "Prm", "Eff", "Bnd", "Amb")} == {"0" * 16}
    assert status["NoNewPrivs"] == "1"
    assert set(status["Uid"].split()) == {"10001"}
    for path, may_write in {"/new": False, "/opt/fusewire/new": False, f"{CACHE}/new": True, "/tmp/new": True}.items():  # noqa: S108
        assert deployment.engine.succeeds("exec", cpu, "touch", path) is may_write, path


def test_a_server_that_is_stopped_finishes_its_work_and_finds_its_cache_again(deployment: Deployment, cpu: str) -> None:
    with connected(deployment) as session:
        assert (relaxed(session, 1000, 50).numpy(timeout=DEADLINE_S) == 2).all()
    until(lambda: kernels(deployment, "compiler") > 0, "the loop is planned", DEADLINE_S)
    with connected(deployment) as session, ThreadPoolExecutor(1) as pool:
        work = relaxed(session, 1 << 21, 1000).future()  # about two seconds of one core
        stopped = pool.submit(deployment.compose, "cpu", "stop", "--timeout", "20", "cpu")
        assert (work.result(DEADLINE_S) == 2).all()
        stopped.result(DEADLINE_S)
    assert deployment.engine.run("inspect", "--format", "{{.State.ExitCode}}", cpu).strip() == "0"
    deployment.compose("cpu", "up", "-d", "--force-recreate", "cpu")
    deployment.until_healthy("cpu")
    with connected(deployment) as session:
        assert (relaxed(session, 1000, 50).numpy(timeout=DEADLINE_S) == 2).all()
    until(lambda: kernels(deployment, "cache") > 0, "the loop is planned again", DEADLINE_S)
    assert kernels(deployment, "compiler") == 0
