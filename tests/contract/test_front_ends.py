"""A server with front ends, as its clients and its operator see it: as one without, also when processes are killed."""

from __future__ import annotations

import json
import os
import signal
import ssl
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

import grpc
import numpy as np
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

import fusewire as fw
from fusewire.testing import ServerProcess, serve_subprocess
from fusewire_cli.main import main
from fusewire_server.access.tokens import Scope, mint
from tests.faults.mixed_load import Connect, Seen, do_round, mixed_load
from tests.front_end_processes import are_replaced, front_ends_of, runs
from tests.patience import HANGS_S, Patience, until

pytestmark = pytest.mark.faults  # front ends are killed under load
COUNT = 2
WITH_FRONT_ENDS = ("--front-ends", str(COUNT))
KILLS = 4
SEED = 3
REFUSED_AT_TOKENS = ("fusewire_refusals_total{", 'case="unauthenticated"', 'door="token"')


@pytest.fixture(scope="module")
def server() -> Iterator[ServerProcess]:
    with serve_subprocess("cpu", arguments=WITH_FRONT_ENDS) as started:
        yield started


def until_all_work(seen: Seen) -> None:
    """Waits until every session has done one more round."""
    before = dict(seen.rounds_of)
    until(lambda: seen.failures or all(seen.rounds_of[each] > before[each] for each in before))


# ---- what clients see ----


def test_values_are_those_of_numpy(server: ServerProcess) -> None:
    """Of programs, loops and values that travel within frames and in calls of their own."""
    assert len(front_ends_of(server.pid)) == COUNT
    with mixed_load(*[Connect(server.grpc, "", local=local) for local in (False, False, True)], seed=SEED) as seen:
        for _ in range(3):
            until_all_work(seen)
    assert seen.failures == []


def test_large_values_come_whole(server: ServerProcess) -> None:
    source = np.random.default_rng(SEED).integers(0, 1 << 30, size=16 << 20, dtype=np.int32)
    with fw.connect(server.grpc, local=False) as session:
        futures = [(session.array(source[start:]) + start).future() for start in (0, 1, 12345)]
        for start, future in zip((0, 1, 12345), futures, strict=True):
            assert future.result(HANGS_S).tobytes() == (source[start:] + np.int32(start)).tobytes()


def test_sessions_of_killed_front_ends_go_on(server: ServerProcess) -> None:
    with mixed_load(*[Connect(server.grpc, "", local=False)] * 3, seed=SEED) as seen:
        for _ in range(KILLS):
            killed = front_ends_of(server.pid)[:1]
            killed[0].kill()
            until(partial(are_replaced, server.pid, killed, COUNT))
            until_all_work(seen)
    assert seen.failures == []


def test_a_client_may_connect_while_no_front_end_runs(server: ServerProcess) -> None:
    with fw.connect(server.grpc, local=False) as session:
        x = session.array([1.0, 2.0])
        for each in front_ends_of(server.pid):
            each.kill()
        assert (x + 1).numpy(timeout=HANGS_S).tolist() == [2.0, 3.0]
        do_round(session, np.random.default_rng(SEED))
    until(lambda: len(front_ends_of(server.pid)) == COUNT)


def test_the_commands_find_nothing_wrong(server: ServerProcess, capsys: pytest.CaptureFixture[str]) -> None:
    until(lambda: len(front_ends_of(server.pid)) == COUNT)
    with fw.connect(server.grpc, local=False) as session:
        assert float(session.array([3.0]).sum()) == 3.0
        assert main(["doctor", server.grpc, "--http", server.http, "--json"]) == 0
        assert {finding["state"] for finding in json.loads(capsys.readouterr().out)} == {"ok"}
        assert main(["status", "--http", server.http]) == 0
        assert main(["sessions", "ls", "--http", server.http]) == 0
        assert session.id in capsys.readouterr().out


def test_tls_and_tokens_guard_it(tmp_path: Path, certificate: tuple[Path, Path]) -> None:
    cert, key = certificate
    tokens = tmp_path / "tokens"
    token, inspecting = (mint(tokens, tenant="lab", scope=scope) for scope in (Scope.USE, Scope.INSPECT))
    tls = ("--tls-cert", str(cert), "--tls-key", str(key), "--token-file", str(tokens))
    with serve_subprocess("null", arguments=(*WITH_FRONT_ENDS, *tls)) as server:
        connect = partial(fw.connect, server.grpc, tls_ca=str(cert), local=False)
        for wrong in ("", "wrong.token", inspecting):
            with pytest.raises(fw.Unauthenticated):
                connect(token=wrong)
        with pytest.raises(fw.SessionLost):
            fw.connect(server.grpc, token=token, insecure_token=True, timeout=5.0)
        with connect(token=token) as session:
            session.array([1.0]).numpy(timeout=HANGS_S)
            assert float(session.array(np.ones(1 << 18))[0]) == 1.0
            until(lambda: refused(server, inspecting, cert) >= 3)


def refused(server: ServerProcess, token: str, cert: Path) -> float:
    """How many calls without a good token the metrics tell of."""
    request = urllib.request.Request(f"https://{server.http}/metrics", headers={"Authorization": f"Bearer {token}"})
    trusted = ssl.create_default_context(cafile=cert)
    with urllib.request.urlopen(request, timeout=HANGS_S, context=trusted) as answer:  # noqa: S310 - our own server
        lines = answer.read().decode().splitlines()
    (count,) = [line.split()[-1] for line in lines if all(word in line for word in REFUSED_AT_TOKENS)]
    return float(count)


# ---- how it starts and ends ----


class Started:
    """A server that a test ends as it likes."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout is not None
        self.process = process
        printed = json.loads(process.stdout.readline())
        self.grpc, self.http = printed["grpc"], printed["http"]
        self.front_ends = front_ends_of(process.pid)


@contextmanager
def started(*arguments: str, environment: dict[str, str] | None = None, group: int | None = None) -> Iterator[Started]:
    command = [sys.executable, "-m", "fusewire_server", "serve", "--backend", "null", *WITH_FRONT_ENDS]
    command += ["--grpc", "127.0.0.1:0", "--http", "127.0.0.1:0", *arguments]
    variables = {**os.environ, **(environment or {})}
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env=variables, process_group=group) as process:
        try:
            yield Started(process)
        finally:
            process.kill()


def test_all_front_ends_end_with_a_server_that_is_killed() -> None:
    with started() as server, fw.connect(server.grpc, local=False, reconnect_s=0) as session:
        session.array([1.0]).numpy(timeout=HANGS_S)
        server.process.kill()
        until(lambda: not any(map(runs, server.front_ends)))
        with pytest.raises(fw.SessionLost):
            session.array([1.0]).numpy(timeout=HANGS_S)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_to_all_processes_drains_the_server_in_order(number: signal.Signals) -> None:
    """As a terminal sends it, or systemd."""
    with started(environment={"FUSEWIRE_LIMITS__DRAIN_S": "600"}, group=0) as server:
        hold(server.http)
        with fw.connect(server.grpc, local=False) as session:
            value = (session.array([1.0, 2.0]) + 1).future()
            until(lambda: in_flight(server.http))
            os.killpg(server.process.pid, number)
            with session._state.lock:
                assert session._state.changed.wait_for(lambda: session.is_draining, HANGS_S)
            assert health_of(server.grpc) == health_pb2.HealthCheckResponse.NOT_SERVING
            assert all(map(runs, server.front_ends))
            release(server.http)
            assert value.result(HANGS_S).shape == (2,)
        assert server.process.wait(HANGS_S) == 0
        assert not any(map(runs, server.front_ends))


def hold(http: str) -> None:
    urllib.request.urlopen(f"http://{http}/v1/device/hold", data=b"", timeout=HANGS_S).close()


def release(http: str) -> None:
    urllib.request.urlopen(f"http://{http}/v1/device/release", data=b"", timeout=HANGS_S).close()


def in_flight(http: str) -> int:
    with urllib.request.urlopen(f"http://{http}/v1/sessions", timeout=HANGS_S) as answer:
        return sum(each["in_flight_ops"] for each in json.load(answer)["sessions"])


def health_of(target: str) -> int:
    """What health checks are told, once it is the same for all front ends that answer."""
    answers: list[int] = []
    patience = Patience()
    while len(answers) < 20 or len({*answers[-20:]}) > 1:
        assert not patience.is_exhausted()
        with grpc.insecure_channel(target, options=[("grpc.use_local_subchannel_pool", 1)]) as channel:
            stub = health_pb2_grpc.HealthStub(channel)
            answers.append(stub.Check(health_pb2.HealthCheckRequest(), timeout=HANGS_S).status)
    return answers[-1]


def test_an_idle_client_is_told_when_the_server_ends() -> None:
    with serve_subprocess("null", arguments=WITH_FRONT_ENDS) as server, fw.connect(server.grpc, local=False) as session:
        x = session.array([1.0, 2.0])
        x.numpy(timeout=HANGS_S)
        os.kill(server.pid, signal.SIGTERM)
        with session._state.lock:
            assert session._state.changed.wait_for(lambda: not session.is_open, HANGS_S)
        with pytest.raises(fw.SessionClosed, match=r"^the server is shutting down$"):
            x.numpy(timeout=HANGS_S)


@pytest.mark.parametrize("count", ["0", "2"])
def test_a_second_server_on_the_same_port_does_not_start(server: ServerProcess, count: str) -> None:
    command = [sys.executable, "-m", "fusewire_server", "serve", "--backend", "null", "--front-ends", count]
    command += ["--grpc", server.grpc, "--http", "127.0.0.1:0"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert (ended.returncode, ended.stdout) == (2, "")
    printed = [line for line in ended.stderr.splitlines() if line.startswith("fusewire: ")]
    assert len(printed) == 1, ended.stderr
    assert printed[0].startswith(f"fusewire: cannot listen on listen.grpc = {server.grpc}: ")
    assert len(front_ends_of(server.pid)) == COUNT


def test_front_ends_do_not_join_a_server_without_any() -> None:
    with serve_subprocess("null", arguments=("--front-ends", "0")) as server:
        assert front_ends_of(server.pid) == []
        command = [sys.executable, "-m", "fusewire_server", "serve", "--backend", "null", *WITH_FRONT_ENDS]
        command += ["--grpc", server.grpc, "--http", "127.0.0.1:0"]
        ended = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
        assert ended.returncode == 2
        assert f"cannot listen on listen.grpc = {server.grpc}: Address already in use" in ended.stderr


@pytest.mark.parametrize(("host", "reason"), [("no-such-host.invalid", ""), ("192.0.2.1", "Cannot assign")])
def test_a_host_that_is_not_here_is_refused_in_words(host: str, reason: str) -> None:
    command = [sys.executable, "-m", "fusewire_server", "serve", "--backend", "null", *WITH_FRONT_ENDS]
    command += ["--grpc", f"{host}:0", "--http", "127.0.0.1:0", "--insecure-allow-remote"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=HANGS_S, check=False)
    assert ended.returncode == 2
    assert f"fusewire: cannot listen on listen.grpc = {host}:0: {reason}" in ended.stderr


@pytest.mark.parametrize("host", ["[::1]", "localhost"])
def test_it_listens_on_other_hosts(host: str) -> None:
    with started("--grpc", f"{host}:0") as server, fw.connect(server.grpc, local=False) as session:
        session.array([1.0]).numpy(timeout=HANGS_S)
        assert server.process.poll() is None
