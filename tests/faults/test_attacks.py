"""Attacks on a server that needs tokens: memory, newcomers and health checks stay within bounds, results stay right."""

from __future__ import annotations

import resource
import time
from pathlib import Path

import psutil
import pytest

import fusewire as fw
from fusewire.testing import ServerProcess
from fusewire_server.access.tokens import Scope, mint, revoke
from tests.bounds import Bounded
from tests.faults import attackers
from tests.faults.bystander import Attack, join, observe, running, watching
from tests.faults.server import Inspector, serving, until

pytestmark = pytest.mark.faults

_FEW_FILES = 200
RECOVERY_S = 25.0
NOTICED_S = 16.0
REVOKED_S = 10.0


@pytest.mark.parametrize(
    "attack", [attackers.push_sessions, attackers.push_downloads, attackers.push_undeclared_uploads]
)
def test_long_messages_without_a_token_take_little_memory(
    attack: Attack, token: str, token_file: Path, bounded: Bounded
) -> None:
    with serving(token_file) as server:
        observe(server, token, attack, server.grpc).check(bounded)


def test_uploads_to_undeclared_handles_take_little_memory(
    token: str, attacking: str, token_file: Path, bounded: Bounded
) -> None:
    with serving(token_file) as server:
        observe(server, token, attackers.push_undeclared_uploads, server.grpc, attacking).check(bounded)


@pytest.mark.parametrize("attack", [attackers.declare_huge_empty_arrays, attackers.name_handles_beyond_the_largest])
def test_numbers_beyond_all_bounds_are_refused(
    attack: Attack, token: str, attacking: str, token_file: Path, bounded: Bounded
) -> None:
    with serving(token_file) as server:
        observe(server, token, attack, server.grpc, attacking).check(bounded)


@pytest.mark.parametrize(
    "attack", [attackers.ask_and_read_nothing, attackers.ask_slowly, attackers.ask_by_a_foreign_name]
)
def test_inspection_answers_the_health_check_within_a_second(
    attack: Attack, token: str, token_file: Path, bounded: Bounded
) -> None:
    with serving(token_file) as server:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (_FEW_FILES, _FEW_FILES))
        observe(server, token, attack, server.http).check(bounded)


@pytest.mark.parametrize("attack", [attackers.connect_and_say_nothing, attackers.connect_and_only_greet])
def test_silent_connections_do_not_shut_newcomers_out_for_long(
    attack: Attack, token: str, token_file: Path, bounded: Bounded
) -> None:
    with serving(token_file) as server, watching(server, token, newcomers=False) as observed:
        resource.prlimit(server.pid, resource.RLIMIT_NOFILE, (_FEW_FILES, _FEW_FILES))
        with running(attack, server.grpc, ""):
            _wait_until_shut(server)
            joined_s = until(lambda: _can_join(server, token), RECOVERY_S)
            bounded("time until a newcomer is served", joined_s, RECOVERY_S, "s")
    observed.check(bounded)


def test_a_stopped_client_is_noticed(
    token: str, attacking: str, inspecting: str, token_file: Path, bounded: Bounded
) -> None:
    with (
        serving(token_file) as server,
        watching(server, token) as observed,
        running(attackers.hold_a_session, server.grpc, attacking) as client,
    ):
        inspector = Inspector(server, inspecting)
        until(lambda: inspector.sessions("attacker") == ["open"])
        psutil.Process(client).suspend()
        noticed_s = until(lambda: inspector.sessions("attacker") == ["detached"], NOTICED_S)
        bounded("time until the server notices", noticed_s, NOTICED_S, "s")
    observed.check(bounded)


def test_a_stopped_server_is_noticed(token: str, token_file: Path, bounded: Bounded) -> None:
    with serving(token_file) as server, fw.connect(server.grpc, token=token, reconnect_s=0) as session:
        value = session.array([1.0]) + 1.0
        value.numpy()
        process = psutil.Process(server.pid)
        process.suspend()
        began_s = time.monotonic()
        try:
            with pytest.raises(fw.SessionLost, match="has not answered for 10 s"):
                (value + 1.0).numpy(timeout=NOTICED_S)
        finally:
            process.resume()
        bounded("time until the client notices", time.monotonic() - began_s, NOTICED_S, "s")


def test_a_token_that_is_revoked_through_a_symbolic_link_ends_its_sessions(
    token: str, inspecting: str, token_file: Path, tmp_path: Path, bounded: Bounded
) -> None:
    link = tmp_path / "link"
    link.symlink_to(token_file)
    attacking = mint(link, tenant="attacker", scope=Scope.USE)
    with (
        serving(link) as server,
        watching(server, token) as observed,
        running(attackers.hold_a_session, server.grpc, attacking),
    ):
        inspector = Inspector(server, inspecting)
        until(lambda: inspector.sessions("attacker") == ["open"])
        revoke(link, attacking.partition(".")[0])
        ended_s = until(lambda: inspector.sessions("attacker") == [], REVOKED_S)
        bounded("time until the sessions have ended", ended_s, REVOKED_S, "s")
    assert link.is_symlink()
    observed.check(bounded)


def test_who_writes_a_token_into_a_file_that_everybody_may_write_is_not_let_in(
    token: str, token_file: Path, tmp_path: Path, bounded: Bounded
) -> None:
    forged = mint(tmp_path / "forged", tenant="attacker", scope=Scope.USE)
    with serving(token_file) as server, watching(server, token, newcomers=False) as observed:
        until(lambda: _can_join(server, token))
        token_file.chmod(0o666)
        with token_file.open("a", encoding="utf-8") as lines:
            lines.write((tmp_path / "forged").read_text(encoding="utf-8"))
        until(lambda: not _can_join(server, token))  # so that the server has noticed
        assert not _can_join(server, forged)
        token_file.chmod(0o600)
        until(lambda: _can_join(server, token))
    observed.check(bounded)


def _wait_until_shut(server: ServerProcess) -> None:
    process = psutil.Process(server.pid)
    until(lambda: process.num_fds() >= _FEW_FILES)


def _can_join(server: ServerProcess, token: str) -> bool:
    try:
        join(server.grpc, token)
    except fw.FusewireError:
        return False
    return True


@pytest.mark.parametrize(("planted", "seen"), [("leak", "left_bytes"), ("starvation", "worst_newcomer_s")])
def test_a_planted_fault_is_caught(planted: str, seen: str, token: str, token_file: Path) -> None:
    with serving(token_file, planted) as server:
        assert seen in observe(server, token, attackers.push_sessions, server.grpc).faults()
