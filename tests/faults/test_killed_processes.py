"""Killed workers and servers: their compilers end with them, no temporary files stay, and the service goes on."""

from __future__ import annotations

from pathlib import Path

import psutil
import pytest

from fusewire.testing import ServerProcess
from fusewire_kernels.compile.binary_cache import CACHE_VARIABLE, WORKER_PREFIX
from tests.faults import attackers
from tests.faults.bystander import join, running, watching
from tests.faults.server import DEADLINE_S, Inspector, serving, until

pytestmark = pytest.mark.faults

_GONE_WITHIN_S = 5.0
_PYTHON = "python"


class Folders:
    """The cache of a server and its folder for temporary files, both new."""

    def __init__(self, parent: Path) -> None:
        self.cache, self.temporary = parent / "cache", parent / "temporary"
        self.cache.mkdir()
        self.temporary.mkdir()
        self.environment = {CACHE_VARIABLE: str(self.cache), "TMPDIR": str(self.temporary)}

    def of_workers(self) -> set[Path]:
        return set(self.cache.glob(f"{WORKER_PREFIX}*"))


@pytest.fixture
def folders(tmp_path: Path) -> Folders:
    return Folders(tmp_path)


def test_compilers_end_with_a_killed_worker(
    token: str, attacking: str, inspecting: str, token_file: Path, folders: Folders
) -> None:
    with (
        serving(token_file, environment=folders.environment) as server,
        watching(server, token) as observed,
        running(attackers.send_new_programs, server.grpc, attacking),
    ):
        worker = _wait_until_compiling(server)
        started, used = worker.children(recursive=True), folders.of_workers()
        worker.kill()
        _, left = psutil.wait_procs(started, timeout=_GONE_WITHIN_S)
        assert left == []
        until(lambda: len(used & folders.of_workers()) < len(used), _GONE_WITHIN_S)
        inspector = Inspector(server, inspecting)
        before = _compiled(inspector)
        until(lambda: _compiled(inspector) > before)
    assert observed.faults() == []
    until(lambda: not folders.of_workers() and not list(folders.temporary.iterdir()), _GONE_WITHIN_S)


def test_compilers_end_with_a_killed_server(token: str, attacking: str, token_file: Path, folders: Folders) -> None:
    with (
        serving(token_file, environment=folders.environment) as server,
        running(attackers.send_new_programs, server.grpc, attacking),
    ):
        _wait_until_compiling(server)
        process = psutil.Process(server.pid)
        started = process.children(recursive=True)
        process.kill()
        _, left = psutil.wait_procs(started, timeout=_GONE_WITHIN_S)
        assert left == []
    until(lambda: not folders.of_workers() and not list(folders.temporary.iterdir()), _GONE_WITHIN_S)
    with serving(token_file, environment=folders.environment) as server:
        join(server.grpc, token)


def _wait_until_compiling(server: ServerProcess) -> psutil.Process:
    """Waits until a worker of the server has a compiler. Returns the worker."""
    found: list[psutil.Process] = []

    def is_compiling() -> bool:
        workers = psutil.Process(server.pid).children()
        found[:] = [worker for worker in workers if any(map(_is_compiler, worker.children()))]
        return bool(found)

    until(is_compiling, DEADLINE_S)
    return found[0]


def _is_compiler(process: psutil.Process) -> bool:
    try:
        return not process.name().startswith(_PYTHON)  # the guardian is a copy of the worker
    except psutil.NoSuchProcess:
        return False


def _compiled(inspector: Inspector) -> int:
    count: int = inspector.ask("/v1/stats")["totals"]["compilation"]["kernels_compiled"]
    return count
