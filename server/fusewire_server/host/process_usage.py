"""Reads what this process uses: resident memory, open files and threads."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path
from typing import NamedTuple

_SELF = Path("/proc/self")


class ProcessUsage(NamedTuple):
    """The resources of this process. A field is None if the system does not tell it."""

    resident_bytes: int | None
    open_files: int | None
    threads: int | None


def process_usage() -> ProcessUsage:
    """Returns the usage now. Takes about a tenth of a millisecond.

    If no further file can be opened, only the number of open files is known: it is the limit.
    """
    if not _SELF.is_dir():
        return ProcessUsage(None, None, None)
    try:
        return _read_usage()
    except OSError as error:
        if error.errno != errno.EMFILE:
            raise
        return ProcessUsage(None, resource.getrlimit(resource.RLIMIT_NOFILE)[0], None)


def _read_usage() -> ProcessUsage:
    resident_pages = int((_SELF / "statm").read_text(encoding="ascii").split()[1])
    open_files = _entries(_SELF / "fd") - 1  # without the one that lists them
    return ProcessUsage(resident_pages * os.sysconf("SC_PAGE_SIZE"), open_files, _entries(_SELF / "task"))


def _entries(folder: Path) -> int:
    return sum(1 for _ in folder.iterdir())
