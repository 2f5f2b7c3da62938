"""Gives way to other processes: a small share of a busy processor, and that in long turns.

A low priority alone bounds the share. Linux still lets whoever has begun a turn finish it, some milliseconds, before it
wakes another on that processor. A process that asks for turns longer than the others' lets them in at once instead
(since Linux 6.12; earlier ones and other systems ignore it).
"""

from __future__ import annotations

import ctypes
import os
import platform
import struct

TURN_NS = 100_000_000  # the longest that Linux grants
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}  # numbers of the system call
# struct sched_attr of sched_setattr(2): size, policy, flags, nice, priority, runtime, deadline, period
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")


def give_way(niceness: int) -> None:
    """For this process and those that it starts. `niceness` as for nice(2)."""
    reached = os.nice(niceness)
    number = _SCHED_SETATTR.get(platform.machine())
    if number is not None and platform.system() == "Linux":
        attributes = _ATTRIBUTES.pack(_ATTRIBUTES.size, os.SCHED_OTHER, 0, reached, 0, TURN_NS, 0, 0)
        ctypes.CDLL(None).syscall(number, 0, attributes, 0)
