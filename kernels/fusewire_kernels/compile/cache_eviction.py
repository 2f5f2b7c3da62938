"""Keeps the folder of compiled files within its limit in bytes.

Removes the least recently used compiled files. Also removes temporary files that compilers have left behind, and the
folders of workers that were killed together with whoever should have removed them. A worker holds a lock on its folder,
so no clock decides whether the worker is still there.

A file's time of modification is the time of its last use. A recently used file is never removed, even if the folder is
over its limit, because a process may know the file's path and not have loaded the file yet. A process that has loaded
the file no longer needs it on disk. If the machine's clock jumps and the folder is over its limit, such a file may be
removed all the same; then its plan is asked for again.
"""

from __future__ import annotations

import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

UNIT_PREFIX = "unit-"  # a compiled file
ENTRY_PREFIX = "kernel-"  # a link to a compiled file
PART_PREFIX = "part-"  # a file that a compiler reads or writes
WORKER_PREFIX = "worker-"  # the temporary folder of a worker process

_STAMP = "tidied"  # an empty file, modified whenever the folder is tidied
_INTERVAL_S = 60
_MOMENT_S = 600  # no compiler runs for so long, and no compiled file waits for so long to be loaded


def is_due(folder: Path, now_s: float) -> bool:
    """Returns whether no process has tidied the folder in the last minute. If so, marks the folder as tidied now."""
    stamp = folder / _STAMP
    if stamp.exists() and abs(now_s - stamp.stat().st_mtime) < _INTERVAL_S:
        return False
    stamp.touch()
    return True


def hold(folder: Path) -> int:
    """Keeps others from removing a worker's folder while this process, or one that it forks later, lives.

    Returns the descriptor that holds the lock. Raises OSError if the folder cannot be opened or locked.
    """
    descriptor = os.open(folder, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    return descriptor


def tidy(folder: Path, most_bytes: int, now_s: float) -> None:
    """Removes old compiled files, what killed processes have left, and links to files that no longer exist.

    Other processes may use the folder at the same time.
    """
    for part in _files(folder, PART_PREFIX):
        if now_s - part.used_s > _MOMENT_S:
            part.path.unlink(missing_ok=True)
    for left in _files(folder, WORKER_PREFIX):
        if not _is_held(left.path):
            shutil.rmtree(left.path, ignore_errors=True)
    if _shrink(folder, most_bytes, now_s):
        _remove_broken_links(folder)


def _is_held(folder: Path) -> bool:
    """Returns whether a process holds a worker's folder, also if that cannot be found out."""
    try:
        descriptor = os.open(folder, os.O_RDONLY)
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def _shrink(folder: Path, most_bytes: int, now_s: float) -> bool:
    """Removes the least recently used compiled files until the rest fit the limit. Returns whether it removed any."""
    units = sorted(_files(folder, UNIT_PREFIX))
    excess_bytes = sum(unit.size_bytes for unit in units) - most_bytes
    has_removed = False
    for unit in units:
        if excess_bytes <= 0 or now_s - unit.used_s <= _MOMENT_S:
            break
        unit.path.unlink(missing_ok=True)
        excess_bytes -= unit.size_bytes
        has_removed = True
    return has_removed


def _remove_broken_links(folder: Path) -> None:
    for entry in _files(folder, ENTRY_PREFIX):
        if not entry.path.exists():
            entry.path.unlink(missing_ok=True)


class _File(NamedTuple):
    """A file of the folder. For a link, the time and the size are those of the link itself."""

    used_s: float
    size_bytes: int
    path: Path


def _files(folder: Path, prefix: str) -> Iterator[_File]:
    """Yields the files with a prefix. Skips files that another process removes at the same time."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix):
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    yield _File(status.st_mtime, status.st_size, Path(entry.path))
