"""A session of a server in memory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import fusewire as fw
from fusewire.testing import session_in_memory


@pytest.fixture
def session() -> Iterator[fw.Session]:
    with session_in_memory() as session:
        yield session
