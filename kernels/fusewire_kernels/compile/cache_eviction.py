"""Keeps the folder of compiled files within its bound: removes the least recently used, and leftovers of compilers.

A file's time of modification is the time of its last use. A recently used file stays whatever the bound, because a
process may know its path and not have loaded it yet. (A loaded file is no longer needed on disk.)
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

UNIT_PREFIX = "unit-"  # a compiled file
ENTRY_PREFIX = "kernel-"  # a link to a compiled file
PART_PREFIX = "part-"  # a file that a compiler reads or writes

_STAMP = "tidied"  # an empty file, modified whenever the folder is tidied
_INTERVAL_S = 60
_MOMENT_S = 600  # longer than any compiler runs, and than a compiled file waits to be loaded


def is_due(folder: Path, now_s: float) -> bool:
    """Returns whether no process has tidied the folder for a while. If so, marks it as tidied now."""
    stamp = folder / _STAMP
    if stamp.exists() and abs(now_s - stamp.stat().st_mtime) < _INTERVAL_S:
        return False
    stamp.touch()
    return True


def tidy(folder: Path, most_bytes: int, now_s: float) -> None:
    """Removes old files and leftovers. Other processes may use the folder meanwhile."""
    for part in _files(folder, PART_PREFIX):
        if now_s - part.used_s > _MOMENT_S:
            part.path.unlink(missing_ok=True)
    if _shrink(folder, most_bytes, now_s):
        _remove_broken_links(folder)


def _shrink(folder: Path, most_bytes: int, now_s: float) -> bool:
    """Removes the least recently used compiled files until the rest fit. Returns whether it removed any."""
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
    """A file of the folder; a link is not followed."""

    used_s: float
    size_bytes: int
    path: Path


def _files(folder: Path, prefix: str) -> Iterator[_File]:
    """Yields the files with a prefix, without those that another process removes meanwhile."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix):
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    yield _File(status.st_mtime, status.st_size, Path(entry.path))
