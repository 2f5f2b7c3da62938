"""Keeps the folder of compiled files within its bound: what was used longest ago goes, as does what compilers that were
ended have left.

A file's time of modification is when it was last used. What was used a moment ago stays, whatever the bound: a process
may have been told of it and not have loaded it yet. (What is loaded needs its file no more.)
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

UNIT_PREFIX = "unit-"  # a compiled file
ENTRY_PREFIX = "kernel-"  # a link to one
PART_PREFIX = "part-"  # what a compiler reads or writes

_STAMP = "tidied"  # empty; modified when the folder was last gone through
_INTERVAL_S = 60
_MOMENT_S = 600  # longer than any compiler runs, and than a compiled file waits to be loaded


def is_due(folder: Path, now_s: float) -> bool:
    """Whether no process has gone through the folder for a while. If so, it counts as gone through now."""
    stamp = folder / _STAMP
    if stamp.exists() and abs(now_s - stamp.stat().st_mtime) < _INTERVAL_S:
        return False
    stamp.touch()
    return True


def tidy(folder: Path, most_bytes: int, now_s: float) -> None:
    """Removes what is not wanted any more, safely beside other processes that use the folder."""
    for part in _files(folder, PART_PREFIX):
        if now_s - part.used_s > _MOMENT_S:
            part.path.unlink(missing_ok=True)
    if _shrink(folder, most_bytes, now_s):
        _remove_broken_links(folder)


def _shrink(folder: Path, most_bytes: int, now_s: float) -> bool:
    """Removes the compiled files used longest ago until the rest fit; whether there were any to remove."""
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
    """A file of the folder, a link as itself."""

    used_s: float
    size_bytes: int
    path: Path


def _files(folder: Path, prefix: str) -> Iterator[_File]:
    """Those that another process does not remove meanwhile."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name.startswith(prefix):
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    yield _File(status.st_mtime, status.st_size, Path(entry.path))
