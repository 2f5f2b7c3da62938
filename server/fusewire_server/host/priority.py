"""Lowers the priority of a process, so that other processes on a busy machine run first.

Linux may group processes by session. The priority of a process then counts only inside its group, and each group has
the same share of the processor. So a process that leads a session lowers its group's priority too.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

AUTOGROUP = Path("/proc/self/autogroup")


def lower_priority(niceness: int) -> None:
    """Lowers the priority of this process and of those that it starts later. `niceness` is as for nice(2)."""
    reached = os.nice(niceness)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # if the system has no groups, or permits no change of a group's priority
            AUTOGROUP.write_text(str(reached), encoding="ascii")
