"""What gRPC is told before it is imported."""

import os
import subprocess
import sys

import pytest

from fusewire_protos import grpc_environment

OURS = ("GRPC_ENABLE_FORK_SUPPORT", "GRPC_EXPERIMENTS")
USE_GRPC = 'import grpc; grpc.insecure_channel("127.0.0.1:1").close()'


def test_it_is_told_all_that_we_want(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_environment, "version", lambda _: "1.85.1")
    assert tuple(grpc_environment.lacking({})) == OURS


def test_what_somebody_else_has_set_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_environment, "version", lambda _: "1.85.1")
    assert tuple(grpc_environment.lacking({OURS[1]: "tcp_frame_size_tuning"})) == OURS[:1]


def test_a_version_not_seen_yet_is_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(grpc_environment, "version", lambda _: "1.86.0rc1")
    assert tuple(grpc_environment.lacking({})) == OURS[:1]


def test_the_installed_grpc_knows_what_it_is_told() -> None:
    bare = {name: value for name, value in os.environ.items() if not name.startswith("GRPC_")}
    told = bare | grpc_environment.lacking(bare)
    command = [sys.executable, "-c", USE_GRPC]
    used = subprocess.run(command, check=True, env=told, capture_output=True, text=True, timeout=60)
    assert used.stderr == ""
