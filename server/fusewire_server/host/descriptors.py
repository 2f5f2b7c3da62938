"""Raises the limit of open files, and warns when this process comes near to it.

At the limit nobody can connect any more. A connection takes one file, and many systems allow a process only 1,024.
"""

from __future__ import annotations

import logging
import resource

_log = logging.getLogger(__name__)

_WANTED_FILES = 1 << 16
_NEAR = 0.8  # of the limit
_WARN_EVERY_S = 60.0


def raise_open_file_limit() -> int:
    """Raises the soft limit of open files towards the hard limit, and returns the soft limit."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_FILES if hard == resource.RLIM_INFINITY else min(_WANTED_FILES, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    return wanted


class OpenFilesWatch:
    """Warns when the open files of this process come near to the limit, at most once a minute."""

    def __init__(self, most_files: int) -> None:
        self._most_files = most_files
        self._next_warning_s = 0.0

    def look(self, open_files: int | None, now_s: float) -> None:
        """Warns if `open_files` is near the limit; None means that the number is unknown."""
        if open_files is None or open_files < _NEAR * self._most_files or now_s < self._next_warning_s:
            return
        self._next_warning_s = now_s + _WARN_EVERY_S
        _log.warning(
            "%d of %d files are open: at the limit nobody can connect; raise it (ulimit -n, LimitNOFILE)",
            open_files,
            self._most_files,
        )
