"""Reads how much room the disk of a folder has."""

from __future__ import annotations

import os
from pathlib import Path


def free_bytes(folder: Path) -> int | None:
    """Returns the bytes that this process may still write where the folder is, or will be. None: nobody knows."""
    try:
        status = os.statvfs(next(each for each in (folder, *folder.absolute().parents) if each.exists()))
    except OSError:
        return None
    return status.f_bavail * status.f_frsize
