"""What the processes of a server hold of the machine, also those whose parent has been killed.

They are found by a mark in their environment, which every process hands on to those that it starts.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.faults.server import until
from tests.front_end_processes import runs

_MARK = "SERVER_OF_TEST"
_PROC, _MEMORY = Path("/proc"), Path("/dev/shm")  # noqa: S108 - it is looked at only
_MEMORY_FILES = ("/memfd:", f"{_MEMORY}/")
_OF_TESTS = "sem.mp-"  # semaphores of multiprocessing, which servers do not use


class Opened(NamedTuple):
    """How much of each kind a process has open."""

    sockets: int
    memory_files: int
    others: int  # pipes, files and descriptors without a file


Held = Mapping[int, Opened]  # by the id of the process


class LeftOver:
    """Looks for what is left of the servers that are started with its environment."""

    def __init__(self) -> None:
        self._mark = f"{_MARK}={secrets.token_hex()}"
        self._shared = _shared_files()
        name, _, value = self._mark.partition("=")
        self.environment = {name: value}

    def held(self) -> Held:
        """Returns what each process that runs has open."""
        return {process.pid: _opened(process.pid) for process in self.processes()}

    def processes(self) -> Iterator[psutil.Process]:
        """Yields the processes that run."""
        for process in psutil.process_iter():
            with suppress(psutil.NoSuchProcess, OSError):
                marks = (_PROC / str(process.pid) / "environ").read_bytes().decode(errors="replace").split("\0")
                if self._mark in marks and runs(process):
                    yield process

    def assert_within(self, before: Held, within_s: float) -> None:
        """Fails if there are more processes than before, or if one of those has more open, after this time."""
        with suppress(AssertionError):
            until(lambda: not _growth(before, self.held()), within_s)
        assert _growth(before, self.held()) == []

    def assert_nothing(self, within_s: float) -> None:
        """Fails if a process, and with it a socket, or a memory file is left after this time."""
        with suppress(AssertionError):
            until(lambda: not any(self.processes()) and _shared_files() <= self._shared, within_s)
        assert [*self.processes()] == []
        assert _shared_files() - self._shared == set()


def _opened(process: int) -> Opened:
    targets = [*_open_files(process)]
    sockets = sum(target.startswith("socket:") for target in targets)
    memory_files = sum(target.startswith(_MEMORY_FILES) for target in targets)
    return Opened(sockets, memory_files, len(targets) - sockets - memory_files)


def _growth(before: Held, after: Held) -> list[str]:
    """Returns in words what there is more of."""
    grown = [
        f"process {process} has {after[process]} instead of {before[process]}"
        for process in before.keys() & after.keys()
        if any(now > then for now, then in zip(after[process], before[process], strict=True))
    ]
    return [*grown, f"{len(after)} processes instead of {len(before)}"] if len(after) > len(before) else grown


def _open_files(process: int) -> Iterator[str]:
    """Yields what the descriptors of a process refer to. A process may end meanwhile."""
    folder = _PROC / str(process) / "fd"
    with suppress(OSError):
        for descriptor in os.listdir(folder):  # noqa: PTH208 - a glob raises on its way if the process ends
            with suppress(OSError):
                yield os.readlink(folder / descriptor)  # noqa: PTH115 - it names no path


def _shared_files() -> set[str]:
    """Returns the names of the memory files that have names."""
    return {path.name for path in _MEMORY.iterdir() if not path.name.startswith(_OF_TESTS)}
