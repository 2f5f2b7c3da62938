"""Attacks on a server that needs tokens: memory, newcomers and health checks stay within bounds, results stay right."""

from __future__ import annotations

import json
import os
import resource
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest

import fusewire as fw
from fusewire.testing import ServerProcess, serve_subprocess
from fusewire_server.access.tokens import Scope, mint
from tests.faults import attackers
from tests.faults.bystander import Attack, join, observe, running

pytestmark = pytest.mark.faults

_PLANTED = Path(__file__).parent / "planted"
_FEW_FILES = 200
_RECOVERY_S = 25.0


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


@pytest.fixture
def token(token_file: Path) -> str:
    return mint(token_file, tenant="quiet", scope=Scope.USE)


@contextmanager
def serving(token_file: Path, planted: str = "") -> Iterator[ServerProcess]:
    path = f"{_PLANTED}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    environment = {"PLANTED_FAULT": planted, "PYTHONPATH": path} if planted else {}
    with serve_subprocess("cpu", environment=environment, arguments=("--token-file", str(token_file))) as server:
        yield server


@pytest.mark.parametrize(
    "attack", [attackers.push_sessions, attackers.push_downloads, attackers.push_undeclared_uploads]
)
def test_long_messages_without_a_token_take_little_memory(attack: Attack, token: str, token_file: Path) -> None:
    with serving(token_file) as server:
        assert observe(server, token, attack, server.grpc).faults() == []


def test_uploads_to_undeclared_handles_take_little_memory(token: str, token_file: Path) -> None:
    attacking = mint(token_file, tenant="attacker", scope=Scope.USE)
    with serving(token_file) as server:
        assert observe(server, token, attackers.push_undeclared_uploads, server.grpc, attacking).faults() == []


def test_requests_whose_answers_nobody_reads_do_not_delay_the_health_check(token: str, token_file: Path) -> None:
    with serving(token_file) as server:
        assert observe(server, token, attackers.ask_and_read_nothing, server.http).faults() == []


@pytest.mark.parametrize("attack", [attackers.connect_and_say_nothing, attackers.connect_and_only_greet])
def test_silent_connections_do_not_shut_newcomers_out_for_long(attack: Attack, token: str, token_file: Path) -> None:
    with serving(token_file) as server:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (_FEW_FILES, _FEW_FILES))
        with running(attack, server.grpc, ""):
            _wait_until_shut(server)
            began_s = time.monotonic()
            while True:
                try:
                    join(server.grpc, token)
                    break
                except fw.FusewireError:
                    assert time.monotonic() - began_s < _RECOVERY_S


def test_a_stopped_client_is_noticed_within_20_s(token: str, token_file: Path) -> None:
    inspecting = {"Authorization": f"Bearer {mint(token_file, tenant='quiet', scope=Scope.INSPECT)}"}

    def states() -> list[str]:
        request = urllib.request.Request(f"http://{server.http}/v1/sessions", headers=inspecting)
        with urllib.request.urlopen(request, timeout=_RECOVERY_S) as answer:  # noqa: S310 - our own server
            return [session["state"] for session in json.load(answer)["sessions"]]

    with serving(token_file) as server, running(attackers.hold_a_session, server.grpc, token) as client:
        until(lambda: states() == ["open"])
        psutil.Process(client).suspend()
        began_s = time.monotonic()
        until(lambda: states() == ["detached"])
        assert time.monotonic() - began_s < 20


def until(condition: Callable[[], bool]) -> None:
    ends_at_s = time.monotonic() + _RECOVERY_S
    while not condition():
        assert time.monotonic() < ends_at_s
        time.sleep(0.05)


def _wait_until_shut(server: ServerProcess) -> None:
    process = psutil.Process(server.pid)
    until(lambda: process.num_fds() >= _FEW_FILES)


@pytest.mark.parametrize(("planted", "seen"), [("leak", "left_bytes"), ("starvation", "worst_newcomer_s")])
def test_a_planted_fault_is_caught(planted: str, seen: str, token: str, token_file: Path) -> None:
    with serving(token_file, planted) as server:
        assert seen in observe(server, token, attackers.push_sessions, server.grpc).faults()
