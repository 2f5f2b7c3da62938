"""Gives way to other processes: a small share of a busy processor, and that in long turns.

A low priority alone bounds the share. Linux still lets whoever has begun a turn finish it, some milliseconds, before it
wakes another on that processor. A process that asks for turns longer than the others' lets them in at once instead
(since Linux 6.12; earlier ones and other systems ignore it).

Where Linux groups processes by their sessions, a priority counts within the group alone, and a group of one process has
the share of all the others' group. So a process that leads a session lowers its group's priority too.
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct
from contextlib import suppress
from pathlib import Path

TURN_NS = 100_000_000  # the longest that Linux grants
AUTOGROUP = Path("/proc/self/autogroup")
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # numbers of the system call
# struct sched_attr of sched_setattr(2): size, policy, flags, nice, priority, runtime, deadline, period
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")


def give_way(niceness: int) -> None:
    """For this process and those that it starts. `niceness` as for nice(2)."""
    reached = os.nice(niceness)
    if os.getsid(0) == os.getpid():
        with suppress(OSError):  # there are no groups here, or nobody may change their priority
            AUTOGROUP.write_text(str(reached), encoding="ascii")
    number = _SCHED_SETATTR.get(platform.machine())
    if number is not None and platform.system() == "Linux":
        attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, reached, 0, TURN_NS, 0, 0)
        ctypes.CDLL(None).syscall(number, 0, attributes, 0)
