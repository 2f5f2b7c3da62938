"""Token files and tokens for the servers that are attacked, and clients that connect again at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from fusewire._stream import resumption
from fusewire._transport import stream_transport
from fusewire._transport.stream_transport import _CLEAR_CHANNEL_OPTIONS
from fusewire_server.access.tokens import Scope, mint


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    return tmp_path / "tokens"


@pytest.fixture
def token(token_file: Path) -> str:
    """The token of the quiet client."""
    return mint(token_file, tenant="quiet", scope=Scope.USE)


@pytest.fixture
def attacking(token_file: Path) -> str:
    """The token of an attacker who is a tenant."""
    return mint(token_file, tenant="attacker", scope=Scope.USE)


@pytest.fixture
def inspecting(token_file: Path) -> str:
    return mint(token_file, tenant="inspector", scope=Scope.INSPECT)


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """Connects again almost at once, so that many cuts take little time."""
    monkeypatch.setattr(resumption, "_FIRST_DELAY_S", 0.005)
    monkeypatch.setattr(resumption, "_LONGEST_DELAY_S", 0.05)
    # gRPC may fail to notice a reset until it sends something.
    options = [(name, 1000 if name == "grpc.keepalive_time_ms" else value) for name, value in _CLEAR_CHANNEL_OPTIONS]
    monkeypatch.setattr(stream_transport, "_CLEAR_CHANNEL_OPTIONS", options)
