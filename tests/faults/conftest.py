"""Token files and tokens for the servers that are attacked."""

from __future__ import annotations

from pathlib import Path

import pytest

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
