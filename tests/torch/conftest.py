"""A server for the tests of this folder. Without torch they are not collected: `make test-torch` has it."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import pytest

HAS_TORCH = find_spec("torch") is not None
_NEVER_NS = 1 << 60

collect_ignore_glob = [] if HAS_TORCH else ["test_*.py", "dispatch/test_*.py", "kernels/*/test_*.py"]

if HAS_TORCH:
    import fusewire.torch
    from fusewire import Session
    from fusewire._recording import recorder
    from fusewire.testing import serve_subprocess
    from fusewire.testing.server_process import ServerProcess

    @pytest.fixture(scope="session")
    def server() -> Iterator[ServerProcess]:
        with serve_subprocess("cpu") as server:
            yield server

    @pytest.fixture(scope="session", autouse=True)
    def session(server: ServerProcess) -> Session:
        """Connects the device to a server of its own."""
        return fusewire.torch.connect(server.grpc)

    @pytest.fixture
    def without_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
        """Keeps ops from being sent because time has passed, so that a busy machine cuts a loop at the same places."""
        monkeypatch.setattr(recorder, "_PAUSE_NS", _NEVER_NS)
        monkeypatch.setattr(recorder, "_LONGEST_WAIT_NS", _NEVER_NS)
