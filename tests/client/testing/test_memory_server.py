"""What the server in memory keeps of what it receives."""

from __future__ import annotations

import numpy as np
import pytest

from fusewire.testing import MemoryServer, memory_server, session_in_memory


def test_a_long_test_needs_no_more_and_more_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_server, "_MOST_KEPT", 5)
    server = MemoryServer()
    with session_in_memory(server) as session:
        for length in range(1, 21):
            (session.array(np.zeros(length)) + 1).numpy()
    assert len(server.entries) == 5
    assert [new.number for new in server.new_programs] == list(range(15, 20))
