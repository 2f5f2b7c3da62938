"""Reads from /proc which processes a group or a session has, and what they have used. Elsewhere than on Linux: nothing.

A compiler is several processes, which are one group. A worker and its compilers are several groups of one session.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from fusewire_kernels.compile.watch import Usage

_PROC = Path("/proc")
_ZOMBIE, _RUNNABLE = b"Z", b"R"
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")

# Positions in /proc/<id>/stat after the name of the program, which may contain spaces.
_STATE, _GROUP, _SESSION = 0, 2, 3
_TIMES = slice(11, 15)  # of the process and of its children that have ended, in user and in kernel mode


class Process(NamedTuple):
    """A process of the system, and the processor time of it and of its children that have ended."""

    number: int
    state: bytes
    group: int
    session: int
    ticks: int


def usage_of_group(group: int) -> Usage | None:
    """Returns what the processes of a group have used, or None if the system does not tell or there are none."""
    return _usage(process for process in processes() if process.group == group)


def usage_of_session(session: int) -> Usage | None:
    """Returns what the processes of a session have used, or None if the system does not tell or there are none."""
    return _usage(process for process in processes() if process.session == session)


def processes() -> Iterator[Process]:
    """Yields the processes of this machine. Takes some 20 microseconds a process."""
    try:
        numbers = [int(name) for name in os.listdir(_PROC) if name.isdecimal()]  # noqa: PTH208 - half the time
    except OSError:
        return
    for number in numbers:
        stat = _content(number, "stat")
        fields = stat[stat.rfind(b")") + 1 :].split()
        if fields:
            ticks = sum(map(int, fields[_TIMES]))
            yield Process(number, fields[_STATE], int(fields[_GROUP]), int(fields[_SESSION]), ticks)


def _usage(members: Iterable[Process]) -> Usage | None:
    found = list(members)
    if not found:
        return None
    ticks = sum(process.ticks for process in found)
    scheduled_ns = sum(_scheduled_ns(process.number) for process in found)
    return Usage(ticks / _TICKS_A_SECOND, scheduled_ns, any(process.state == _RUNNABLE for process in found))


def _scheduled_ns(number: int) -> int:
    """Returns for how long a process has run and waited for a processor, or 0 if the system does not count it."""
    return sum(map(int, _content(number, "schedstat").split()[:2]))


def _content(number: int, name: str) -> bytes:
    """Returns the content of a process's file, which is empty if the process has ended."""
    try:
        with open(f"{_PROC}/{number}/{name}", "rb") as file:  # noqa: PTH123 - a path object takes half the time
            return file.read()
    except OSError:
        return b""
