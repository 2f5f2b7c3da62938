"""Lowers the priority of a process, so that others on a busy machine run before it.

Linux may group processes by their sessions; a priority then counts within its group alone, and each group has the same
share. So a process that leads a session lowers its group's priority too.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

AUTOGROUP = Path("/proc/self/autogroup")


def lower_priority(niceness: int) -> None:
    """Lowers the priority of this process and of those that it starts. `niceness` as for nice(2)."""
    reached = os.nice(niceness)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # there are no groups here, or nobody may change their priority
            AUTOGROUP.write_text(str(reached), encoding="ascii")
