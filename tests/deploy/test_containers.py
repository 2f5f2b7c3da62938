"""The profiles gpu, obs and load in a container engine, without a GPU: set up, guarded, scraped, loaded and rotated.

The commands are those of deploy/README.md, as printed.
"""

from __future__ import annotations

import re
import ssl

import pytest

import fusewire as fw
from tests.deploy.deployment import Deployment
from tests.deploy.dockerfile import PROJECT
from tests.deploy.free_ports import free_ports
from tests.deploy.pages import blocks
from tests.deploy.polling import until
from tests.deploy.prometheus_process import Prometheus

pytestmark = [pytest.mark.deploy, pytest.mark.timeout(2400)]

DEADLINE_S = 60.0
BLOCKS = blocks("needs=container-engine")
GPU, OBS, LOAD, ROTATE = *BLOCKS[1:4], BLOCKS[-1]
UNIT = PROJECT / "deploy" / "systemd" / "fusewire.service"


@pytest.fixture(scope="module")
def gpu(deployment: Deployment) -> str:
    """The id of the container of a server with TLS and tokens; the files of clients are in the deployment's folder."""
    deployment.run(GPU)
    return deployment.until_healthy("gpu")


@pytest.mark.usefixtures("gpu")
def test_a_client_with_the_files_of_the_setup_computes(deployment: Deployment) -> None:
    client, _ = blocks("server=guarded")
    assert "[2. 2. 2.]" in deployment.run(client)


def test_no_one_else_is_served(deployment: Deployment, gpu: str) -> None:
    target, authority = f"localhost:{deployment.ports['FUSEWIRE_PORT']}", deployment.folder / "ca.pem"
    with pytest.raises(fw.Unauthenticated):
        fw.connect(target, tls_ca=authority, token="made.up", timeout=DEADLINE_S)  # noqa: S106
    assert not deployment.engine.succeeds("exec", gpu, "touch", "/etc/fusewire/server/new")


@pytest.mark.usefixtures("gpu")
def test_prometheus_scrapes_the_server_over_the_network_of_the_containers(deployment: Deployment) -> None:
    deployment.run(OBS)
    deployment.until_healthy("prometheus")
    _, metrics = blocks("server=guarded")
    assert 'fusewire_build_info{backend="cpu"' in deployment.run(metrics)
    until(lambda: asked(deployment, 'up{job="fusewire"}') == [1.0], "the server is scraped", DEADLINE_S)
    assert asked(deployment, "fusewire_ready") == [1.0]


def asked(deployment: Deployment, expression: str) -> list[float]:
    """Returns the values that an expression has for Prometheus now, one for each series."""
    address = f"127.0.0.1:{deployment.ports['PROMETHEUS_PORT']}"
    return Prometheus(address).query(expression)


@pytest.mark.usefixtures("gpu")
def test_the_load_test_of_the_page_finds_nothing_wrong(deployment: Deployment) -> None:
    deployment.run(LOAD.replace("LOAD_SESSIONS=100", "LOAD_SESSIONS=4"))
    assert (deployment.folder / "rl.html").stat().st_size > 0


def test_a_certificate_is_rotated_while_the_server_runs(deployment: Deployment, gpu: str) -> None:
    address = ("localhost", deployment.ports["FUSEWIRE_PORT"])
    before = ssl.get_server_certificate(address)
    deployment.run(ROTATE)
    until(lambda: ssl.get_server_certificate(address) != before, "the new certificate is used", DEADLINE_S)
    assert deployment.container("gpu") == gpu
    client, _ = blocks("server=guarded")
    assert "[2. 2. 2.]" in deployment.run(client)


@pytest.mark.usefixtures("gpu")
def test_the_command_of_the_systemd_unit_serves_with_the_settings_beside_it(deployment: Deployment) -> None:
    """In the server's image, whose programs lie where the unit's do, with the CPU instead of a GPU."""
    (line,) = re.findall(r"^ExecStart=(.*)$", UNIT.read_text(encoding="utf-8"), re.MULTILINE)
    program, *arguments = line.split()
    (port,) = free_ports(1)
    options = f"-d --read-only --cap-drop=ALL --tmpfs=/tmp -p 127.0.0.1:{port}:7423 -e FUSEWIRE_DEVICE__BACKEND=cpu"
    settings = f"{UNIT.with_name('fusewire.toml')}:/etc/fusewire/fusewire.toml:ro"
    command = f"docker run {options} -v deploy_server-secrets:/etc/fusewire/server:ro -v {settings}"
    container = deployment.run(f"{command} --entrypoint {program} fusewire:cuda13 {' '.join(arguments)}").strip()
    try:
        until(lambda: '"grpc"' in deployment.engine.run("logs", container), "the server has started", DEADLINE_S)
        authority, token = (deployment.folder / name for name in ("ca.pem", "use.token"))
        target, secret = f"localhost:{port}", token.read_text(encoding="utf-8")
        with fw.connect(target, tls_ca=authority, token=secret, timeout=DEADLINE_S) as session:
            assert (session.array([1.0]) + 1).numpy(timeout=DEADLINE_S) == [2.0]
        deployment.engine.run("stop", "-t", "20", container)
        assert deployment.engine.run("inspect", "--format", "{{.State.ExitCode}}", container).strip() == "0"
    finally:
        deployment.engine.run("rm", "--force", "--volumes", container)
