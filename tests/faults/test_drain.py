"""A server that is told to end does so in time, whatever its clients do; quiet clients see no wrong result."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import psutil
import pytest

from tests.faults import attackers
from tests.faults.bystander import Attack, running, watching
from tests.faults.server import DEADLINE_S, Inspector, serving, until

pytestmark = pytest.mark.faults

_DRAIN_S = 1.5
_BEYOND_S = 2.0
_FEW_FILES = 200
_ENVIRONMENT = {"FUSEWIRE_LIMITS__DRAIN_S": str(_DRAIN_S)}


@pytest.mark.parametrize(
    "attack",
    [
        attackers.hold_a_session,
        attackers.record_and_read_nothing,
        attackers.run_a_loop_without_end,
        attackers.send_new_programs,
    ],
)
@pytest.mark.parametrize("is_stopped", [False, True], ids=["going on", "stopped"])
def test_a_server_ends_in_time_beside_a_session(
    attack: Attack, is_stopped: bool, token: str, attacking: str, inspecting: str, token_file: Path
) -> None:
    with serving(token_file, environment=_ENVIRONMENT) as server, running(attack, server.grpc, attacking) as client:
        inspector = Inspector(server, inspecting)
        until(lambda: inspector.sessions("attacker") == ["open"])
        with watching(server, token, newcomers=False) as observed:
            until(lambda: inspector.ask("/v1/stats")["totals"]["ops"] > 0)
        if is_stopped:
            psutil.Process(client).suspend()
        assert _ended(server.pid) == (0, True)
        if is_stopped:
            psutil.Process(client).resume()
    assert observed.faults() == []


@pytest.mark.parametrize("attack", [attackers.ask_and_read_nothing, attackers.ask_slowly])
def test_a_server_ends_in_time_beside_connections_to_its_inspection(
    attack: Attack, token: str, token_file: Path
) -> None:
    with serving(token_file, environment=_ENVIRONMENT) as server:
        address = server.http
        with watching(server, token) as observed, running(attack, address, ""):
            time.sleep(_DRAIN_S)  # so that the attack is under way
        with running(attack, address, ""):
            assert _ended(server.pid) == (0, True)
    assert observed.faults() == []


@pytest.mark.parametrize("attack", [attackers.push_sessions, attackers.connect_and_only_greet])
def test_a_server_ends_in_time_beside_strangers(attack: Attack, token: str, token_file: Path) -> None:
    with serving(token_file, environment=_ENVIRONMENT) as server, running(attack, server.grpc, ""):
        with watching(server, token) as observed:
            time.sleep(_DRAIN_S)  # so that the attack is under way
        assert _ended(server.pid) == (0, True)
    assert observed.faults() == []


def test_a_server_without_a_file_left_ends_in_time(token: str, token_file: Path) -> None:
    with serving(token_file, environment=_ENVIRONMENT) as server:
        with watching(server, token, newcomers=False) as observed:
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (_FEW_FILES, _FEW_FILES))
            with running(attackers.connect_and_say_nothing, server.grpc, ""):
                process = psutil.Process(server.pid)
                until(lambda: process.num_fds() >= _FEW_FILES)
                time.sleep(_DRAIN_S)  # so that the server looks at itself meanwhile
        with running(attackers.connect_and_say_nothing, server.grpc, ""):
            until(lambda: process.num_fds() >= _FEW_FILES)
            assert _ended(server.pid) == (0, True)
    assert observed.faults() == []


def _ended(server: int) -> tuple[int | None, bool]:
    """Tells a server to end. Returns its exit status, and whether it ended in time."""
    process = psutil.Process(server)
    began_s = time.monotonic()
    process.terminate()
    status = process.wait(DEADLINE_S)
    return status, time.monotonic() - began_s <= _DRAIN_S + _BEYOND_S
