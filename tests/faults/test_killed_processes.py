"""Killed workers and servers: their compilers end with them, no temporary files stay, and the service goes on."""

from __future__ import annotations

import shutil
from collections.abc import Iterable
from pathlib import Path

import psutil
import pytest

from fusewire.testing import ServerProcess
from fusewire_kernels.compile.binary_cache import CACHE_VARIABLE, WORKER_PREFIX
from tests.faults import attackers
from tests.faults.bystander import join, running, watching
from tests.faults.server import DEADLINE_S, Inspector, serving, until
from tests.shell_programs import shell_program

pytestmark = pytest.mark.faults

_GONE_WITHIN_S = 5.0


# Stands for a compiler that takes long: it begins to compile only when a file does not exist.
_COMPILER = """\
while [ -e {long} ]; do sleep 0.1; done
exec {compiler} "$@"
"""
_COMPILER_NAME = "cc"


class Folders:
    """The cache of a server and its folder for temporary files, both new, and a compiler that can be made slow."""

    def __init__(self, parent: Path) -> None:
        self.cache, self.temporary, self.takes_long = parent / "cache", parent / "temporary", parent / "long"
        self.cache.mkdir()
        self.temporary.mkdir()
        script = _COMPILER.format(long=self.takes_long, compiler=shutil.which(_COMPILER_NAME))
        compiler = shell_program(parent / _COMPILER_NAME, script)
        self.environment = {CACHE_VARIABLE: str(self.cache), "TMPDIR": str(self.temporary), "CC": str(compiler)}

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
        folders.takes_long.touch()
        worker = _wait_until_compiling(server)
        started, used = worker.children(recursive=True), folders.of_workers()
        worker.kill()
        _, left = psutil.wait_procs(started, timeout=_GONE_WITHIN_S)
        assert left == []
        until(lambda: len(used & folders.of_workers()) < len(used), _GONE_WITHIN_S)
        folders.takes_long.unlink()
        inspector = Inspector(server, inspecting)
        before = _kernels_compiled(inspector)
        until(lambda: _kernels_compiled(inspector) > before)
    assert observed.faults() == []
    until(lambda: not folders.of_workers() and not list(folders.temporary.iterdir()), _GONE_WITHIN_S)


def test_compilers_end_with_a_killed_server(token: str, attacking: str, token_file: Path, folders: Folders) -> None:
    with (
        serving(token_file, environment=folders.environment) as server,
        running(attackers.send_new_programs, server.grpc, attacking),
    ):
        folders.takes_long.touch()
        _wait_until_compiling(server)
        process = psutil.Process(server.pid)
        # A worker has a guardian once it has begun; before that it would end when it reads the end of its input.
        until(lambda: all(worker.children() for worker in process.children()))
        started = process.children(recursive=True)
        process.kill()
        _, left = psutil.wait_procs(started, timeout=_GONE_WITHIN_S)
        assert left == []
    until(lambda: not folders.of_workers() and not list(folders.temporary.iterdir()), _GONE_WITHIN_S)
    folders.takes_long.unlink()
    with serving(token_file, environment=folders.environment) as server:
        join(server.grpc, token)


def _wait_until_compiling(server: ServerProcess) -> psutil.Process:
    """Waits until a worker of the server has a compiler that takes long. Returns the worker."""
    found: list[psutil.Process] = []

    def is_compiling() -> bool:
        workers = psutil.Process(server.pid).children()
        found[:] = [worker for worker in workers if _COMPILER_NAME in _names(worker.children())]
        return bool(found)

    until(is_compiling, DEADLINE_S)
    return found[0]


def _names(processes: Iterable[psutil.Process]) -> list[str]:
    return [process.name() for process in processes if process.is_running()]


def _kernels_compiled(inspector: Inspector) -> int:
    count: int = inspector.ask("/v1/stats")["totals"]["compilation"]["kernels_compiled"]
    return count
