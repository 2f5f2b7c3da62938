"""Tells who may write a file or a folder besides its owner. Whoever may write what a process trusts owns the process.

Pure, but for the status that the system tells of the file.
"""

from __future__ import annotations

import os
import stat

EVERY_USER, GROUP = "every user", "its group"


def others_who_may_write(status: os.stat_result) -> str:
    """Returns `EVERY_USER`, `GROUP` or an empty text."""
    if status.st_mode & stat.S_IWOTH:
        return EVERY_USER
    return GROUP if status.st_mode & stat.S_IWGRP else ""
