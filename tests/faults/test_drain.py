"""A server that is told to end does so in time, whatever its clients do; quiet clients see no wrong result."""

from __future__ import annotations

import resource
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from fusewire.testing import ServerProcess
from tests.bounds import Bounded
from tests.faults import attackers
from tests.faults.bystander import STRANGERS_GROWTH_BYTES, Attack, running, watching, working_until_dismissed
from tests.faults.server import DEADLINE_S, Inspector, serving, until

pytestmark = pytest.mark.faults

DRAIN_S = 1.5
WITHIN_S = DRAIN_S + 2.0
_FEW_FILES = 200
_STEPS_BESIDE = 30  # of the quiet client, 1.5 s: the attack is under way, and the server has looked at itself
# A tenant's first message is read whole. gRPC holds it, and then the server holds a copy.
_TENANTS_GROWTH_BYTES = attackers.CALLS * 2 * attackers.MESSAGE_BYTES
_ENVIRONMENT = {"FUSEWIRE_LIMITS__DRAIN_S": str(DRAIN_S)}


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
    attack: Attack, is_stopped: bool, token: str, attacking: str, inspecting: str, token_file: Path, bounded: Bounded
) -> None:
    with serving(token_file, environment=_ENVIRONMENT) as server, running(attack, server.grpc, attacking) as client:
        inspector = Inspector(server, inspecting)
        until(lambda: inspector.sessions("attacker") == ["open"])
        with watching(server, token, newcomers=False) as observed:
            until(lambda: inspector.ask("/v1/stats")["totals"]["ops"] > 0)
        with working_until_dismissed(server, token):
            if is_stopped:
                psutil.Process(client).suspend()
            bounded("time from SIGTERM to the end", _seconds_to_end(server), WITHIN_S, "s")
        if is_stopped:
            psutil.Process(client).resume()
    observed.check(bounded)


def test_a_server_ends_in_time_beside_a_client_that_never_reads(
    token: str, attacking: str, inspecting: str, token_file: Path, bounded: Bounded
) -> None:
    with (
        serving(token_file, environment=_ENVIRONMENT) as server,
        running(attackers.ask_for_values_and_read_none, server.grpc, attacking),
    ):
        inspector = Inspector(server, inspecting)
        with watching(server, token, newcomers=False) as observed:
            until(lambda: inspector.ask("/v1/stats")["session_bytes"]["unread"] >= attackers.UNREAD_BYTES)
        with working_until_dismissed(server, token):
            bounded("time from SIGTERM to the end", _seconds_to_end(server), WITHIN_S, "s")
    observed.check(bounded)


def test_a_server_ends_in_time_beside_a_launch_that_takes_longer(
    token: str, attacking: str, inspecting: str, token_file: Path, bounded: Bounded
) -> None:
    with (
        serving(token_file, environment=_ENVIRONMENT) as server,
        running(attackers.run_one_long_launch, server.grpc, attacking),
    ):
        inspector = Inspector(server, inspecting)
        until(lambda: _is_running(inspector.ask("/v1/stats")["totals"]))
        with working_until_dismissed(server, token):
            bounded("time from SIGTERM to the end", _seconds_to_end(server), WITHIN_S, "s")


@pytest.mark.parametrize("attack", [attackers.ask_and_read_nothing, attackers.ask_slowly])
def test_a_server_ends_in_time_beside_connections_to_its_inspection_and_a_session(
    attack: Attack, token: str, attacking: str, token_file: Path, bounded: Bounded
) -> None:
    with (
        serving(token_file, environment=_ENVIRONMENT) as server,
        running(attackers.record_and_read_nothing, server.grpc, attacking),
        running(attack, server.http, ""),
    ):
        with watching(server, token) as observed:
            until(lambda: observed.steps >= _STEPS_BESIDE)
        with working_until_dismissed(server, token):
            bounded("time from SIGTERM to the end", _seconds_to_end(server), WITHIN_S, "s")
    observed.check(bounded)


@pytest.mark.parametrize(
    ("attack", "is_tenant"),
    [(attackers.push_sessions, False), (attackers.push_sessions, True), (attackers.connect_and_only_greet, False)],
)
def test_a_server_ends_in_time_beside_calls_without_a_session(
    attack: Attack, is_tenant: bool, token: str, attacking: str, token_file: Path, bounded: Bounded
) -> None:
    with (
        serving(token_file, environment=_ENVIRONMENT) as server,
        running(attack, server.grpc, attacking if is_tenant else ""),
    ):
        with watching(server, token) as observed:
            until(lambda: observed.steps >= _STEPS_BESIDE)
        with working_until_dismissed(server, token):
            bounded("time from SIGTERM to the end", _seconds_to_end(server), WITHIN_S, "s")
    observed.check(bounded, _TENANTS_GROWTH_BYTES if is_tenant else STRANGERS_GROWTH_BYTES)


def test_a_server_without_a_file_left_ends_in_time(token: str, token_file: Path, bounded: Bounded) -> None:
    with serving(token_file, environment=_ENVIRONMENT) as server, working_until_dismissed(server, token):
        with watching(server, token, newcomers=False) as observed:
            resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (_FEW_FILES, _FEW_FILES))
            with running(attackers.connect_and_say_nothing, server.grpc, ""):
                process = psutil.Process(server.pid)
                until(lambda: process.num_fds() >= _FEW_FILES)
                until(lambda: observed.steps >= _STEPS_BESIDE)
        with running(attackers.connect_and_say_nothing, server.grpc, ""):
            until(lambda: process.num_fds() >= _FEW_FILES)
            bounded("time from SIGTERM to the end", _seconds_to_end(server), WITHIN_S, "s")
    observed.check(bounded)


def _is_running(totals: dict[str, Any]) -> bool:
    """Returns whether the device has been given a submission that it has not completed."""
    begun: int = totals["coalescing"]["submissions"]
    completed: int = totals["submissions"]
    return begun > completed


def _seconds_to_end(server: ServerProcess) -> float:
    """Tells a server to end. Returns the seconds that this takes. Its exit status must be 0."""
    process = psutil.Process(server.pid)
    began_s = time.monotonic()
    process.terminate()
    assert process.wait(DEADLINE_S) == 0
    return time.monotonic() - began_s
