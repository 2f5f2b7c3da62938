"""An application with tokens, and a client of one without."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.inspect.examples import Client
from tests.server.inspect.routes.applications import Guarded, application


@pytest.fixture
def client() -> Client:
    return Client(application())


@pytest.fixture
def guarded(tmp_path: Path) -> Guarded:
    return Guarded(tmp_path / "tokens")
